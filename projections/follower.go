package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// follower runs one projection or reactor on the router. As a subscriber it reads the log, as a handler it folds the events. Watermill
// passes one message at a time to the handler. The subscriber sends the next one after the acknowledgement.
type follower struct {
	r    *Runner
	p    *Projection
	k    keeper
	log  *slog.Logger
	conn *pgx.Conn // used in turn by the subscriber and the handler, like the following fields
	h    held
	d    decoder
	said string // the last logged reason for stopping

	next   piece // events of the handler's message
	failed error // error of the last message

	seen place            // another process's position at the last check
	late <-chan time.Time // fires when that process has lagged for too long; nil: it does not lag
}

// keeper stores a follower's checkpoint.
type keeper interface {
	// connect opens the follower's connection.
	connect(ctx context.Context) (*pgx.Conn, error)
	// lock returns the lock under which one process works.
	lock() lock
	// begin takes over the checkpoint, or creates it. With an error it may still return a checkpoint, which has the follower's unchanged
	// position.
	begin(ctx context.Context, conn *pgx.Conn) (held, error)
	// look returns the follower's checkpoint, even if another process works on it. It returns false if there is none.
	look(ctx context.Context) (place, bool, error)
	// note records the error that stopped the follower, and the event. It returns false if there is no checkpoint.
	note(ctx context.Context, why error) (bool, error)
}

// place is the content of a checkpoint.
type place struct {
	generation int
	position   event.Position
	paused     bool
	err        string // error that parked the follower
	waitReason string // reason for waiting that requires no operator
}

// held is a checkpoint that only this process may change.
type held interface {
	place() place
	// apply applies the events and moves the checkpoint in one transaction. It returns [ErrFenced] if another process has taken the
	// checkpoint.
	apply(ctx context.Context, d decoded) error
	fenced(ctx context.Context) error
}

// piece is the content of a message.
type piece struct {
	eventstore.Batch

	reading context.Context //nolint:containedctx // ends when another process moves the checkpoint
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
			_ = signal.Sleep(ctx, tryAgain)
		}
	}()
	return out, nil
}

// Close implements Watermill's Subscriber. The follower ends with its context.
func (f *follower) Close() error { return nil }

// explain logs and records the error that stopped the follower.
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
		f.log.Warn("follower of the log stopped", "error", err)
	}
	noted := false
	if isParked(err) { // before the status changes, so that a reader of the status finds the record
		noted, _ = f.k.note(ctx, err) // if this fails, the next failure is recorded
	}
	f.r.set(f.p, func(s *Status) {
		s.Working, s.Error, s.Parked = false, err.Error(), isParked(err)
		if f.h != nil {
			s.Position = f.h.place().position // the events before the faulty one have taken effect
		}
	})
	if _, ok := errors.AsType[*poison](err); ok && noted {
		f.park(ctx)
	}
}

// isParked reports whether an error requires an operator: an event that cannot be applied, or another log.
func isParked(err error) bool {
	bad, isPoison := errors.AsType[*poison](err)
	other, isMismatch := errors.AsType[*mismatch](err)
	return isPoison && bad != nil || isMismatch && other != nil
}

// Reasons to wait that are not errors.
var (
	errStandby = errors.New("another process works on it")
	errPaused  = errors.New("it is paused")
)

// work holds the checkpoint and subscribes to the log until an error.
func (f *follower) work(ctx context.Context, out chan<- *message.Message) error {
	free, err := f.k.lock().free(ctx, f.r.pool)
	if err != nil {
		return err
	}
	if !free {
		return f.standBy(ctx)
	}
	conn, err := f.k.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
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
		if errors.Is(err, eventstore.ErrTailLost) { // check at once whether the checkpoint still belongs to the log
			if _, other := f.k.begin(ctx, f.conn); other != nil {
				err = other
			}
		}
		if !errors.Is(err, ErrFenced) || conn.IsClosed() || ctx.Err() != nil {
			return err
		}
		f.log.Info("generation or checkpoint changed; continuing from the new position")
	}
}

// keepUp applies the log to the held checkpoint.
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
		s.Working, s.Paused, s.Generation, s.Position, s.ReadAt = true, false, at.generation, at.position, time.Time{}
		s.Error, s.Parked = "", false
		s.Ready = s.Ready || at.position >= head
		f.r.again[f.p.Name] = stop
	})
	for batch, err := range coalesced(reading, f.p, f.r.store, at.position, f.r.demandOf(f.p)) {
		if reading.Err() != nil && ctx.Err() == nil {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		m := message.NewMessage(strconv.FormatUint(uint64(batch.UpTo), 10), nil)
		m.SetContext(ctx)
		f.next = piece{batch, reading}
		select {
		case out <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
		select { // not ctx: the handler owns the connection while it works
		case <-m.Acked():
		case <-m.Nacked():
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case f.p.forwards: // an event must not be forwarded twice, and the reactor reports the faulty event
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

// standBy watches the progress of the working process, and takes over if that process hangs.
func (f *follower) standBy(ctx context.Context) error {
	var began time.Time
	if f.r.Now != nil {
		began = f.r.Now()
	}
	at, found, err := f.k.look(ctx)
	if err != nil {
		return err
	}
	f.r.set(f.p, func(s *Status) {
		s.Working, s.Generation, s.Position, s.ReadAt, s.Ready, s.Paused = false, at.generation, at.position, began, found, at.paused
		s.Error, s.Parked = at.err+at.waitReason, at.err != ""
	})
	if found {
		err = f.relieve(ctx, at)
	}
	return cmp.Or(err, errStandby)
}

// relieve ends the work of a hanging process. A process hangs if it has had events to process and has sent nothing to Postgres for too
// long.
func (f *follower) relieve(ctx context.Context, at place) error {
	if at != f.seen || at.err != "" || at.paused {
		f.seen, f.late = at, nil
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
	for _, err := range f.r.store.ReadAll(ctx, at.position, eventstore.Forwards) { // the head may be at an event that the follower skips
		if err != nil {
			return err
		}
		ended, err := f.k.lock().breakIfSilent(ctx, f.r.pool, bound)
		if ended {
			f.log.Warn("the working process hangs; taking over", "position", at.position, "head", head, "after", bound)
		}
		return err
	}
	return nil
}

// handle folds one message. After an error Watermill sends a Nack, and work searches for the cause.
func (f *follower) handle(m *message.Message) (err error) {
	ctx := m.Context()
	p := f.next
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

// failure repeats a failed batch event by event to find the faulty event.
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
		if err := applyIsolating(ctx, f.h, f.conn, d); err != nil {
			return err
		}
	}
	return decodeErr
}

// guarded converts a panic to an error, so that a fault of one projection does not end the others.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return do()
}

// park waits until an operator clears the record of the faulty event.
func (f *follower) park(ctx context.Context) {
	for signal.Sleep(ctx, tryAgain) == nil {
		if now, found, err := f.k.look(ctx); err == nil && (!found || now.err == "") {
			f.log.Info("parked; retrying")
			return
		}
	}
}
