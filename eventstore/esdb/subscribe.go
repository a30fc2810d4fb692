package esdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxBatch limits a follower's batch to what one transaction should process.
	maxBatch = 384

	// defaultOutage is how long a subscription looks for its lost server before it ends with an error.
	defaultOutage = 30 * time.Second

	// steady is the least lifetime of a working connection: a server that accepts and drops connections counts as away.
	steady = 5 * time.Second

	mostPause = time.Second

	// The server reports its position after window times interval events.
	searchWindow       = 256
	checkpointInterval = 4
)

// news is a message of a subscription: an event, a position that the server has reached, or the final error.
type news struct {
	event *esdb.RecordedEvent
	upTo  event.Position
	err   error
}

// place is the position of a subscription, and the last event that it yielded.
type place struct {
	upTo event.Position
	last *event.Stored // nil: none yet
	lost bool          // the server has no event where it was known to have one
}

// Subscribe implements [eventstore.Store]. It has a subscription of its own while it catches up, and shares the tail after that. It resumes
// after a lost connection.
func (s *Store) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		ctx, cancel := s.conn.within(ctx)
		defer cancel()
		if after >= eventstore.End { // no event is ever there, and the server would reject it
			<-ctx.Done()
			yield(eventstore.Batch{}, context.Cause(ctx))
			return
		}
		s.tail.once.Do(func() { go s.runTail() })
		at, heard, wait := place{upTo: after}, time.Now(), retryEvery
		for {
			stopped := false
			begun, err := s.follow(ctx, &at, func() {}, func(b eventstore.Batch) bool {
				heard, wait = time.Now(), retryEvery
				stopped = !yield(b, nil)
				_, covered := s.tail.covers(b.UpTo)
				return !stopped && !covered
			})
			if err == nil && !stopped {
				var more bool
				if more, err = s.followTail(ctx, &at, func(b eventstore.Batch) bool { return yield(b, nil) }); !more {
					return
				}
				heard, wait = time.Now(), retryEvery
				if err == nil && ctx.Err() == nil {
					continue
				}
				err = cmp.Or(err, context.Cause(ctx))
			}
			if !begun.IsZero() && time.Since(begun) > steady { // even if nothing was appended meanwhile
				heard, wait = time.Now(), retryEvery
			}
			switch {
			case err == nil: // the follower stopped
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case !errors.Is(err, errRefused) && !errors.Is(err, eventstore.ErrTailLost) && time.Since(heard) < s.outage:
				s.log.Info("subscription to the event log lost; resuming", "after", at.upTo, "error", text(err))
				if err = pause(ctx, wait); err == nil {
					wait = min(2*wait, mostPause)
					continue
				}
			}
			yield(eventstore.Batch{}, err)
			return
		}
	}
}

// stillThere returns ErrTailLost if the log no longer has the last event of a subscription.
func (s *Store) stillThere(ctx context.Context, last *event.Stored) error {
	if last == nil {
		return nil
	}
	there, err := s.has(ctx, *last)
	if err == nil && !there {
		return fmt.Errorf("follow the log after position %d: %w", last.Position, eventstore.ErrTailLost)
	}
	return err
}

// has reports whether the log has an event at its position. If no event begins there, the server refuses the read. A position alone
// proves nothing: the server also reports positions behind the newest event.
func (s *Store) has(ctx context.Context, one event.Stored) (bool, error) {
	for e, err := range s.raw(ctx, 1, allFrom(one.Position, eventstore.Forwards)) {
		_, answered := errors.AsType[*esdb.Error](err)
		switch {
		case err != nil && (!answered || isRefusal(err) || isAway(err) || ctx.Err() != nil):
			return false, err
		case err == nil:
			return e.EventID == one.ID && event.Position(e.Position.Commit) == one.Position, nil
		}
	}
	return false, nil
}

// errEndLost reports that the log lost its end before a subscription began. The subscription has not yielded any of what was lost.
var errEndLost = errors.New("the log lost its newest events meanwhile")

// begins returns an error if the log lost the last event of a subscription, or the end that it had before the subscription began: the
// server may now give other events positions up to that end.
func (s *Store) begins(ctx context.Context, last *event.Stored, end event.Stored) error {
	if err := s.stillThere(ctx, last); err != nil || end.ID == uuid.Nil || last != nil && last.ID == end.ID {
		return err
	}
	there, err := s.has(ctx, end)
	if err == nil && !there {
		return fmt.Errorf("follow the log up to position %d: %w", end.Position, errEndLost)
	}
	return err
}

// follow yields the events after a place and advances it. It calls began when the log that the server sends has the place. It returns nil
// when the follower stops, and an error when the connection is lost. begun is the time of the server's first response, or zero.
func (s *Store) follow(ctx context.Context, at *place, began func(), yield func(eventstore.Batch) bool) (begun time.Time, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// When the server reports that the subscription has caught up, it has read all events that existed before.
	_, end, err := s.readEnd(ctx)
	if err != nil {
		return begun, err
	}
	if at.upTo > end.Position { // the server would wait until the log has other events there
		return begun, fmt.Errorf("follow the log after position %d: %w", at.upTo, eventstore.ErrTailLost)
	}
	heard := make(chan news, maxBatch)
	from := event.Position(0)
	if !at.lost {
		if from, err = s.placeBefore(ctx, at.upTo); err != nil {
			return begun, err
		}
	}
	if err := s.conn.run(ctx, func(call context.Context, client *esdb.Client) error {
		return s.listen(ctx, call, client, from, end.Position, heard)
	}); err != nil {
		return begun, err
	}
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	for {
		var n news
		select {
		case n = <-heard:
			late.Stop()
		case <-ctx.Done():
			return begun, context.Cause(ctx)
		case <-late.C:
			return begun, s.conn.silent()
		}
		if begun.IsZero() && n.err == nil {
			begun = time.Now()
			if err := s.begins(ctx, at.last, end); err != nil { // not before: the log may lose events until the subscription has begun
				return begun, err
			}
			began()
		}
		batch, last := eventstore.Batch{UpTo: at.upTo}, at.last
		for more := true; more && n.err == nil; {
			if n.event != nil && event.Position(n.event.Position.Commit) > batch.UpTo {
				batch.UpTo = event.Position(n.event.Position.Commit)
				s.told.saw(n.event)
				if ours(n.event) {
					e := stored(n.event)
					last = &e
					batch.Events = append(batch.Events, e)
				}
			}
			batch.UpTo = max(batch.UpTo, n.upTo)
			if more = len(batch.Events) < maxBatch; more {
				select {
				case n = <-heard:
				default:
					more = false
				}
			}
		}
		if ctx.Err() != nil { // checked first, because a busy log always has an event ready
			return begun, context.Cause(ctx)
		}
		if batch.UpTo > at.upTo {
			*at = place{upTo: batch.UpTo, last: last}
			if !yield(batch) {
				return begun, nil
			}
		}
		if n.err != nil {
			at.lost = isNoPlace(n.err)
			return begun, n.err
		}
	}
}

// listen passes on the server's messages until the call ends; the reason too, unless ctx has ended.
func (s *Store) listen(ctx, call context.Context, client *esdb.Client, after, end event.Position, heard chan<- news) error {
	tell := func(n news) bool {
		select {
		case heard <- n:
			return n.err == nil
		case <-ctx.Done():
			return false
		}
	}
	options := esdb.SubscribeToAllOptions{
		From: esdb.Position{Commit: uint64(after), Prepare: uint64(after)}, Filter: esdb.ExcludeSystemEventsFilter(),
		MaxSearchWindow: searchWindow, CheckpointInterval: checkpointInterval,
	}
	if after == 0 {
		options.From = esdb.Start{}
	}
	subscription, err := client.SubscribeToAll(call, options)
	if err != nil {
		tell(news{err: fmt.Errorf("subscribe to the log after %d: %w", after, unreachable(err))})
		return err
	}
	defer subscription.Close() //nolint:errcheck // never fails
	if !tell(news{}) {         // the subscription has begun
		return nil
	}
	for {
		n := news{}
		switch e := subscription.Recv(); {
		case e.SubscriptionDropped != nil:
			err = e.SubscriptionDropped.Error
			n.err = fmt.Errorf("follow the log: %w", unreachable(err))
		case e.EventAppeared != nil:
			n.event = e.EventAppeared.Event
		case e.CheckPointReached != nil:
			n.upTo = event.Position(e.CheckPointReached.Commit)
			s.told.add(n.upTo)
		case e.CaughtUp != nil:
			n.upTo = end
		}
		if !tell(n) {
			return err
		}
	}
}
