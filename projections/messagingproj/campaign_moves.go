package messagingproj

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/projections"
)

// moveAll moves recipients from one of several states to another, and updates the sums of their blocks. The sums count each recipient in
// its last state: a message that was read was also delivered. The total excludes skipped recipients.
const moveAll = `
	with was as (
		select r.id, r.block_id, r.state as was, m.state, m.at
		from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[]) m (id, state, froms, at) join recipient r on r.id = m.id
		where r.state = any(string_to_array(m.froms, ','))),
	moved as (
		update recipient r set state = was.state, since = was.at, called_at = case when was.state = 'calling' then was.at else r.called_at end
		from was where r.id = was.id)
	update block set
		sent = block.sent + d.sent, delivered = block.delivered + d.delivered, read = block.read + d.read, failed = block.failed + d.failed,
		total = block.total - d.skipped, skipped = block.skipped + d.skipped
	from (
		select block_id,
			sum((state in ('sent', 'delivered', 'read'))::int - (was in ('sent', 'delivered', 'read'))::int) as sent,
			sum((state in ('delivered', 'read'))::int - (was in ('delivered', 'read'))::int) as delivered,
			sum((state = 'read')::int - (was = 'read')::int) as read,
			sum((state in ('failed', 'refused'))::int - (was in ('failed', 'refused'))::int) as failed,
			sum((state = 'skipped')::int) as skipped
		from was group by block_id) d
	where block.id = d.block_id`

// moveTypes are the types of the events that move recipients.
func moveTypes() []string {
	return domain.Catalogue.NamesOf(
		reflect.TypeFor[message.Queued](), reflect.TypeFor[message.Requeued](), reflect.TypeFor[message.Accepted](),
		reflect.TypeFor[message.Skipped](),
		reflect.TypeFor[message.Failed](), reflect.TypeFor[message.Reported](),
	)
}

// moveOf returns the state to which an event moves the recipient of its message, and the allowed previous states.
func moveOf(e any) (to string, from []string) {
	switch e := e.(type) {
	case message.Queued:
		return "calling", []string{"open"}
	case message.Requeued:
		return "calling", []string{"held", "calling"}
	case message.Accepted:
		return "sent", []string{"calling"}
	case message.Skipped:
		return "skipped", []string{"open", "held"}
	case message.Failed:
		switch {
		case e.Reason == network.Unknown: // the message may have been sent
			return "", nil
		case e.Reason.Stops():
			return "held", []string{"calling"}
		case e.Reason == network.Lost: // the message may have been sent, too
			return "failed", []string{"calling"}
		}
		return "refused", []string{"calling"}
	case message.Reported:
		return e.Status, []string{"calling", "held", "sent", "refused", "failed", "delivered"}
	}
	return "", nil
}

// wave has at most one move of each message.
type wave struct {
	ids       []int64
	to, froms []string
	at        []time.Time
}

// foldMoves moves recipients in waves: the first wave has the first move of each message, the second wave the second. A statement per move
// would update a block's row a thousand times in one transaction, and read all its previous versions each time.
func foldMoves(_ context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	var waves []wave
	moves := map[int64]int{}
	for _, e := range events {
		to, from := moveOf(e.Data)
		if to == "" {
			continue
		}
		id, err := strconv.ParseInt(e.StreamID(), 10, 64)
		if err != nil {
			return fmt.Errorf("the message of %s: %w", e.Stream, err)
		}
		nth := moves[id]
		if moves[id]++; nth == len(waves) {
			waves = append(waves, wave{})
		}
		w := &waves[nth]
		w.ids, w.to, w.froms, w.at = append(w.ids, id), append(w.to, to), append(w.froms, strings.Join(from, ",")), append(w.at, e.At)
	}
	for _, w := range waves {
		b.Exec(moveAll, w.ids, w.to, w.froms, w.at)
	}
	return nil
}
