package esdbserver

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"bahi/eventstore"
)

const (
	// maxQueued limits the waiting appends of a call; a full queue blocks the client.
	maxQueued = 64

	// maxHeld limits the memory of a call's appends, complete or not.
	maxHeld = 64 << 20
)

// batch is one append of a BatchAppend. Its pieces arrive among those of others, under its correlation id.
type batch struct {
	eventstore.Write

	id       *shared.UUID
	deadline time.Time // zero: none
	bytes    int
	held     int64 // its part of maxHeld
	refused  error
}

// BatchAppend receives many appends in one call and sends a response for each. Two appends to one stream take place in the order of their
// last pieces.
func (s *streamsService) BatchAppend(call streams.Streams_BatchAppendServer) error {
	ctx, cancel := context.WithCancel(call.Context())
	defer cancel()
	if err := s.admitWrite(ctx); err != nil {
		done, ok := s.hearOut()
		if !ok {
			return s.failed(ctx, err)
		}
		defer done()
	}
	var (
		ready    = make(chan *batch, maxQueued)
		held     atomic.Int64
		received = make(chan error, 1)
	)
	go func() { // until the client has sent everything, or the call has ended
		defer close(ready)
		received <- s.receiveBatches(ctx, call, ready, &held)
	}()
	err := s.answerBatches(ctx, call, ready, &held)
	if err == nil {
		err = <-received
	}
	return s.failed(call.Context(), err)
}

// receiveBatches assembles appends until the client has sent everything.
func (s *streamsService) receiveBatches(ctx context.Context, call streams.Streams_BatchAppendServer, ready chan<- *batch,
	held *atomic.Int64) error {
	unfinished := map[string]*batch{}
	for {
		message, err := call.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		name := message.GetCorrelationId().String()
		b := unfinished[name]
		if b == nil {
			b = &batch{id: message.GetCorrelationId()}
			b.refused = s.beginBatch(ctx, b, message.GetOptions())
			unfinished[name] = b
		}
		size := int64(proto.Size(message)) + 1<<10 // even an empty piece takes memory
		if b.held += size; held.Add(size) > maxHeld {
			return refuse(codes.ResourceExhausted, "the unfinished appends of one call may have at most %d bytes", maxHeld)
		}
		for _, p := range message.GetProposedMessages() {
			if b.refused == nil {
				b.bytes, b.refused = s.take(&b.Write, b.bytes, p)
			}
		}
		if !message.GetIsFinal() {
			continue
		}
		delete(unfinished, name)
		select {
		case ready <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *streamsService) beginBatch(ctx context.Context, b *batch, o *streams.BatchAppendReq_Options) error {
	b.Stream = string(o.GetStreamIdentifier().GetStreamName()) // every response has this field
	switch expected := o.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		b.Expected = exactly(expected.StreamPosition)
	case *streams.BatchAppendReq_Options_NoStream:
		b.Expected = eventstore.NoStream
	case *streams.BatchAppendReq_Options_Any:
		b.Expected = eventstore.Any
	case *streams.BatchAppendReq_Options_StreamExists:
		b.Expected = eventstore.StreamExists
	default:
		return refuse(codes.InvalidArgument, "an append begins with its stream and expected revision")
	}
	switch d := o.GetDeadlineOption().(type) {
	case *streams.BatchAppendReq_Options_Deadline:
		b.deadline = time.Now().Add(d.Deadline.AsDuration())
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		b.deadline = d.Deadline_21_10_0.AsTime()
	}
	if err := s.admitWrite(ctx); err != nil {
		return err
	}
	_, err := streamName(o.GetStreamIdentifier())
	return err
}

// answerBatches appends all complete batches together, and sends their responses, until there are no more.
func (s *streamsService) answerBatches(ctx context.Context, call streams.Streams_BatchAppendServer, ready <-chan *batch,
	held *atomic.Int64) error {
	for {
		var group []*batch
		select {
		case first, more := <-ready:
			if !more {
				return nil
			}
			group = append(group, first)
		case <-s.life.Done():
			return errStops
		}
		for len(group) < maxQueued && len(ready) > 0 { // no other goroutine receives from it
			group = append(group, <-ready)
		}
		var (
			requests []eventstore.Transaction
			asked    []*batch
			results  = map[*batch]eventstore.Result{}
		)
		for _, b := range group {
			switch {
			case b.refused != nil:
				results[b] = eventstore.Result{Err: b.refused}
			case !b.deadline.IsZero() && time.Now().After(b.deadline):
				results[b] = eventstore.Result{Err: context.DeadlineExceeded}
			default:
				requests, asked = append(requests, eventstore.To(b.Stream, b.Expected, b.Events...)), append(asked, b)
			}
		}
		for i, result := range s.Store.AppendEach(ctx, requests) {
			results[asked[i]] = result
		}
		for _, b := range group {
			held.Add(-b.held)
			if err := call.Send(s.answer(b, results[b])); err != nil {
				return err
			}
		}
	}
}

func (s *Server) answer(b *batch, result eventstore.Result) *streams.BatchAppendResp {
	answer := &streams.BatchAppendResp{CorrelationId: b.id, StreamIdentifier: identifier(b.Stream)}
	switch b.Expected {
	case eventstore.Any:
		answer.ExpectedStreamPosition = &streams.BatchAppendResp_Any{Any: &emptypb.Empty{}}
	case eventstore.NoStream:
		answer.ExpectedStreamPosition = &streams.BatchAppendResp_NoStream{NoStream: &emptypb.Empty{}}
	case eventstore.StreamExists:
		answer.ExpectedStreamPosition = &streams.BatchAppendResp_StreamExists{StreamExists: &emptypb.Empty{}}
	default:
		answer.ExpectedStreamPosition = &streams.BatchAppendResp_StreamPosition{StreamPosition: uint64(b.Expected)}
	}
	if result.Err != nil {
		answer.Result = &streams.BatchAppendResp_Error{Error: s.batchError(result.Err)}
		return answer
	}
	position := uint64(result.Position)
	answer.Result = &streams.BatchAppendResp_Success_{Success: &streams.BatchAppendResp_Success{
		CurrentRevisionOption: &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(result.Revision)},
		PositionOption: &streams.BatchAppendResp_Success_Position{
			Position: &shared.AllStreamPosition{CommitPosition: position, PreparePosition: position},
		},
	}}
	return answer
}

// batchError is the protocol's form of an error within a call that continues. Clients recognize the kind by the details.
func (s *Server) batchError(err error) *status.Status {
	r, refused := asRefusal(err)
	wrong, conflicted := errors.AsType[*eventstore.WrongRevision](err)
	form := func(code codes.Code, text string, detail proto.Message) *status.Status {
		packed, err := anypb.New(detail)
		if err != nil {
			packed = &anypb.Any{} // our own messages can always be packed
		}
		return &status.Status{Code: int32(code), Message: text, Details: []*anypb.Any{packed}}
	}
	switch {
	case conflicted:
		return form(codes.FailedPrecondition, wrong.Error(), batchConflict(wrong))
	case refused && (r.code == codes.PermissionDenied || r.code == codes.Unauthenticated):
		return form(r.code, r.text, &shared.AccessDenied{})
	case refused && r.text == tooLarge().text:
		return form(r.code, r.text, &shared.MaximumAppendSizeExceeded{MaxAppendSize: maxAppend})
	case refused:
		return form(r.code, r.text, &shared.BadRequest{Message: r.text})
	case errors.Is(err, eventstore.ErrBadEvent):
		text := legible(err.Error())
		return form(codes.InvalidArgument, text, &shared.BadRequest{Message: text})
	case errors.Is(err, context.DeadlineExceeded):
		return form(codes.DeadlineExceeded, "the append's deadline passed", &shared.Timeout{})
	case errors.Is(err, eventstore.ErrInDoubt):
		return form(codes.Unavailable, eventstore.ErrInDoubt.Error(), &shared.Timeout{})
	default:
		s.Log.Warn("gateway append failed", "error", err)
		return form(codes.Unavailable, "the event log cannot be reached", &shared.Unknown{})
	}
}

func batchConflict(wrong *eventstore.WrongRevision) *shared.WrongExpectedVersion {
	detail := &shared.WrongExpectedVersion{}
	switch wrong.Expected {
	case eventstore.Any:
		detail.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedAny{ExpectedAny: &emptypb.Empty{}}
	case eventstore.NoStream:
		detail.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}}
	case eventstore.StreamExists:
		detail.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &emptypb.Empty{}}
	default:
		detail.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(wrong.Expected)}
	}
	if wrong.Actual < 0 {
		detail.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}
	} else {
		detail.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(wrong.Actual)}
	}
	return detail
}
