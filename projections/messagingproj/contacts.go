// Package messagingproj has the projections of the messaging area.
package messagingproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/projections"
)

//go:embed contacts.sql
var contactsDDL string

// Contacts has the contacts of workspaces. Its personal values are plaintext until their key is destroyed.
var Contacts = projections.Define("messaging_contacts", 9,
	contactsDDL+projections.RowCountDDL("contact", "true", "workspace_id", "status", "source", "opt_in"),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Added]) {
		s := e.Data.Evolve(contact.State{})
		b.Exec(`
			insert into contact (id, workspace_id, name, name_folded, phone, phone_text, email, source, opt_in, reply_bot, status, created_at,
				updated_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13)`,
			e.StreamID(), e.Meta.Workspace, s.Name, folded(s.Name), s.Phone, s.PhoneText, s.Email, s.Source, s.OptIn, s.ReplyBot, s.Status, e.At,
			e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Edited]) {
		b.Set("contact", e.StreamID(), "name", e.Data.Name, "name_folded",
			patch.Field[*string]{Value: folded(e.Data.Name.Value), State: e.Data.Name.State},
			"phone", e.Data.Phone, "email", e.Data.Email, "opt_in", e.Data.OptIn, "reply_bot", e.Data.ReplyBot, "status", e.Data.Status,
			"updated_at", e.At, "revision", e.Revision)
		if e.Data.Phone.Present() {
			b.Set("contact", e.StreamID(), "phone_text", e.Data.PhoneText)
		}
		if e.Data.OptIn.Present() {
			b.Set("contact", e.StreamID(), "opt_in_at", e.At, "opt_in_by", e.Meta.Actor, "opt_in_how", e.Data.Evidence)
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.ConsentChanged]) {
		b.Set("contact", e.StreamID(), "opt_in", e.Data.OptIn, "opt_in_at", e.At, "opt_in_by", "contact", "opt_in_how", e.Data.By,
			"updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.SenderAdded]) {
		b.Set("contact", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(`delete from contact where id = $1`, e.StreamID())
		b.Exec(`delete from member where contact_id = $1`, e.StreamID())
		b.Exec(`delete from merged where into_id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Absorbed]) {
		b.Exec(`delete from contact where id = $1`, e.Data.Contact)
		b.Exec(`delete from member where contact_id = $1`, e.Data.Contact)
		b.Exec(`update merged set into_id = $1 where into_id = $2`, e.StreamID(), e.Data.Contact)
		b.Exec(`insert into merged (id, workspace_id, into_id) values ($1, $2, $3)`, e.Data.Contact, e.Meta.Workspace, e.StreamID())
		b.Set("contact", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
		if !e.Data.Name.IsZero() {
			b.Set("contact", e.StreamID(), "name", e.Data.Name, "name_folded", folded(e.Data.Name))
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.ListsChanged]) {
		b.Exec(`delete from member where contact_id = $1`, e.StreamID())
		b.Exec(`insert into member (contact_id, list_id) select $1, unnest($2::bigint[])`, e.StreamID(), e.Data.Lists)
		b.Set("contact", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contactlist.Created]) {
		b.Exec(`insert into list (id, workspace_id, name, created_at) values ($1, $2, $3, $4)`, e.StreamID(), e.Meta.Workspace, e.Data.Name, e.At)
	}),
)

// folded returns a name in the form for searches, nil for an erased name.
func folded(name event.Personal) *string {
	shown := name.Shown()
	if shown == nil {
		return nil
	}
	return new(person.Folded(*shown))
}
