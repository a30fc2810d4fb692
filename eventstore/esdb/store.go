// Package esdb keeps the event log in EventStoreDB or KurrentDB, for logs that outgrow one machine.
//
// The server's guarantees differ from those of [eventstore.Store] in some ways, which this package bridges:
//
//   - Without an exact revision, the server recognises a repeated append only for a limited time. So each append is sent with an exact
//     revision, where it always does; if the caller names none, the stream is read first.
//   - The response to an append has no time, and does not tell a repetition. So the stream is read before and after an append of events
//     that another call may have appended.
//   - $all includes the server's own events. Reads and the head skip them.
//   - $all can be read only from the position of an event. So the store names only positions that the server has told: see places.
//   - The official client stops for good when it cannot find a server, and then blocks its callers. See connection. It has no call for
//     many appends at once. See batches.
//
// Positions are the server's commit positions: only their order has a meaning. Times are the leader's. Each event has its own, also
// those of one append; the last event of an append says when it took place.
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
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	id      uuid.UUID
	conn    *connection
	batches *batches
	log     *slog.Logger
	lanes   [64]chan struct{} // held by appends to a stream without an exact revision
	heads   heads
	told    told
	tail    tail
	places  atomic.Pointer[Places]

	outage time.Duration // see defaultOutage
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
	s.batches = &batches{config: config, conn: s.conn}
	for i := range s.lanes {
		s.lanes[i] = make(chan struct{}, 1)
	}
	if err = s.checkVersion(ctx); err == nil {
		s.id, err = s.identify(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open the event log at %s: %w", config.Address, err)
	}
	return s, nil
}

// leastVersion is the first server that reports that a subscription has caught up.
var leastVersion = esdb.ServerVersion{Major: 23, Minor: 10}

// checkVersion returns an error if the server is too old.
func (s *Store) checkVersion(ctx context.Context) error {
	ctx, cancel := s.conn.within(ctx)
	defer cancel()
	v, _, err := do(ctx, s.conn, func(client *esdb.Client) (*esdb.ServerVersion, error) { return client.GetServerVersion() })
	switch {
	case err != nil:
		return err
	case v.Major < leastVersion.Major, v.Major == leastVersion.Major && v.Minor < leastVersion.Minor:
		return fmt.Errorf("%w: its version is %d.%d.%d, and Bahi needs %d.%d or newer, which reports that a subscription has caught up",
			errRefused, v.Major, v.Minor, v.Patch, leastVersion.Major, leastVersion.Minor)
	}
	return nil
}

// CheckAddress returns the error of a malformed connection string. It connects to nothing.
func CheckAddress(address string) error {
	if _, err := esdb.ParseConnectionString(address); err != nil {
		return misread(address, err)
	}
	return nil
}

// misread returns the error of a malformed connection string. The client's own error may quote the password.
func misread(address string, err error) error {
	if u, failed := url.Parse(address); failed == nil && strings.HasPrefix(u.Scheme, "esdb") && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("EVENTSTORE_URL: %w", err)
	}
	return errors.New("EVENTSTORE_URL is not a connection string: esdb://user:password@host:port?options")
}

// Close ends reads and subscriptions, finishes running appends, and refuses waiting ones.
func (s *Store) Close() {
	s.conn.close()
	s.batches.close()
}

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
		_, err = s.send(ctx, eventstore.Write{Stream: IdentityStream, Expected: eventstore.NoStream, Events: []event.New{
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

// ReadAll implements [eventstore.Store].
func (s *Store) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		if direction == eventstore.Forwards && from >= eventstore.End-1 || direction == eventstore.Backwards && from == 0 {
			if err := ctx.Err(); err != nil {
				yield(event.Stored{}, err)
			}
			return
		}
		find := s.placeBefore
		if direction == eventstore.Backwards {
			find = s.placeFrom
			if e, known := s.eventAt(ctx, from-1); known { // mostly, callers want the event at a position that they know
				if from--; ours(e) && !yield(stored(e), nil) || from == 0 {
					return
				}
			}
		}
		place, err := find(ctx, from)
		began, count := false, uint64(math.MaxInt64)
		if direction == eventstore.Backwards {
			count = 1 // mostly no more is wanted
		}
		once := func(e event.Stored, err error) bool { began = true; return yield(e, err) }
		if err == nil {
			err = s.readAll(ctx, from, place, direction, count, once)
		}
		if isNoPlace(err) && !began { // the log lost it
			s.log.Warn("the log no longer has an event that was read from it; reading from the beginning or the end", "position", place)
			s.told.forget()
			place = 0
			if direction == eventstore.Backwards {
				place = eventstore.End
			}
			err = s.readAll(ctx, from, place, direction, count, once)
		}
		if err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log from %d: %w", from, err))
		}
	}
}

// eventAt returns the event at a position, if this process knows of one there.
func (s *Store) eventAt(ctx context.Context, at event.Position) (*esdb.RecordedEvent, bool) {
	if !s.told.has(at) {
		return nil, false
	}
	for e, err := range s.raw(ctx, 1, allFrom(at, eventstore.Forwards)) {
		return e, err == nil && event.Position(e.Position.Commit) == at // after an error the caller's own read tells it
	}
	return nil, false
}

// mostAtOnce limits the events of each call of a read after the first.
const mostAtOnce = 4096

// readAll yields the events after or before a position. The server begins at place, which is at the position or on its other side. The
// first call asks for count events: what the server sends ahead costs it, also if the reader stops.
func (s *Store) readAll(
	ctx context.Context, from, place event.Position, direction eventstore.Direction, count uint64, yield func(event.Stored, error) bool,
) error {
	for {
		read := uint64(0)
		for e, err := range s.raw(ctx, count, allFrom(place, direction)) {
			if err != nil {
				return err
			}
			read++
			place = event.Position(e.Position.Commit)
			s.told.saw(e)
			if !ours(e) || direction == eventstore.Forwards && place <= from || direction == eventstore.Backwards && place >= from {
				continue
			}
			if !yield(stored(e), nil) {
				return nil
			}
		}
		if read < count || place == 0 {
			return nil
		}
		if direction == eventstore.Forwards {
			from = max(from, place) // the next call begins with the last event of this one
		}
		count = min(16*count, mostAtOnce)
	}
}

// isNoPlace reports whether the server refused a read because no event begins at its position.
func isNoPlace(err error) bool {
	answer, is := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	return is && answer.GRPCStatus().Code() == codes.Unknown
}

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
		err := s.conn.run(ctx, func(call context.Context, client *esdb.Client) error {
			defer close(events)
			stream, err := open(call, client, count)
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
