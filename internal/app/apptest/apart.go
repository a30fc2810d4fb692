package apptest

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/gateway"
)

// Apart is a log with positions like EventStoreDB's, the places of records in its files: there are gaps between them, also within
// one append, and reading can begin only where a record begins.
type Apart struct{ eventstore.Store }

// stride is the distance between positions.
const stride = 977

func out(at event.Position) event.Position { return at * stride }

func noPlace(at event.Position) error {
	return fmt.Errorf("%w: no event begins at %d", eventstore.ErrBadEvent, at)
}

func (a Apart) each(events iter.Seq2[event.Stored, error]) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for e, err := range events {
			e.Position = out(e.Position)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (a Apart) Append(ctx context.Context, stream string, expected eventstore.Expected, events ...event.New) (eventstore.Appended, error) {
	done, err := a.Store.Append(ctx, stream, expected, events...)
	done.Position = out(done.Position)
	return done, err
}

func (a Apart) ReadStream(ctx context.Context, stream string, from int64, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return a.each(a.Store.ReadStream(ctx, stream, from, direction))
}

func (a Apart) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	place := from
	if direction == eventstore.Forwards && from > 0 {
		place++ // the gateway asks for the events after the place before
	}
	if place%stride != 0 && place != eventstore.End {
		return func(yield func(event.Stored, error) bool) {
			yield(event.Stored{}, noPlace(place))
		}
	}
	if place != eventstore.End {
		place /= stride
	}
	if direction == eventstore.Forwards && from > 0 {
		place--
	}
	return a.each(a.Store.ReadAll(ctx, place, direction))
}

func (a Apart) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		if after%stride != 0 {
			yield(eventstore.Batch{}, noPlace(after))
			return
		}
		for batch, err := range a.Store.Subscribe(ctx, after/stride) {
			events := make([]event.Stored, len(batch.Events))
			for i, e := range batch.Events { // other readers of the batch share its events
				e.Position = out(e.Position)
				events[i] = e
			}
			if !yield(eventstore.Batch{Events: events, UpTo: out(batch.UpTo)}, err) {
				return
			}
		}
	}
}

func (a Apart) Head(ctx context.Context) (event.Position, error) {
	head, err := a.Store.Head(ctx)
	return out(head), err
}

func (a Apart) PositionAt(ctx context.Context, at time.Time) (event.Position, error) {
	found, err := a.Store.PositionAt(ctx, at)
	return out(found), err
}

// Served returns the connection string of a gateway for a log.
func Served(t testing.TB, log eventstore.Store) string {
	t.Helper()
	dir := t.TempDir()
	ca, err := gateway.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	g := gateway.New(gateway.Config{
		Store: log, Writable: true, TLS: ca.TLS(), Log: slog.New(slog.DiscardHandler), Authenticate: func(context.Context, string) error { return nil },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return "esdb://bahi:key@" + listener.Addr().String() + "?tlsCAFile=" + filepath.Join(dir, "ca.crt")
}
