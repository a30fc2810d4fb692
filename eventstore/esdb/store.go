// Package esdb keeps the event log in EventStoreDB or KurrentDB, for logs that outgrow one machine.
//
// The server's guarantees differ from those of [eventstore.Store] in four ways, which this package bridges:
//
//   - Without an exact revision, the server recognises a repeated append only for a limited time. So each append is sent with an exact
//     revision, where it always does; if the caller names none, the stream is read first.
//   - The response to an append has no time, and does not tell a repetition. So the stream is read before and after.
//   - $all includes the server's own events. Reads and the head skip them.
//   - The official client stops for good when it cannot find a server, and then blocks its callers. See connection.
//
// Positions are the server's commit positions: only their order has a meaning. Times are the leader's; if its clock goes
// back, so do they.
package esdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
)

// IdentityStream has the log's id. It is not part of the log.
const IdentityStream = "bahi-identity"

// named is the only event of IdentityStream.
type named struct {
	ID uuid.UUID `json:"id"`
}

// Store is the log. [Open] it once per process.
type Store struct {
	id    uuid.UUID
	conn  *connection
	log   *slog.Logger
	lanes [64]chan struct{} // held by appends to a stream without an exact revision
	heads heads

	outage time.Duration // see defaultOutage

	mu    sync.Mutex
	marks []mark // known positions, from which PositionAt starts
}

var _ eventstore.Store = (*Store)(nil)

// Open connects to the server of a connection string, esdb://user:password@host:port?options, as EventStoreDB documents
// it. The first Open of a log gives it its id.
func Open(ctx context.Context, address string, log *slog.Logger) (*Store, error) {
	config, err := esdb.ParseConnectionString(address)
	if err != nil {
		return nil, misread(address, err)
	}
	s := &Store{log: log, outage: defaultOutage}
	if s.conn, err = connect(config, log); err != nil {
		return nil, fmt.Errorf("EVENTSTORE_URL: %w", err)
	}
	for i := range s.lanes {
		s.lanes[i] = make(chan struct{}, 1)
	}
	if s.id, err = s.identify(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open the event log at %s: %w", config.Address, err)
	}
	return s, nil
}

// misread returns the error of a malformed connection string. The client's own error may quote the password.
func misread(address string, err error) error {
	if u, failed := url.Parse(address); failed == nil && strings.HasPrefix(u.Scheme, "esdb") && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("EVENTSTORE_URL: %w", err)
	}
	return errors.New("EVENTSTORE_URL is not a connection string: esdb://user:password@host:port?options")
}

// Close ends reads and subscriptions, finishes running appends, and refuses waiting ones.
func (s *Store) Close() { s.conn.close() }

// ID implements [eventstore.Store].
func (s *Store) ID() uuid.UUID { return s.id }

// identify returns the log's id, and stores a new one if there is none. Of concurrent processes one stores it, and the others read it.
func (s *Store) identify(ctx context.Context) (uuid.UUID, error) {
	for {
		for e, err := range s.raw(ctx, 1, streamFrom(IdentityStream, 0, eventstore.Forwards)) {
			if err != nil {
				return uuid.Nil, err
			}
			var name named
			if err := json.Unmarshal(e.Data, &name); err != nil || name.ID == uuid.Nil {
				return uuid.Nil, fmt.Errorf("stream %s does not have the log's id", IdentityStream)
			}
			return name.ID, nil
		}
		data, err := json.Marshal(named{ID: uuid.New()})
		if err != nil {
			return uuid.Nil, err
		}
		_, err = s.send(ctx, eventstore.Request{Stream: IdentityStream, Expected: eventstore.NoStream, Events: []event.New{
			{ID: uuid.New(), Type: "LogNamed", Data: data, Meta: []byte(`{"schema":1}`)},
		}})
		if _, lost := errors.AsType[*eventstore.WrongRevision](err); err != nil && !lost {
			return uuid.Nil, err
		}
	}
}

// ours reports whether an event belongs to the log, and not to the server or IdentityStream.
func ours(e *esdb.RecordedEvent) bool {
	return !strings.HasPrefix(e.StreamID, "$") && !strings.HasPrefix(e.EventType, "$") && e.StreamID != IdentityStream
}

func stored(e *esdb.RecordedEvent) event.Stored {
	return event.Stored{
		Position: event.Position(e.Position.Commit), Stream: e.StreamID, Revision: int64(e.EventNumber), ID: e.EventID, Type: e.EventType,
		Data: e.Data, Meta: e.UserMetadata, At: e.CreatedDate.Truncate(time.Microsecond),
	}
}

// ReadStream implements [eventstore.Store].
func (s *Store) ReadStream(ctx context.Context, stream string, from int64, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		if !eventstore.ValidName(stream) {
			return // no stream has such a name
		}
		for e, err := range s.raw(ctx, math.MaxInt64, streamFrom(stream, from, direction)) {
			if err != nil {
				yield(event.Stored{}, fmt.Errorf("read stream %s: %w", stream, err))
				return
			}
			if !yield(stored(e), nil) {
				return
			}
		}
	}
}

// ReadAll implements [eventstore.Store]. EventStoreDB reads only from positions at which an event begins. Callers may name the position
// before or after one: if the server refuses a position, ReadAll tries its neighbour.
func (s *Store) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		if direction == eventstore.Forwards && from >= eventstore.End-1 || direction == eventstore.Backwards && from == 0 {
			if err := ctx.Err(); err != nil {
				yield(event.Stored{}, err)
			}
			return
		}
		began, err := s.readAll(ctx, from, from, direction, yield)
		switch {
		case err == nil || began || !isPlace(ctx, err):
		case direction == eventstore.Forwards:
			_, err = s.readAll(ctx, from, from+1, direction, yield)
		default:
			var more bool
			if more, err = s.yieldAt(ctx, from-1, yield); more {
				_, err = s.readAll(ctx, from, from-1, direction, yield)
			}
		}
		if err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log from %d: %w", from, err))
		}
	}
}

// readAll yields the events after or before a position that the server accepts. began reports whether the read began.
func (s *Store) readAll(
	ctx context.Context, from, place event.Position, direction eventstore.Direction, yield func(event.Stored, error) bool,
) (began bool, err error) {
	for e, err := range s.raw(ctx, math.MaxInt64, allFrom(place, direction)) {
		if err != nil {
			return began, err
		}
		began = true
		if !ours(e) || direction == eventstore.Forwards && event.Position(e.Position.Commit) <= from {
			continue // forwards, the read begins with the event at the position itself
		}
		if !yield(stored(e), nil) {
			return true, nil
		}
	}
	return began, nil
}

// yieldAt yields the event at a position, if there is one, and reports whether to go on.
func (s *Store) yieldAt(ctx context.Context, place event.Position, yield func(event.Stored, error) bool) (more bool, err error) {
	for e, err := range s.raw(ctx, 1, allFrom(place, eventstore.Forwards)) {
		if err != nil {
			return false, err
		}
		if event.Position(e.Position.Commit) == place && ours(e) {
			return yield(stored(e), nil), nil
		}
	}
	return true, nil
}

// isPlace reports whether a read probably failed because no event begins at its position.
func isPlace(ctx context.Context, err error) bool { return ctx.Err() == nil && !isAway(err) }

// opening starts a read of at most count events.
type opening func(ctx context.Context, client *esdb.Client, count uint64) (*esdb.ReadStream, error)

func streamFrom(stream string, from int64, direction eventstore.Direction) opening {
	options := esdb.ReadStreamOptions{From: esdb.Revision(uint64(max(from, 0)))}
	if direction == eventstore.Backwards {
		options.Direction = esdb.Backwards
		if from == eventstore.LastRevision {
			options.From = esdb.End{}
		}
	}
	return func(ctx context.Context, client *esdb.Client, count uint64) (*esdb.ReadStream, error) {
		return client.ReadStream(ctx, stream, options, count)
	}
}

func allFrom(from event.Position, direction eventstore.Direction) opening {
	options := esdb.ReadAllOptions{From: esdb.Position{Commit: uint64(from), Prepare: uint64(from)}}
	switch {
	case from == 0:
		options.From = esdb.Start{}
	case from >= eventstore.End:
		options.From = esdb.End{}
	}
	if direction == eventstore.Backwards {
		options.Direction = esdb.Backwards
	}
	return func(ctx context.Context, client *esdb.Client, count uint64) (*esdb.ReadStream, error) {
		return client.ReadAll(ctx, options, count)
	}
}

// readAhead is the number of events that may wait for the reader.
const readAhead = 128

// raw reads the server's events. A missing stream yields nothing.
func (s *Store) raw(ctx context.Context, count uint64, open opening) iter.Seq2[*esdb.RecordedEvent, error] {
	type read struct {
		event *esdb.RecordedEvent
		err   error
	}
	return func(yield func(*esdb.RecordedEvent, error) bool) {
		ctx, cancel := s.conn.within(ctx)
		defer cancel()
		events := make(chan read, readAhead)
		err := s.conn.run(ctx, func(client *esdb.Client) error {
			defer close(events)
			stream, err := open(ctx, client, count)
			if err == nil {
				defer stream.Close()
			}
			for err == nil {
				var resolved *esdb.ResolvedEvent
				if resolved, err = stream.Recv(); err != nil || resolved.Event == nil {
					continue
				}
				select {
				case events <- read{event: resolved.Event}:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if !ended(err) {
				select {
				case events <- read{err: err}:
				case <-ctx.Done():
				}
			}
			return err
		})
		if err != nil {
			yield(nil, err)
			return
		}
		late := time.NewTimer(answerWithin)
		defer late.Stop()
		for {
			select {
			case r, more := <-events:
				late.Stop()
				switch {
				case ctx.Err() != nil:
					yield(nil, context.Cause(ctx))
				case !more:
				case r.err != nil:
					yield(nil, unreachable(r.err))
				default:
					if yield(r.event, nil) {
						continue
					}
				}
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
			case <-late.C:
				yield(nil, s.conn.silent())
			}
			return
		}
	}
}
