package commands

import (
	"context"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Loaded is a stream's state.
type Loaded[S any] struct {
	State     S
	Revision  int64          // revision of the last event; -1: there is no such stream
	Position  event.Position // position of the last event
	At        time.Time      // when its last event was recorded
	CreatedAt time.Time      // when its first event was recorded
	Workspace uuid.UUID      // workspace of the first event

	bytes int            // size of its events' payloads
	end   event.Position // end of the transaction that wrote the last event
	asOf  known          // newest event that this process knew before it read the stream
}

// and returns the stream's state after its next event. bytes is the size of the event's payload.
func (l Loaded[S]) and(kind *event.Kind[S], r event.Recorded[event.Event[S]], bytes int) Loaded[S] {
	if l.Revision < 0 {
		l.Workspace, l.CreatedAt = r.Meta.Workspace, r.At
	}
	l.State, l.Revision, l.Position, l.At, l.bytes = kind.Evolve(l.State, r), r.Revision, r.Position, r.At, l.bytes+bytes
	l.end = r.Position + event.Position(r.Meta.More)
	return l
}

// Source is the source of states for [Load]: [Handler.Cached], [Handler.Fresh] or a [Tx].
type Source interface{ source() source }

type source struct {
	h     *Handler
	fresh bool
	tx    *Tx
}

func (s source) source() source { return s }

// Load returns the state of a stream.
func Load[S any](ctx context.Context, from Source, kind *event.Kind[S], id string) (Loaded[S], error) {
	s := from.source()
	if s.tx != nil {
		r, err := read(ctx, s.tx, kind, id)
		return r.now, err
	}
	stream, asOf := kind.Stream(id), s.h.cache.newest()
	l := Loaded[S]{Revision: -1}
	if entry, ok := s.h.cache.get(stream); ok {
		l, _ = entry.loaded.(Loaded[S])
		l.asOf = asOf
		if !s.fresh {
			return l, nil
		}
	}
	t := s.h.cache.begin(stream)
	l, err := readOn(ctx, s.h, kind, stream, l, newest)
	l.asOf = asOf
	if err != nil {
		s.h.cache.end(t, nil)
		return l, err
	}
	s.h.cache.end(t, &cached{loaded: l, revision: l.Revision, bytes: l.bytes})
	return l, nil
}

// LoadAt returns a stream's state at a position of the log.
func LoadAt[S any](ctx context.Context, h *Handler, kind *event.Kind[S], id string, position event.Position) (Loaded[S], error) {
	return readOn(ctx, h, kind, kind.Stream(id), Loaded[S]{Revision: -1}, end{eventstore.LastRevision, position})
}

// loaders is the number of records that are loaded concurrently.
const loaders = 16

// InParallel calls load for 0 to count-1, some concurrently. It returns the first error.
func InParallel(count int, load func(n int) error) error {
	var all errgroup.Group
	all.SetLimit(loaders)
	for n := range count {
		all.Go(func() error { return load(n) })
	}
	return all.Wait()
}

// LoadCached returns this process's cached state of a record, which may lag behind the log. It reads the log if there is none.
func LoadCached[S any](ctx context.Context, h *Handler, kind *event.Kind[S], id string, there func(S) bool) (Loaded[S], error) {
	l, err := Load(ctx, h.Cached(), kind, id)
	if err == nil && !there(l.State) {
		l, err = Load(ctx, h.Fresh(), kind, id)
	}
	return l, err
}

// end is the last event of a stream that is read, by revision and by position.
type end struct {
	revision int64
	position event.Position
}

// newest is the end of a stream as it is now.
var newest = end{eventstore.LastRevision, eventstore.End}

// readOn applies to l the later events of its stream, up to last.
func readOn[S any](ctx context.Context, h *Handler, kind *event.Kind[S], stream string, l Loaded[S], last end) (Loaded[S], error) {
	for stored, err := range h.store.ReadStream(ctx, stream, l.Revision+1, eventstore.Forwards) {
		if err != nil {
			return l, err
		}
		if stored.Revision > last.revision || stored.Position > last.position {
			break
		}
		r, err := kind.Decode(stored)
		if err != nil {
			return l, err
		}
		l = l.and(kind, r, len(stored.Data))
	}
	return l, nil
}
