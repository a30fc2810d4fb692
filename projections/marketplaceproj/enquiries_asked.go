package marketplaceproj

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/marketplace/enquiry"
	"bahi/projections"
)

// insertAsked adds enquiries.
//
//nolint:dupword // values of columns
const insertAsked = `
	insert into enquiry (id, position, workspace_id, company_id, product_id, buyer, user_name, user_email, user_phone, message, quantity,
		source_platform, spam, status,
		notifications, created_at, updated_at, revision)
	select id, position, workspace_id, company_id, product_id, buyer, user_name, user_email, user_phone, message, quantity, source_platform,
		spam, 'pending',
		notifications::jsonb, at, at, revision
	from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
		$11::bigint[], $12::text[],
		$13::boolean[], $14::text[], $15::timestamptz[], $16::bigint[])
		n (id, position, workspace_id, company_id, product_id, buyer, user_name, user_email, user_phone, message, quantity, source_platform,
			spam, notifications, at, revision)`

// insertBegun records that enquiries are pending.
const insertBegun = `
	insert into status_change (enquiry_id, ordinal, workspace_id, moved_to, at, actor, reason)
	select id, revision, workspace_id, 'pending', at, actor, reason
	from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[]) n (id, revision, workspace_id, at, actor,
		reason)`

// setOutcomes records the results of notifications. It keeps the first lead of the CRM.
const setOutcomes = `
	update enquiry e set notifications = e.notifications || n.outcomes::jsonb, crm_lead_id = coalesce(e.crm_lead_id, nullif(n.lead, ''))
	from unnest($1::uuid[], $2::text[], $3::text[]) n (id, outcomes, lead) where e.id = n.id`

// noticeOn stores the notices that were sent.
const noticeOn = `
	insert into notice (enquiry_id, port, buyer, at, recipient, text, status)
	select e.id, n.port, e.buyer, n.at, n.recipient, n.text, n.status
	from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[]) n (id, port, at, recipient, text, status)
		join enquiry e on e.id = n.id
	on conflict (enquiry_id, port) do update set at = excluded.at, recipient = excluded.recipient, text = excluded.text,
		status = excluded.status`

// asked are the new enquiries of a batch, as columns.
type asked struct {
	ids, workspaces, companies             []uuid.UUID
	products                               []*uuid.UUID
	positions, revisions                   []int64
	quantities                             []*int64
	buyers, sources, outcomes, actors, why []string
	names, emails, phones, messages        []event.Personal
	spam                                   []bool
	times                                  []time.Time
}

// notified are the results of notifications in a batch: the last one for each port of an enquiry.
type notified struct {
	ids     []uuid.UUID // in the order of their first events
	of      map[uuid.UUID]outcomes
	leads   map[uuid.UUID]string
	notices map[notice]enquiry.Notified
	sent    []notice // in their order
}

// notice identifies a notice that was sent.
type notice struct {
	enquiry uuid.UUID
	port    enquiry.Port
}

// foldAsked folds the enquiries of a batch and the results of notifications with four statements, because five statements per enquiry would
// take most of Postgres's time.
func foldAsked(_ context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	var began asked
	after := notified{of: map[uuid.UUID]outcomes{}, leads: map[uuid.UUID]string{}, notices: map[notice]enquiry.Notified{}}
	for _, e := range events {
		id, err := uuid.Parse(e.StreamID())
		if err != nil {
			return fmt.Errorf("the enquiry of %s: %w", e.Stream, err)
		}
		switch d := e.Data.(type) {
		case enquiry.Sent:
			began.add(id, e, d)
		case enquiry.Notified:
			after.add(id, d)
		}
	}
	began.write(b)
	after.write(b)
	return nil
}

// add adds an enquiry.
func (a *asked) add(id uuid.UUID, e event.Recorded[any], d enquiry.Sent) {
	status := enquiry.Queued
	if d.Spam {
		status = enquiry.Skipped
	}
	queued := outcomeOf(status, e.At, "")
	a.ids, a.workspaces, a.companies, a.products = append(a.ids, id), append(a.workspaces, e.Meta.Workspace), append(a.companies, d.Company),
		append(a.products, d.Product)
	a.positions, a.revisions, a.quantities = append(a.positions, int64(e.Position)), append(a.revisions, e.Revision),
		append(a.quantities, d.Quantity)
	a.buyers, a.sources, a.spam, a.times = append(a.buyers, d.Buyer), append(a.sources, d.Source), append(a.spam, d.Spam),
		append(a.times, e.At)
	a.outcomes = append(a.outcomes, outcomes{enquiry.Chat: queued, enquiry.Email: queued, enquiry.CRM: queued}.json())
	a.names, a.emails, a.phones, a.messages = append(a.names, d.Name), append(a.emails, d.Email), append(a.phones, d.Phone),
		append(a.messages, d.Message)
	a.actors, a.why = append(a.actors, e.Meta.Actor), append(a.why, e.Meta.Reason)
}

// write queues the statements.
func (a *asked) write(b *projections.Batch) {
	if len(a.ids) == 0 {
		return
	}
	b.Exec(insertAsked, a.ids, a.positions, a.workspaces, a.companies, a.products, a.buyers, a.names, a.emails, a.phones, a.messages,
		a.quantities, a.sources, a.spam, a.outcomes,
		a.times, a.revisions)
	b.Exec(insertBegun, a.ids, a.revisions, a.workspaces, a.times, a.actors, a.why)
}

// add adds the result of a notification.
func (t *notified) add(id uuid.UUID, d enquiry.Notified) {
	if t.of[id] == nil {
		t.of[id] = outcomes{}
		t.ids = append(t.ids, id)
	}
	t.of[id][d.Port] = outcomeOf(d.Status, d.At, d.Error)
	t.leads[id] = cmp.Or(t.leads[id], d.Lead)
	if d.To == "" {
		return
	}
	n := notice{id, d.Port}
	if _, twice := t.notices[n]; !twice {
		t.sent = append(t.sent, n)
	}
	t.notices[n] = d
}

// write queues the statements.
func (t *notified) write(b *projections.Batch) {
	if len(t.ids) == 0 {
		return
	}
	all, leads := make([]string, len(t.ids)), make([]string, len(t.ids))
	for i, id := range t.ids {
		all[i], leads[i] = t.of[id].json(), t.leads[id]
	}
	b.Exec(setOutcomes, t.ids, all, leads)
	if len(t.sent) == 0 {
		return
	}
	var (
		ids                 []uuid.UUID
		ports, to, statuses []string
		times               []time.Time
		said                []event.Personal
	)
	for _, n := range t.sent {
		d := t.notices[n]
		ids, ports, times = append(ids, n.enquiry), append(ports, string(n.port)), append(times, d.At)
		to, said, statuses = append(to, d.To), append(said, d.Text), append(statuses, d.Status)
	}
	b.Exec(noticeOn, ids, ports, times, to, said, statuses)
}
