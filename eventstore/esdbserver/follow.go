package esdbserver

import (
	"context"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
)

// subscriber is a client that subscribes to the log. The server notifies it when it catches up or falls behind.
type subscriber struct {
	*Server

	call  *reader
	q     query
	goal  event.Position // position up to which it catches up
	since time.Time      // when the goal was set
	live  bool

	admitted time.Time // when its key was last checked

	looked     uint64         // number of events since the last checkpoint
	checkpoint event.Position // the last one sent
}

// subscribe confirms a subscription. The returned context ends when the client or the server ends the subscription.
func (s *streamsService) subscribe(call *reader, q query) (*subscriber, context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(call.Context())
	stop := context.AfterFunc(s.life, cancel)
	f := &subscriber{Server: s.Server, call: call, q: q, admitted: time.Now()}
	confirmation := &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()}
	err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: confirmation}})
	return f, ctx, func() { stop(); cancel() }, err
}

func (s *streamsService) followAll(call *reader, q query) error {
	head, err := s.Store.Head(call.Context())
	if err != nil {
		return err
	}
	after := q.position
	if q.atEnd {
		after = head
	}
	f, ctx, cancel, err := s.subscribe(call, q)
	defer cancel()
	if err != nil {
		return err
	}
	f.goal, f.since, f.checkpoint = head, time.Now(), after
	return f.follow(ctx, after, q.filter.takes)
}

// followStream reads the stream to its end. It then subscribes to the log, from the log's end before that read.
func (s *streamsService) followStream(call *reader, q query) error {
	head, err := s.Store.Head(call.Context())
	if err != nil {
		return err
	}
	next := q.revision
	if q.atEnd {
		last, err := s.lastRevision(call.Context(), q.stream)
		if err != nil {
			return err
		}
		next = last + 1
	}
	f, ctx, cancel, err := s.subscribe(call, q)
	defer cancel()
	if err != nil {
		return err
	}
	for e, err := range s.Store.ReadStream(ctx, q.stream, next, eventstore.Forwards) {
		if err == nil {
			err = call.sendEvent(e)
		}
		if err != nil {
			return err
		}
		next = e.Revision + 1
	}
	f.goal, f.since = head, time.Now()
	return f.follow(ctx, head, func(e event.Stored) bool { return e.Stream == q.stream && e.Revision >= next })
}

// follow sends the matching events after a position until an error.
func (f *subscriber) follow(ctx context.Context, after event.Position, wanted func(event.Stored) bool) error {
	if err := f.reached(ctx, after); err != nil {
		return err
	}
	for batch, err := range f.readAhead(ctx, after) {
		if err != nil {
			return err
		}
		began := time.Now()
		if began.Sub(f.admitted) > f.again { // after a key is revoked, no later events are read
			if err := f.check(ctx); err != nil {
				return err
			}
			f.admitted = began
		}
		if err := f.send(batch, wanted); err != nil {
			return err
		}
		if f.live && time.Since(began) > f.slow {
			if err := f.late(ctx, batch.UpTo); err != nil {
				return err
			}
		}
		if err := f.reached(ctx, batch.UpTo); err != nil {
			return err
		}
	}
	return errStops
}

// readAhead yields the log after a position. While a batch is sent, it reads up to two more.
func (f *subscriber) readAhead(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	type read struct {
		batch eventstore.Batch
		err   error
	}
	return func(yield func(eventstore.Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		reads := make(chan read, 1)
		go func() {
			defer close(reads)
			for batch, err := range f.Store.Subscribe(ctx, after) {
				select {
				case reads <- read{batch, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		defer func() {
			cancel()
			for range reads { // until the reading has ended
			}
		}()
		for r := range reads {
			if !yield(r.batch, r.err) {
				return
			}
		}
	}
}

func (f *subscriber) send(batch eventstore.Batch, wanted func(event.Stored) bool) error {
	for _, e := range batch.Events {
		if wanted(e) {
			if err := f.call.sendEvent(e); err != nil {
				return err
			}
		}
		if f.looked++; f.q.filter != nil && f.looked >= f.q.filter.every {
			if err := f.sendCheckpoint(e.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendCheckpoint sends the position up to which the log was read, because a client does not see filtered events.
func (f *subscriber) sendCheckpoint(position event.Position) error {
	f.looked = 0
	if position <= f.checkpoint {
		return nil
	}
	f.checkpoint = position
	return f.call.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: uint64(position), PreparePosition: uint64(position)},
	}})
}

// reached notifies a client that has nearly caught up with the log's end. Under constant writes a client might never reach the exact end.
func (f *subscriber) reached(ctx context.Context, position event.Position) error {
	if f.live || position < f.goal {
		return nil
	}
	took := time.Since(f.since)
	f.since = time.Now()
	head, err := f.Store.Head(ctx)
	if err != nil {
		return err
	}
	if f.goal = head; head > position && took > time.Second {
		return nil
	}
	f.live = true
	if f.q.filter != nil {
		if err := f.sendCheckpoint(position); err != nil {
			return err
		}
	}
	return f.call.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
}

// late notifies a client that fell behind, if there are more events for it.
func (f *subscriber) late(ctx context.Context, position event.Position) error {
	head, err := f.Store.Head(ctx)
	if err != nil || head <= position {
		return err
	}
	f.live, f.goal, f.since = false, head, time.Now()
	return f.call.Send(&streams.ReadResp{Content: &streams.ReadResp_FellBehind_{FellBehind: &streams.ReadResp_FellBehind{}}})
}
