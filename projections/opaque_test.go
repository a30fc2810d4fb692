package projections

import (
	"context"
	"iter"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// opaque is a log with the server's own events between its events, like EventStoreDB. Subscriptions report that they have passed over
// those.
type opaque struct{ eventstore.Store }

const apart = 10 // positions

func (o opaque) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		for batch, err := range o.Store.Subscribe(ctx, after/apart) {
			events := make([]event.Stored, len(batch.Events))
			for i, e := range batch.Events {
				e.Position *= apart
				events[i] = e
			}
			upTo := batch.UpTo * apart
			if !yield(eventstore.Batch{Events: events, UpTo: upTo + 3}, err) || err == nil && !yield(eventstore.Batch{UpTo: upTo + 6}, nil) {
				return
			}
		}
	}
}

func (o opaque) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		if direction == eventstore.Backwards && from < eventstore.End {
			from += apart - 1 // an event before from may be at a position that is not a multiple
		}
		for e, err := range o.Store.ReadAll(ctx, from/apart, direction) {
			e.Position *= apart
			if !yield(e, err) {
				return
			}
		}
	}
}

func (o opaque) Head(ctx context.Context) (event.Position, error) {
	head, err := o.Store.Head(ctx)
	return head * apart, err
}

func TestCheckpointNamesItsEventEvenAfterSkippedEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	log := r.store
	start := func() *running {
		ctx, cancel := context.WithCancel(t.Context())
		p := &running{Runner: NewRunner(opaque{log}, r.pool, r.log), t: t, stopped: make(chan error, 1), cancel: cancel}
		go func() { p.stopped <- p.Run(ctx, seen("seen", nil)) }()
		t.Cleanup(p.stop)
		return p
	}
	there := func(s Status) bool { return s.Working && s.Position == r.head(t)*apart }
	run := start()
	run.until("seen", func(s Status) bool { return s.Working })
	r.add(t, numberedNames(0, 3)...)
	r.addRaw(t, "BankAccountRenamed", `{"name":"b"}`, `{}`) // the projection skips it
	run.until("seen", there)
	run.stop()

	again := start()
	again.until("seen", there)
	again.stop()
	var last uuid.UUID
	require.NoError(t, r.pool.QueryRow(t.Context(), `with gone as (delete from log.event where position > 2 returning id, position) select id from gone order by position desc limit 1`).Scan(&last))
	r.reopen(t)
	log = r.store
	_, err := log.Append(t.Context(), eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, // its request was repeated
		event.New{ID: last, Type: "BankAccountRenamed", Data: []byte(`{"name":"b"}`), Meta: []byte(`{}`)}))
	require.NoError(t, err)
	stopped := start().until("seen", func(s Status) bool { return s.Error != "" })
	require.Contains(t, stopped.Error, "the log has no such event there")
}
