package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

// follower is one projection's or reactor's part of the router: as its subscriber it reads the log, as
// its handler it folds what it read. Watermill gives the handler one message at a time, and the
// subscriber sends the next when the last is acknowledged.
type follower struct {
	r    *Runner
	p    *Projection
	k    keeper
	log  *slog.Logger
	conn *pgx.Conn // lent, as the next, to whichever of the two is at work
	h    held
	d    decoder
	said string // why it has stopped, the last time that it was logged

	failed error // of the last message

	stood place            // where another process was, at the last look
	late  <-chan time.Time // fires when that process has been behind there for too long; nil: it is not behind
}

// keeper keeps a follower's checkpoint, and knows what there is to do before the first event.
type keeper interface {
	// connect makes the connection on which the follower works.
	connect(ctx context.Context) (*pgx.Conn, error)
	// lock is the lock under which one of all processes works.
	lock() lock
	// begin takes the checkpoint over, or makes one where there is none. With an error it may answer one
	// all the same: where the follower is, and stays.
	begin(ctx context.Context, conn *pgx.Conn) (held, error)
	// look returns how far the follower is, whoever works; false when it has never begun.
	look(ctx context.Context) (place, bool, error)
	// note writes why the follower has stopped, and at which event; false when it has never begun.
	note(ctx context.Context, why error) (bool, error)
}

// place is where a checkpoint stands.
type place struct {
	generation int
	position   event.Position
	paused     bool
	err        string // why it is parked
	waits      string // for what, where nobody has to do anything
}

// held is a checkpoint that this process alone may move.
type held interface {
	place() place
	// apply does what the events ask for and moves the checkpoint, in one transaction; [ErrFenced] when
	// the checkpoint is no longer this process's.
	apply(ctx context.Context, d decoded) error
	fenced(ctx context.Context) error
}

type batchKey struct{}

// piece is what a message is about.
type piece struct {
	eventstore.Batch

	reading context.Context // ends when the checkpoint is moved by somebody else
}

var _ message.Subscriber = (*follower)(nil)

// Subscribe implements Watermill's Subscriber. A message is a batch of events.
func (f *follower) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			err := f.work(ctx, out)
			if ctx.Err() != nil {
				return
			}
			f.explain(ctx, err)
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
		}
	}()
	return out, nil
}

// Close implements Watermill's Subscriber; the context ends it.
func (f *follower) Close() error { return nil }

// explain tells why the follower has stopped.
func (f *follower) explain(ctx context.Context, err error) {
	switch {
	case err == nil, errors.Is(err, errStandby):
		f.r.set(f.p, func(s *Status) { s.Working = false })
		return
	case errors.Is(err, errPaused):
		f.r.set(f.p, func(s *Status) {
			s.Working, s.Paused, s.Generation, s.Position = false, true, f.h.place().generation, f.h.place().position
		})
		return
	}
	if text := err.Error(); text != f.said {
		f.said = text
		f.log.Warn("a follower of the log stands still", "error", err)
	}
	f.r.set(f.p, func(s *Status) {
		s.Working, s.Error, s.Parked = false, err.Error(), isParked(err)
		if f.h != nil {
			s.Position = f.h.place().position // what is before an event at fault has taken effect
		}
	})
	if bad, ok := errors.AsType[*poison](err); ok {
		f.park(ctx, bad)
	}
	if other, ok := errors.AsType[*mismatch](err); ok {
		_, _ = f.k.note(ctx, other) // it is tried again, and noted again
	}
}

// isParked reports whether an error is there until somebody does something: an event that cannot be applied, or another log.
func isParked(err error) bool {
	bad, isPoison := errors.AsType[*poison](err)
	other, isMismatch := errors.AsType[*mismatch](err)
	return isPoison && bad != nil || isMismatch && other != nil
}

// What a follower waits for that is no error.
var (
	errStandby = errors.New("another process works on it")
	errPaused  = errors.New("it is paused")
)

// work holds the checkpoint and follows the log, until something goes wrong.
func (f *follower) work(ctx context.Context, out chan<- *message.Message) error {
	conn, err := f.k.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	locked, err := f.k.lock().try(ctx, conn)
	if err != nil {
		return err
	}
	if !locked {
		return f.standBy(ctx)
	}
	f.conn, f.late = conn, nil
	for {
		err := f.keepUp(ctx, out)
		if errors.Is(err, eventstore.ErrTailLost) { // does it belong to what the log is now? Whoever reads is to know at once
			if _, other := f.k.begin(ctx, f.conn); other != nil {
				err = other
			}
		}
		if !errors.Is(err, ErrFenced) || conn.IsClosed() || ctx.Err() != nil {
			return err
		}
		f.log.Info("another generation is read, or somebody else moved the checkpoint; following from there")
	}
}

// keepUp brings the log to what is held.
func (f *follower) keepUp(ctx context.Context, out chan<- *message.Message) error {
	h, err := f.k.begin(ctx, f.conn)
	if h != nil {
		f.h = h
	}
	if err != nil {
		return err
	}
	if f.d, err = newDecoder(ctx, f.r.store, f.p, f.r.Reveal); err != nil {
		return err
	}
	head, err := f.r.store.Head(ctx)
	if err != nil {
		return err
	}
	at := f.h.place()
	f.said = ""
	reading, stop := context.WithCancel(ctx)
	defer stop()
	f.r.set(f.p, func(s *Status) {
		s.Working, s.Paused, s.Generation, s.Position, s.Error, s.Parked = true, false, at.generation, at.position, "", false
		s.Ready = s.Ready || at.position >= head
		f.r.again[f.p.Name] = stop
	})
	for batch, err := range coalesced(reading, f.p, f.r.store, at.position) {
		if reading.Err() != nil && ctx.Err() == nil {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		m := message.NewMessage(watermill.NewShortUUID(), nil)
		m.SetContext(context.WithValue(ctx, batchKey{}, piece{batch, reading}))
		select {
		case out <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
		select { // not for ctx: as long as the handler works, the connection is its own
		case <-m.Acked():
		case <-m.Nacked():
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case f.p.forwards: // which must not be done twice, and says itself which event is at fault
				return f.failed
			}
			return f.failure(ctx, batch)
		}
		f.r.set(f.p, func(s *Status) {
			s.Position = f.h.place().position
			s.Ready = s.Ready || s.Position >= head
		})
	}
	return nil
}

// standBy tells how far the process that works has come, and takes its place if that hangs.
func (f *follower) standBy(ctx context.Context) error {
	at, found, err := f.k.look(ctx)
	if err != nil {
		return err
	}
	f.r.set(f.p, func(s *Status) {
		s.Working = false
		if found {
			s.Generation, s.Position, s.Ready, s.Error, s.Parked, s.Paused = at.generation, at.position, true, at.err+at.waits, at.err != "", at.paused
		}
	})
	if found {
		err = f.relieve(ctx, at)
	}
	return cmp.Or(err, errStandby)
}

// relieve ends the work of a process that hangs: the log has had events for it for too long, and it says nothing to Postgres.
func (f *follower) relieve(ctx context.Context, at place) error {
	if at != f.stood || at.err != "" || at.paused {
		f.stood, f.late = at, nil
		return nil
	}
	head, err := f.r.store.Head(ctx)
	if err != nil || at.position >= head {
		f.late = nil
		return err
	}
	bound := cmp.Or(f.r.Silent, silent)
	if f.late == nil {
		f.late = time.After(bound)
	}
	select {
	case <-f.late:
		f.late = nil
	default:
		return nil
	}
	for _, err := range f.r.store.ReadAll(ctx, at.position, eventstore.Forwards) { // the head may be of events that it is not given
		if err != nil {
			return err
		}
		ended, err := f.k.lock().breakIfSilent(ctx, f.r.pool, bound)
		if ended {
			f.log.Warn("the process that works on it hangs, and is relieved", "position", at.position, "head", head, "after", bound)
		}
		return err
	}
	return nil
}

// handle folds one message's batch. An error makes Watermill send a Nack, upon which work looks for
// the cause.
func (f *follower) handle(m *message.Message) (err error) {
	ctx := m.Context()
	p, _ := ctx.Value(batchKey{}).(piece)
	d, err := f.d.decode(ctx, p.Batch)
	if d.upTo > f.h.place().position {
		if a, is := f.h.(*reaction); is && f.p.forwards {
			f.failed = a.hand(ctx, p.reading, d)
			return f.failed
		}
		err = errors.Join(f.h.apply(ctx, d), err)
	}
	return err
}

// failure does a failed batch again, event by event, to find the one at fault.
func (f *follower) failure(ctx context.Context, batch eventstore.Batch) error {
	if f.conn.IsClosed() {
		return errors.New("the connection was lost")
	}
	rest := eventstore.Batch{UpTo: batch.UpTo}
	for _, e := range batch.Events {
		if e.Position > f.h.place().position {
			rest.Events = append(rest.Events, e)
		}
	}
	d, decodeErr := f.d.decode(ctx, rest)
	if d.upTo > f.h.place().position {
		if err := applyFinding(ctx, f.h, f.conn, d); err != nil {
			return err
		}
	}
	return decodeErr
}

// guarded makes an error of a panic: a mistake in one projection must not end the others.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return do()
}

// park notes the event at which the follower stands, and waits until somebody asks to try again,
// by clearing the note.
func (f *follower) park(ctx context.Context, bad *poison) {
	if noted, err := f.k.note(ctx, bad); err != nil || !noted {
		return // it is tried again, and fails and is noted again
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryAgain):
		}
		if now, found, err := f.k.look(ctx); err == nil && (!found || now.err == "") {
			f.log.Info("parked, and tries again")
			return
		}
	}
}
