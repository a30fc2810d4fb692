package messagingproj

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/projections"
)

// turnTypes are the types of the events that create a message or change its status.
func turnTypes() []string {
	return domain.Catalogue.NamesOf(
		reflect.TypeFor[message.Queued](), reflect.TypeFor[message.Received](), reflect.TypeFor[message.Accepted](),
		reflect.TypeFor[message.Failed](),
		reflect.TypeFor[message.Requeued](), reflect.TypeFor[message.Skipped](), reflect.TypeFor[message.Reported](),
		reflect.TypeFor[message.Identified](),
	)
}

// begun is a message that a batch creates.
type begun struct {
	said             message.Content
	channel, contact int64
	workspace        uuid.UUID
	actor            string
	at, arrived      time.Time
	reacts           *string
	position         int64
	inbound          bool
}

// turn is the change of a message in a batch.
type turn struct {
	provider, network *string // new ids

	settled  bool // the batch sets the status and its reason
	accepted bool // the network accepted the message before any other status: a queued message becomes sent
	status   string
	reason   network.Reason
	code     int
	title    event.Personal
	details  event.Personal

	position *int64

	reached time.Time // when a receipt first reported its delivery; zero: none did
}

// settle sets the status and its reason.
func (t *turn) settle(status string, reason network.Reason, code int, title, details event.Personal) {
	t.settled, t.accepted = true, false
	t.status, t.reason, t.code, t.title, t.details = status, reason, code, title, details
}

// accept records that the network accepted the message. A receipt may have arrived before.
func (t *turn) accept() {
	switch {
	case !t.settled:
		t.accepted = true
	case t.status == message.Waiting:
		t.settle(message.Sent, "", 0, event.Personal{}, event.Personal{})
	}
}

// turns are the messages of a batch, in the order of their first events.
type turns struct {
	ids   []int64
	began map[int64]begun
	of    map[int64]*turn
}

// foldTurns folds the messages of a batch in memory and writes them with at most four statements. A statement for each of a message's four
// events would take half of Postgres's work for a sent text.
func foldTurns(_ context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	all := turns{began: map[int64]begun{}, of: map[int64]*turn{}}
	for _, e := range events {
		id, err := strconv.ParseInt(e.StreamID(), 10, 64)
		if err != nil {
			return fmt.Errorf("the message of %s: %w", e.Stream, err)
		}
		all.add(id, e)
	}
	all.write(b)
	return nil
}

// add folds an event.
func (all *turns) add(id int64, e event.Recorded[any]) {
	t := all.of[id]
	if t == nil {
		t = &turn{}
		all.of[id] = t
		all.ids = append(all.ids, id)
	}
	at := int64(e.Position)
	begin := func(b begun) {
		b.workspace, b.actor, b.position = e.Meta.Workspace, e.Meta.Actor, at
		all.began[id] = b
		t.position = &at
	}
	switch d := e.Data.(type) {
	case message.Queued:
		begin(begun{said: d.Content, channel: d.Channel, contact: d.Contact, at: e.At, arrived: e.At})
		t.settle(message.Waiting, "", 0, event.Personal{}, event.Personal{})
	case message.Received:
		var reacts *string
		if d.Reacts != "" {
			reacts = &d.Reacts
		}
		begin(begun{said: d.Content, channel: d.Channel, contact: d.Contact, at: d.SentAt, arrived: byNetwork(d.ArrivedAt, e.At),
			reacts: reacts, inbound: true})
		var reason network.Reason
		if d.Code != 0 {
			reason = network.Content
		}
		t.settle(message.Inbound, reason, d.Code, d.Title, d.Details)
		if d.ProviderID != "" {
			t.provider = &d.ProviderID
		}
	case message.Accepted:
		t.provider, t.position = &d.ProviderID, &at
		t.accept()
	case message.Failed:
		status := message.NotSent
		if d.Reason == network.Unknown || d.Reason.Stops() && strings.HasPrefix(e.Meta.Actor, "campaign:") { // a campaign sends it later
			status = message.Waiting
		}
		t.settle(status, d.Reason, d.Code, d.Title, d.Details)
		t.position = &at
	case message.Skipped: // the message may have no row
		t.settle(message.NotSent, network.PassedOver, 0, event.Personal{}, event.Personal{})
		t.position = &at
	case message.Requeued:
		t.settle(message.Waiting, "", 0, event.Personal{}, event.Personal{})
		t.position = &at
	case message.Reported:
		s := d.Evolve(message.State{})
		t.settle(s.Status, s.Reason, s.Code, d.Title, d.Details)
		t.position = &at
		if t.reached.IsZero() && (d.Status == message.Delivered || d.Status == message.Read) {
			t.reached = byNetwork(d.At, e.At)
		}
	case message.Identified:
		t.network = &d.NetworkID
	}
}

// insertBegun adds messages.
const insertBegun = `
	insert into message (id, workspace_id, channel_id, contact_id, inbound, type, text, media_url, status, reason, code, title, details,
		provider_id, network_id, at, actor, began, position, arrived_at, reacts)
	select id, workspace_id, channel_id, contact_id, inbound, type, text, media_url, status, nullif(reason, ''), nullif(code, 0), title,
		details, provider_id, network_id, at, actor, began, position, arrived_at, reacts
	from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[], $7::text[], $8::text[], $9::text[],
		$10::text[], $11::bigint[], $12::text[], $13::text[],
		$14::text[], $15::text[], $16::timestamptz[], $17::text[], $18::bigint[], $19::bigint[], $20::timestamptz[], $21::text[])
		n (id, workspace_id, channel_id, contact_id, inbound, type, text, media_url, status, reason, code, title, details, provider_id,
			network_id, at, actor, began, position, arrived_at, reacts)`

// talkOn updates conversations with new messages, except reactions. A new message is unread if it is newer than the conversation's read
// mark.
const talkOn = `
	insert into conversation as c (contact_id, workspace_id, last_at, unread)
	select n.contact_id, n.workspace_id, max(n.at), count(*) filter (where n.inbound
		and (r.read_at is null or (n.at, n.arrived_at, n.began) > (r.read_at, r.read_arrived, r.read_began)))
	from unnest($1::bigint[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::boolean[], $7::text[]) n (contact_id,
		workspace_id, at, arrived_at, began, inbound, type)
	left join conversation r on r.contact_id = n.contact_id
	where n.type <> 'reaction'
	group by 1, 2
	on conflict (contact_id) do update set last_at = greatest(c.last_at, excluded.last_at), unread = c.unread + excluded.unread`

// replaceReactions deletes a contact's older reactions to a message when a newer one replaces them. They may be of this batch or older.
const replaceReactions = `
	update message m set text = null, deleted_at = newer.at, position = greatest(m.position, newer.began)
	from (
		select distinct on (o.id) o.id, n.at, n.began from message begun join message o on o.contact_id = begun.contact_id
			and o.reacts = begun.reacts
			join message n on n.contact_id = o.contact_id and n.reacts = o.reacts and (n.at, n.arrived_at, n.began) > (o.at, o.arrived_at, o.began)
		where begun.id = any($1) and o.deleted_at is null order by o.id, n.began) newer
	where m.id = newer.id`

// countReplies counts the messages that are delivered in this batch. Messages that were created before the batch may have been delivered
// before.
const countReplies = `
	insert into reply as r (channel_id, workspace_id, quarter, count)
	select m.channel_id, m.workspace_id, date_bin('15 minutes', n.at, timestamptz '2000-01-01 00:00Z'), count(*)
	from unnest($1::bigint[], $2::boolean[], $3::timestamptz[]) n (id, begins, at) join message m on m.id = n.id
	where m.type <> 'template' and (n.begins or m.status not in ('delivered', 'read'))
	group by 1, 2, 3
	on conflict (channel_id, quarter) do update set count = r.count + excluded.count`

// turnOn updates messages that were created before the batch.
const turnOn = `
	update message m set
		provider_id = coalesce(n.provider_id, m.provider_id), network_id = coalesce(n.network_id, m.network_id), position = coalesce(n.position,
			m.position),
		status = case when n.settled then n.status when n.accepted and m.status = 'queued' then 'sent' else m.status end,
		reason = case when n.settled then nullif(n.reason, '') when n.accepted and m.status = 'queued' then null else m.reason end,
		code = case when n.settled then nullif(n.code, 0) when n.accepted and m.status = 'queued' then null else m.code end,
		title = case when n.settled then n.title when n.accepted and m.status = 'queued' then null else m.title end,
		details = case when n.settled then n.details when n.accepted and m.status = 'queued' then null else m.details end
	from unnest($1::bigint[], $2::boolean[], $3::boolean[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[],
		$10::text[], $11::bigint[])
		n (id, settled, accepted, status, reason, code, title, details, provider_id, network_id, position)
	where m.id = n.id`

// settlements are the changes of messages, as columns.
type settlements struct {
	ids               []int64
	settled, accepted []bool
	status, reason    []string
	code              []int64
	title, details    []event.Personal
	provider, network []*string
	position          []*int64
}

func (s *settlements) add(id int64, t *turn) {
	s.ids, s.settled, s.accepted = append(s.ids, id), append(s.settled, t.settled), append(s.accepted, t.accepted)
	s.status, s.reason, s.code = append(s.status, t.status), append(s.reason, string(t.reason)), append(s.code, int64(t.code))
	s.title, s.details = append(s.title, t.title), append(s.details, t.details)
	s.provider, s.network, s.position = append(s.provider, t.provider), append(s.network, t.network), append(s.position, t.position)
}

// write queues the statements.
func (all *turns) write(b *projections.Batch) {
	var (
		now, later       settlements
		workspaces       []uuid.UUID
		channels, people []int64
		inbound          []bool
		types, actors    []string
		texts, images    []event.Personal
		times, arrivals  []time.Time
		reacts           []*string
		reactions        []int64
		positions        []int64
		reached          []int64
		begin            []bool
		moments          []time.Time
	)
	for _, id := range all.ids {
		m, begins := all.began[id]
		if at := all.of[id].reached; !at.IsZero() {
			reached, begin, moments = append(reached, id), append(begin, begins), append(moments, at)
		}
		if !begins {
			later.add(id, all.of[id])
			continue
		}
		now.add(id, all.of[id])
		workspaces, channels, people = append(workspaces, m.workspace), append(channels, m.channel), append(people, m.contact)
		inbound, arrivals, reacts = append(inbound, m.inbound), append(arrivals, m.arrived), append(reacts, m.reacts)
		if m.reacts != nil {
			reactions = append(reactions, id)
		}
		types, actors, texts, images = append(types, m.said.Type), append(actors, m.actor), append(texts, m.said.Text),
			append(images, m.said.Image)
		times, positions = append(times, m.at), append(positions, m.position)
	}
	if len(now.ids) > 0 {
		b.Exec(insertBegun, now.ids, workspaces, channels, people, inbound, types, texts, images, now.status, now.reason, now.code,
			now.title, now.details,
			now.provider, now.network, times, actors, positions, now.position, arrivals, reacts)
		b.Exec(talkOn, people, workspaces, times, arrivals, positions, inbound, types)
	}
	if len(reactions) > 0 {
		b.Exec(replaceReactions, reactions)
	}
	if len(reached) > 0 {
		b.Exec(countReplies, reached, begin, moments)
	}
	if len(later.ids) > 0 {
		b.Exec(turnOn, later.ids, later.settled, later.accepted, later.status, later.reason, later.code, later.title, later.details,
			later.provider, later.network, later.position)
	}
}
