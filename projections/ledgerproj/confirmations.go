package ledgerproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/ledger/party"
	"bahi/domain/messaging/contact"
	"bahi/projections"
)

//go:embed confirmations.sql
var confirmationsDDL string

// Confirmations has the contacts of accounts and the replies of parties about their balances.
var Confirmations = projections.Define("confirmations", 3, confirmationsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[party.ContactSet]) {
		b.Exec(`insert into party (account_id, contact_id) values ($1, $2)
			on conflict (account_id) do update set contact_id = excluded.contact_id`, e.StreamID(), e.Data.Contact)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[confirmation.Requested]) {
		d := e.Data
		b.Exec(`insert into confirmation (id, workspace_id, kind, as_of, position, channel_id, template_id, campaign_id, created_at, created_by,
				document)
			values ($1, $2, nullif($3, ''), $4, $5, $6, $7, $8, $9, $10, $11)`, e.StreamID(), e.Meta.Workspace, d.Kind, d.AsOf.Time(),
			int64(d.Position), d.Channel, d.Template, d.Campaign, e.At, e.Meta.Actor, d.Document)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[confirmation.PartiesListed]) {
		n := len(e.Data.Parties)
		ledgers, accounts, contacts, messages := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)
		skipped, paise, milligrams := make([]string, n), make([]int64, n), make([]int64, n)
		for i, p := range e.Data.Parties {
			ledgers[i], accounts[i], contacts[i], messages[i] = p.Ledger, p.Account, p.Contact, p.Message
			skipped[i], paise[i], milligrams[i] = p.Skipped, int64(p.Cash), int64(p.Fine)
		}
		b.Exec(`insert into asked (confirmation_id, account_id, workspace_id, channel_id, ledger, contact_id, message_id, skipped, cash, fine)
			select c.id, p.account, c.workspace_id, c.channel_id, p.ledger, nullif(p.contact, 0), nullif(p.message, 0), nullif(p.skipped, ''),
				p.paise / 100.0, p.milligrams / 1000.0
			from confirmation c, unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[])
				p (ledger, account, contact, message, skipped, paise, milligrams)
			where c.id = $1`, e.StreamID(), ledgers, accounts, contacts, messages, skipped, paise, milligrams)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[party.Confirmed]) {
		said(b, e, party.OutcomeConfirmed, e.Data.Answer)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[party.Disputed]) {
		said(b, e, party.OutcomeDisputed, e.Data.Answer)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Absorbed]) {
		b.Exec(`update party set contact_id = $1 where contact_id = $2`, e.StreamID(), e.Data.Contact)
		b.Exec(`update asked set contact_id = $1 where contact_id = $2`, e.StreamID(), e.Data.Contact)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(`update asked set note = null where contact_id = $1`, e.StreamID())
	}),
)

func said[E any](b *projections.Batch, e event.Recorded[E], outcome string, a party.Answer) {
	b.Exec(`update asked set outcome = $3, answer_id = nullif($4, 0), answered_at = $5, answered_by = $6, note = $7
		where confirmation_id = $1 and account_id = $2`, a.Confirmation, e.StreamID(), outcome, a.Message, e.At, e.Meta.Actor, a.Note)
}
