package esdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// answerWithin limits one try of an append.
	answerWithin = 5 * time.Second

	// resolveWithin limits all tries to learn the outcome of an append.
	resolveWithin = 15 * time.Second

	retryEvery = 50 * time.Millisecond
)

// Append implements [eventstore.Store]. It refuses a transaction that is not one write.
func (s *Store) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if err := single(t); err != nil {
		return eventstore.Appended{}, err
	}
	return s.appendWrite(ctx, t.Writes[0])
}

func single(t eventstore.Transaction) error {
	if len(t.Writes) != 1 || len(t.Checks) > 0 {
		return fmt.Errorf("%w: EventStoreDB appends to one stream", eventstore.ErrBadEvent)
	}
	return nil
}

func (s *Store) appendWrite(ctx context.Context, r eventstore.Write) (eventstore.Appended, error) {
	expected, events := r.Expected, r.Events
	if err := check(r); err != nil {
		return eventstore.Appended{}, err
	}
	r = owned(r)
	waiting, cancel := s.conn.within(ctx)
	defer cancel()
	if expected < eventstore.NoStream {
		return s.appendOpen(waiting, r)
	}
	if isNew(events) {
		return s.send(waiting, r)
	}
	// The server does not tell a repeated append from a first one, so look for an earlier one before, and whose it was after.
	found, err := s.find(waiting, r)
	if err != nil || found.Replayed {
		return found, err
	}
	return s.sendKnown(waiting, r)
}

// isNew reports whether no event was appended before: see [eventstore.Store.Append].
func isNew(events []event.New) bool {
	return !slices.ContainsFunc(events, func(e event.New) bool { return e.ID.Version() != 7 })
}

// sendKnown is send for events that another caller may append at the same time, with other contents. It reads back whose they are.
func (s *Store) sendKnown(ctx context.Context, r eventstore.Write) (eventstore.Appended, error) {
	done, err := s.send(ctx, r)
	if err != nil {
		return done, err
	}
	ctx, finish, open := s.conn.whole(ctx) // what is appended is to be answered
	if !open {
		return done, errClosed
	}
	defer finish()
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	for {
		found, err := s.readBack(ctx, r, done)
		if !errors.Is(err, eventstore.ErrUnavailable) {
			return found, err
		}
		if pause(ctx, retryEvery) != nil {
			return done, fmt.Errorf("%w: %s", eventstore.ErrInDoubt, text(err))
		}
	}
}

// readBack reads when appended events were recorded, and whether they are another caller's.
func (s *Store) readBack(ctx context.Context, r eventstore.Write, done eventstore.Appended) (eventstore.Appended, error) {
	first, n := done.Revision-int64(len(r.Events))+1, 0
	for e, err := range s.raw(ctx, uint64(len(r.Events)), streamFrom(r.Stream, first, eventstore.Forwards)) {
		if err != nil {
			return done, err
		}
		if n == len(r.Events) || e.EventID != r.Events[n].ID {
			break
		}
		done.Replayed = done.Replayed || !bytes.Equal(e.Data, r.Events[n].Data) || !bytes.Equal(e.UserMetadata, r.Events[n].Meta)
		done.At = stored(e).At
		n++
	}
	if n < len(r.Events) {
		return done, fmt.Errorf("stream %s does not have the events that the server reported at revision %d", r.Stream, done.Revision)
	}
	return done, nil
}

// AppendEach implements [eventstore.Store]. Appends at exact revisions are sent without waiting for each other, and take place in their
// order. It does not look for earlier appends of the same events: the server appends none twice.
func (s *Store) AppendEach(ctx context.Context, all []eventstore.Transaction) []eventstore.Result {
	results, appends := make([]eventstore.Result, len(all)), make([]eventstore.Write, len(all))
	for i, t := range all {
		if err := single(t); err != nil {
			t.Writes = []eventstore.Write{{}} // which is refused
		}
		appends[i] = t.Writes[0]
	}
	for from := 0; from < len(appends); {
		to := from
		for to < len(appends) && appends[to].Expected >= eventstore.NoStream {
			to++
		}
		s.appendRun(ctx, appends[from:to], results[from:to])
		if to < len(appends) {
			r := appends[to]
			results[to].Appended, results[to].Err = s.appendWrite(ctx, r)
			to++
		}
		from = to
	}
	return results
}

// eachWithin is how much longer a try of several appends may take for each of them.
const eachWithin = 5 * time.Millisecond

// appendRun appends in order, at exact revisions, and repeats those whose outcome is unknown.
func (s *Store) appendRun(ctx context.Context, appends []eventstore.Write, results []eventstore.Result) {
	var left []int
	for i, r := range appends {
		if results[i].Err = cmp.Or(check(r), ctx.Err()); results[i].Err == nil {
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return
	}
	waiting, stop := s.conn.within(ctx)
	defer stop()
	var begun int // number of appends that the server may have received
	for late := time.Now().Add(resolveWithin); ; {
		unknown, err := s.tryRun(waiting, appends, results, left, &begun)
		if len(unknown) == 0 {
			return
		}
		left = unknown
		if err == nil || time.Now().Before(late) && (begun > 0 || errors.Is(err, errNotLeader)) {
			s.log.Warn("outcome of appends not known yet; retrying", "appends", len(left), "error", err)
			if err = pause(waiting, retryEvery); err == nil {
				continue
			}
		}
		for _, i := range left {
			if results[i].Err = err; i < begun {
				results[i].Err = fmt.Errorf("%w: %s", eventstore.ErrInDoubt, text(err))
			}
		}
		return
	}
}

// tryRun sends the appends left, and returns those whose outcome is unknown, with the reason.
func (s *Store) tryRun(ctx context.Context, appends []eventstore.Write, results []eventstore.Result, left []int, begun *int) (unknown []int, err error) {
	try, finish, open := s.conn.whole(ctx) // what is sent is to be answered
	if !open {
		return left, errClosed
	}
	defer finish()
	try, cancel := context.WithTimeout(try, answerWithin+time.Duration(len(left))*eachWithin)
	defer cancel()
	call, err := s.batches.open(try)
	if err != nil {
		return left, err
	}
	under := make([]*sent, 0, len(left))
	for _, i := range left {
		if err = ctx.Err(); err != nil {
			break
		}
		p, failed := call.begin(try, owned(appends[i]))
		if err = failed; err != nil {
			break
		}
		under, *begun = append(under, p), max(*begun, i+1)
	}
	for n, p := range under {
		done, _, failed := s.batches.wait(try, p)
		i := left[n]
		_, wrong := errors.AsType[*eventstore.WrongRevision](failed)
		switch {
		case failed == nil:
			s.told.add(done.Position)
			results[i] = eventstore.Result{Appended: done}
		case wrong:
			results[i].Err = failed
		case isRefusal(failed):
			results[i].Err = refusal(appends[i], failed)
		default:
			unknown, err = append(unknown, i), failed
		}
	}
	return append(unknown, left[len(under):]...), err
}

// owned returns an append with memory of its own: an abandoned call may read the events after the caller has reused theirs.
func owned(r eventstore.Write) eventstore.Write {
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i].Data, r.Events[i].Meta = bytes.Clone(r.Events[i].Data), bytes.Clone(r.Events[i].Meta)
	}
	return r
}

// appendOpen appends to a stream at any revision: it reads the stream, looks for the events in it, and appends at the last revision.
// Appends of this process to one stream take turns; otherwise they would make each other retry.
func (s *Store) appendOpen(ctx context.Context, r eventstore.Write) (done eventstore.Appended, err error) {
	lane := s.lanes[maphash.String(laneSeed, r.Stream)%uint64(len(s.lanes))]
	select {
	case lane <- struct{}{}:
		defer func() { <-lane }()
	case <-ctx.Done():
		return done, context.Cause(ctx)
	}
	var seen history
	for {
		if err := s.readOn(ctx, r, &seen); err != nil {
			return done, err
		}
		wrong := &eventstore.WrongRevision{Stream: r.Stream, Expected: r.Expected, Actual: seen.last()}
		switch found, all := seen.find(r.Events); {
		case all:
			return found, nil
		case len(seen.known) > 0 || r.Expected == eventstore.StreamExists && seen.last() < 0:
			return done, wrong
		}
		exact := r
		exact.Expected = eventstore.Expected(seen.last())
		done, err = s.sendKnown(ctx, exact)
		if _, lost := errors.AsType[*eventstore.WrongRevision](err); !lost {
			return done, err
		}
		if err := pause(ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond)))); err != nil { //nolint:gosec // G404: only has to differ from other callers' pauses
			return done, err
		}
	}
}

var laneSeed = maphash.MakeSeed()

// history is the part of a stream that was read for an append.
type history struct {
	next  int64                  // next revision to read
	known map[int64]event.Stored // events of the append, by their revisions; their payloads are not kept
}

func (h *history) last() int64 { return h.next - 1 }

func (s *Store) readOn(ctx context.Context, r eventstore.Write, h *history) error {
	for e, err := range s.ReadStream(ctx, r.Stream, h.next, eventstore.Forwards) {
		if err != nil {
			return err
		}
		h.next = e.Revision + 1
		if slices.ContainsFunc(r.Events, func(n event.New) bool { return n.ID == e.ID }) {
			if h.known == nil {
				h.known = map[int64]event.Stored{}
			}
			e.Data, e.Meta = nil, nil
			h.known[e.Revision] = e
		}
	}
	return nil
}

// find returns the places of the events, if the stream has all of them, one after the other.
func (h *history) find(events []event.New) (a eventstore.Appended, all bool) {
	first := int64(-1)
	for revision, e := range h.known {
		if e.ID == events[0].ID {
			first = max(first, revision)
		}
	}
	for i, n := range events {
		e, there := h.known[first+int64(i)]
		if first < 0 || !there || e.ID != n.ID {
			return eventstore.Appended{}, false
		}
		a = replayed(e)
	}
	return a, true
}

func replayed(e event.Stored) eventstore.Appended {
	return eventstore.Appended{Position: e.Position, Revision: e.Revision, At: e.At, Replayed: true}
}

// find looks up the events of an append at its exact revision. It returns their place, a WrongRevision if other events are there,
// and neither if the stream ends before.
func (s *Store) find(ctx context.Context, r eventstore.Write) (a eventstore.Appended, err error) {
	if r.Expected >= maxRevision {
		return a, nil // the server rejects it
	}
	first, n := int64(r.Expected)+1, 0
	for e, err := range s.raw(ctx, uint64(len(r.Events)), streamFrom(r.Stream, first, eventstore.Forwards)) {
		if err != nil {
			return a, fmt.Errorf("append to %s: %w", r.Stream, err)
		}
		if n == len(r.Events) || e.EventID != r.Events[n].ID {
			n = -1
			break
		}
		a = replayed(stored(e))
		n++
	}
	switch {
	case n == len(r.Events):
		return a, nil
	case n == 0:
		return eventstore.Appended{}, nil
	}
	return eventstore.Appended{}, s.conflict(ctx, r)
}

// maxRevision is greater than any revision, and adding to it does not overflow.
const maxRevision = eventstore.Expected(1) << 62

// conflict returns a WrongRevision with the stream's last revision.
func (s *Store) conflict(ctx context.Context, r eventstore.Write) error {
	wrong := &eventstore.WrongRevision{Stream: r.Stream, Expected: r.Expected, Actual: -1}
	for e, err := range s.raw(ctx, 1, streamFrom(r.Stream, eventstore.LastRevision, eventstore.Backwards)) {
		if err != nil {
			return err
		}
		wrong.Actual = int64(e.EventNumber)
	}
	return wrong
}

// send appends at an exact revision and retries until the outcome is known. Retrying is safe: at an exact revision the server appends
// the same events once.
func (s *Store) send(ctx context.Context, r eventstore.Write) (eventstore.Appended, error) {
	if err := ctx.Err(); err != nil {
		return eventstore.Appended{}, context.Cause(ctx)
	}
	// From here on the append continues even if its caller gives up: only the response tells the outcome.
	ctx, finish, open := s.conn.whole(ctx)
	if !open {
		return eventstore.Appended{}, errClosed
	}
	defer finish()
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	for doubt := false; ; {
		try, cancel := context.WithTimeout(ctx, answerWithin)
		done, begun, err := s.batches.append(try, r)
		if try.Err() != nil {
			err = s.conn.silent()
		}
		cancel()
		_, conflicted := errors.AsType[*eventstore.WrongRevision](err)
		switch {
		case err == nil:
			s.told.add(done.Position)
			return done, nil
		case conflicted:
			return done, err
		case isRefusal(err) && !doubt:
			return done, refusal(r, err)
		case errors.Is(err, errNotLeader) && !doubt:
			if pause(ctx, retryEvery) != nil {
				return done, err
			}
			continue
		case !begun && !doubt:
			return done, err
		}
		doubt = true
		s.log.Warn("outcome of an append not known yet; retrying", "stream", r.Stream, "error", err)
		if pause(ctx, retryEvery) != nil {
			return done, fmt.Errorf("%w: %s", eventstore.ErrInDoubt, text(err))
		}
	}
}

// refusal returns the error of an append that the server rejected for another reason.
func refusal(r eventstore.Write, err error) error {
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		return fmt.Errorf("append to %s: %w: the server denies access: %s", r.Stream, eventstore.ErrUnavailable, text(err))
	}
	if errors.Is(err, eventstore.ErrBadEvent) {
		return fmt.Errorf("append to %s: %w", r.Stream, err)
	}
	return fmt.Errorf("append to %s: %w: %s", r.Stream, eventstore.ErrBadEvent, text(err))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
