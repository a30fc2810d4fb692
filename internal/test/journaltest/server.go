// Package journaltest has a server for journals, in memory, that fails as servers of EventStoreDB do.
package journaltest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
)

// Fault is a fault of an append.
type Fault int

// The faults. After Unreplicated and Dropped, the append counts in the revision that the next appends expect, but no client can read it
// yet.
const (
	None         Fault = iota
	LostRequest        // the append is not written, and the caller gets no response
	LostAnswer         // it is written, and the caller gets no response
	Late               // it is written just before the next append, and the caller gets no response
	Unreplicated       // it is written after the next two appends, and the caller gets no response
	Dropped            // it is dropped after the next two appends, and the caller gets no response
	NotSent            // the server is unreachable
	Silent             // the server does not respond until the caller gives up
)

// Faults lists the faults after which a retry gets a response.
var Faults = []Fault{LostRequest, LostAnswer, Late, Unreplicated, Dropped, NotSent}

// write is an append to a stream.
type write struct {
	stream string
	last   int64
	events []event.Proposed
}

// Server implements [journal.Server].
type Server struct {
	MaxBytes int                             // maximum size of an append
	Written  func(stream string, events int) // called after each successful append, before the response

	mu      sync.Mutex
	streams map[string][]event.Stored
	faults  []Fault
	after   *write // comes before the next append
	pending *write // counts, and cannot be read
	left    int    // appends until pending is written or dropped
	drops   bool
	Appends int // calls that reached the server
}

// New returns a server with the vendor's default limit.
func New() *Server { return &Server{MaxBytes: 1 << 20, streams: map[string][]event.Stored{}} }

// Fail makes the next appends fail, one after another.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Cut removes events from the beginning of a stream, as $maxCount does.
func (s *Server) Cut(stream string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[stream] = s.streams[stream][n:]
}

// LoseTail removes the newest events of a stream.
func (s *Server) LoseTail(stream string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[stream] = slices.Clip(s.streams[stream][:len(s.streams[stream])-n])
}

// Stream returns the events of a stream.
func (s *Server) Stream(stream string) []event.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams[stream])
}

var errNoAnswer = errors.New("no answer")

// Append implements [journal.Server].
func (s *Server) Append(ctx context.Context, stream string, last int64, events []event.Proposed) error {
	fault, err := s.append(write{stream, last, slices.Clone(events)})
	if fault == Silent {
		<-ctx.Done()
		return ctx.Err()
	}
	if err == nil && s.Written != nil {
		s.Written(stream, len(events))
	}
	return err
}

func (s *Server) append(w write) (fault Fault, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) > 0 {
		fault, s.faults = s.faults[0], s.faults[1:]
	}
	if fault == NotSent {
		return fault, journal.ErrNotSent
	}
	s.Appends++
	if s.after != nil {
		_ = s.put(*s.after) // its caller is gone
		s.after = nil
	}
	if s.pending != nil {
		if s.left--; s.left > 0 && w.stream == s.pending.stream {
			return None, journal.ErrMoved
		}
		if !s.drops {
			_ = s.put(*s.pending)
		}
		s.pending = nil
	}
	switch fault {
	case LostRequest, Silent:
		return fault, errNoAnswer
	case LostAnswer:
		_ = s.put(w)
		return fault, errNoAnswer
	case Late:
		s.after = &w
		return fault, errNoAnswer
	case Unreplicated, Dropped:
		if s.check(w) == nil && !s.has(w) {
			s.pending, s.left, s.drops = &w, 2, fault == Dropped
		}
		return fault, errNoAnswer
	default:
		return fault, s.put(w)
	}
}

// has reports whether the events are in the stream after its revision w.last.
func (s *Server) has(w write) bool {
	i := slices.IndexFunc(s.streams[w.stream], func(e event.Stored) bool { return e.Revision == w.last+1 })
	if i < 0 || len(s.streams[w.stream])-i < len(w.events) {
		return false
	}
	return slices.EqualFunc(w.events, s.streams[w.stream][i:i+len(w.events)],
		func(n event.Proposed, e event.Stored) bool { return n.ID == e.ID })
}

func (s *Server) last(stream string) int64 {
	if n := len(s.streams[stream]); n > 0 {
		return s.streams[stream][n-1].Revision
	}
	return -1
}

func (s *Server) check(w write) error {
	bytes := 0
	for _, e := range w.events {
		bytes += len(e.Data) + len(e.Meta) + len(e.Type) + len(e.ID)
	}
	if bytes > s.MaxBytes {
		return &eventstore.TooLarge{Max: int64(s.MaxBytes)}
	}
	if s.last(w.stream) != w.last {
		return journal.ErrMoved
	}
	return nil
}

func (s *Server) put(w write) error {
	if s.has(w) { // the same append, however late
		return nil
	}
	if err := s.check(w); err != nil {
		return err
	}
	for i, e := range w.events {
		s.streams[w.stream] = append(s.streams[w.stream], event.Stored{
			Stream: w.stream, Revision: w.last + 1 + int64(i), ID: e.ID, Type: e.Type, Data: slices.Clone(e.Data), Meta: slices.Clone(e.Meta),
		})
	}
	return nil
}

// Read implements [journal.Server].
func (s *Server) Read(_ context.Context, stream string, from int64, count int) ([]event.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event.Stored
	for _, e := range s.streams[stream] {
		if e.Revision >= from && len(found) < count {
			found = append(found, e)
		}
	}
	return found, nil
}

// Last implements [journal.Server].
func (s *Server) Last(_ context.Context, stream string) (e event.Stored, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.streams[stream]); n > 0 {
		return s.streams[stream][n-1], true, nil
	}
	return e, false, nil
}

// Close implements [journal.Server].
func (s *Server) Close() {}

func (f Fault) String() string {
	return [...]string{"none", "lost request", "lost answer", "late", "unreplicated", "dropped", "not sent", "silent"}[f]
}
