package marketplaceproj

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/marketplace/enquiry"
	"bahi/projections"
)

//go:embed enquiries.sql
var enquiriesDDL string

// Enquiries has enquiries to companies. Its personal values are plaintext until their key is destroyed.
var Enquiries = projections.Define("enquiries", 3,
	enquiriesDDL+projections.RowCountDDL("enquiry", "true", "workspace_id", "company_id", "spam", "status", "source_platform"),
	projections.Apply(domain.Catalogue.NamesOf(reflect.TypeFor[enquiry.Sent](), reflect.TypeFor[enquiry.Notified]()), foldAsked),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.StatusChanged]) {
		b.Set("enquiry", e.StreamID(), "status", e.Data.To, "updated_at", e.At, "revision", e.Revision)
		moved(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.NotesWritten]) {
		b.Set("enquiry", e.StreamID(), "notes", e.Data.Notes, "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.BuyerErased]) {
		gone := enquiry.Subject(e.StreamID(), e.Data.Before)
		b.Exec(`update enquiry set user_name = null, user_email = null, user_phone = null, message = null, notes = null where buyer = $1`, gone)
		b.Exec(`update notice set text = null where buyer = $1`, gone)
	}),
).WithBatchDelay(enquiriesGather)

// enquiriesGather is the maximum delay of an enquiry while no request reads enquiries. Meanwhile others, and the results of its
// notifications, may arrive.
const enquiriesGather = 50 * time.Millisecond

// moved records a change of an enquiry's status.
func moved(b *projections.Batch, e event.Recorded[enquiry.StatusChanged]) {
	b.Exec(`insert into status_change (enquiry_id, ordinal, workspace_id, moved_from, moved_to, at, actor, reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.StreamID(), e.Revision, e.Meta.Workspace, e.Data.From, e.Data.To, e.At, e.Meta.Actor, e.Meta.Reason)
}

// outcomeOf returns the result of a notification in the form for the table.
func outcomeOf(status string, at time.Time, why string) map[string]any {
	outcome := map[string]any{"status": status, "at": at.UTC(), "error": nil}
	if why != "" {
		outcome["error"] = why
	}
	return outcome
}

// outcomes are the results of an enquiry's notifications, by port.
type outcomes map[enquiry.Port]map[string]any

// json returns the outcomes as JSON.
func (o outcomes) json() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("encode notifications: %v", err)) // texts and times
	}
	return string(text)
}
