package marketplace

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"bahi/domain/event"
	"bahi/domain/marketplace/enquiry"
	"bahi/projections"
)

//go:embed enquiries.sql
var enquiriesDDL string

// Enquiries has what companies were asked. What is personal comes into it in clear, for as long as its key is there.
var Enquiries = projections.Define("enquiries", 1, enquiriesDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.Sent]) {
		at, status := e.At, enquiry.Queued
		if e.Data.Spam {
			status = enquiry.Skipped
		}
		b.Exec(`
			insert into enquiry (id, position, workspace_id, company_id, product_id, buyer, user_name, user_email, user_phone, message, quantity, source_platform,
				spam, status, notifications, created_at, updated_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::jsonb || $16::jsonb || $17::jsonb, $18, $18, $19)`,
			e.StreamID(), int64(e.Position), e.Meta.Workspace, e.Data.Company, e.Data.Product, e.Data.Buyer, e.Data.Name, e.Data.Email, e.Data.Phone,
			e.Data.Message, e.Data.Quantity, e.Data.Source, e.Data.Spam, enquiry.Pending,
			told(enquiry.Chat, status, at, ""), told(enquiry.Email, status, at, ""), told(enquiry.CRM, status, at, ""), at, e.Revision)
		moved(b, e, nil, enquiry.Pending)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.StatusMoved]) {
		b.Set("enquiry", e.StreamID(), "status", e.Data.To, "updated_at", e.At, "revision", e.Revision)
		moved(b, e, &e.Data.From, e.Data.To)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.NotesWritten]) {
		b.Set("enquiry", e.StreamID(), "notes", e.Data.Notes, "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.Notified]) {
		b.Exec(`update enquiry set notifications = notifications || $2::jsonb, crm_lead_id = coalesce(crm_lead_id, nullif($3, '')) where id = $1`,
			e.StreamID(), told(e.Data.Port, e.Data.Status, e.Data.At, e.Data.Error), e.Data.Lead)
		if e.Data.To != "" {
			b.Exec(`
				insert into notice (enquiry_id, port, buyer, at, recipient, said, status)
				select id, $2, buyer, $3, $4, $5, $6 from enquiry where id = $1
				on conflict (enquiry_id, port) do update set at = excluded.at, recipient = excluded.recipient, said = excluded.said, status = excluded.status`,
				e.StreamID(), e.Data.Port, e.Data.At, e.Data.To, e.Data.Text, e.Data.Status)
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[enquiry.BuyerErased]) {
		gone := enquiry.Subject(e.StreamID(), e.Data.Before)
		b.Exec(`update enquiry set user_name = null, user_email = null, user_phone = null, message = null, notes = null where buyer = $1`, gone)
		b.Exec(`update notice set said = null where buyer = $1`, gone)
	}),
)

// moved notes a move of an enquiry's status.
func moved[E any](b *projections.Batch, e event.Recorded[E], from *string, to string) {
	b.Exec(`insert into move (enquiry_id, nth, workspace_id, moved_from, moved_to, at, actor, reason) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.StreamID(), e.Revision, e.Meta.Workspace, from, to, e.At, e.Meta.Actor, e.Meta.Reason)
}

// told returns the JSON of what became of a notification.
func told(port enquiry.Port, status string, at time.Time, why string) string {
	outcome := map[string]any{"status": status, "at": at.UTC(), "error": nil}
	if why != "" {
		outcome["error"] = why
	}
	text, err := json.Marshal(map[enquiry.Port]any{port: outcome})
	if err != nil {
		panic(fmt.Sprintf("encode a notification: %v", err)) // texts and a time
	}
	return string(text)
}
