package esdbserver

import (
	"context"
	"errors"
	"io"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"bahi/eventstore"
)

type streamsService struct {
	streams.UnimplementedStreamsServer
	*Server
}

// Append receives a stream's name and expected revision, then its events.
func (s *streamsService) Append(call streams.Streams_AppendServer) error {
	answer, err := s.append(call)
	if err != nil {
		return s.failed(call.Context(), err)
	}
	return call.SendAndClose(answer)
}

func (s *streamsService) append(call streams.Streams_AppendServer) (*streams.AppendResp, error) {
	r, bytes := eventstore.Write{}, 0
	refused := s.admitWrite(call.Context())
	if refused != nil {
		done, ok := s.hearOut()
		if !ok {
			return nil, refused
		}
		defer done()
	}
	for begun := false; ; begun = true {
		message, err := call.Recv()
		switch {
		case errors.Is(err, io.EOF):
			if refused == nil && !begun {
				refused = refuse(codes.InvalidArgument, "an append begins with its options")
			}
			if refused != nil {
				return nil, refused
			}
			return s.appended(call.Context(), r)
		case err != nil:
			return nil, err
		case refused != nil && bytes > maxMessage:
			return nil, refused
		case refused != nil: // read the rest; otherwise the client would not receive the reason
			bytes += proto.Size(message)
		case !begun:
			refused = s.begin(&r, message.GetOptions())
		default:
			bytes, refused = s.take(&r, bytes, message.GetProposedMessage())
		}
	}
}

func (s *Server) begin(r *eventstore.Write, o *streams.AppendReq_Options) (err error) {
	switch expected := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		r.Expected = exactly(expected.Revision)
	case *streams.AppendReq_Options_NoStream:
		r.Expected = eventstore.NoStream
	case *streams.AppendReq_Options_Any:
		r.Expected = eventstore.Any
	case *streams.AppendReq_Options_StreamExists:
		r.Expected = eventstore.StreamExists
	default:
		return refuse(codes.InvalidArgument, "an append begins with its stream and expected revision")
	}
	r.Stream, err = streamName(o.GetStreamIdentifier())
	return err
}

// take adds a proposal to an append. bytes is the append's size before, and the result its size after.
func (s *Server) take(r *eventstore.Write, bytes int, p proposal) (int, error) {
	e, err := proposed(p)
	bytes += len(e.Data) + len(e.Meta)
	switch {
	case err != nil:
		return bytes, err
	case bytes > maxAppend || len(r.Events) == maxEvents:
		return bytes, tooLarge()
	case s.Check != nil:
		if err := s.Check(r.Stream, e); err != nil {
			return bytes, refuse(codes.InvalidArgument, "%s", err)
		}
	}
	r.Events = append(r.Events, e)
	return bytes, nil
}

func (s *streamsService) appended(ctx context.Context, r eventstore.Write) (*streams.AppendResp, error) {
	done, err := s.Store.Append(ctx, eventstore.To(r.Stream, r.Expected, r.Events...))
	if wrong, is := errors.AsType[*eventstore.WrongRevision](err); is {
		return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: conflict(wrong)}}, nil
	}
	if err != nil {
		return nil, err
	}
	position := uint64(done.Position)
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(done.Revision)},
		PositionOption: &streams.AppendResp_Success_Position{
			Position: &streams.AppendResp_Position{CommitPosition: position, PreparePosition: position},
		},
	}}}, nil
}

// conflict returns the response to a wrong revision. The call itself succeeds, as clients since 20.6.1 expect.
func conflict(wrong *eventstore.WrongRevision) *streams.AppendResp_WrongExpectedVersion {
	answer := &streams.AppendResp_WrongExpectedVersion{}
	switch wrong.Expected {
	case eventstore.Any:
		answer.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: &shared.Empty{}}
	case eventstore.NoStream:
		answer.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
	case eventstore.StreamExists:
		answer.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
	default:
		answer.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(wrong.Expected)}
	}
	if wrong.Actual < 0 {
		answer.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
	} else {
		answer.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(wrong.Actual)}
	}
	return answer
}

var errAppendOnly = denied("the log is append-only: nothing is ever deleted from it")

// Delete is refused.
func (s *streamsService) Delete(ctx context.Context, _ *streams.DeleteReq) (*streams.DeleteResp, error) {
	if err := s.admit(ctx); err != nil {
		return nil, s.failed(ctx, err)
	}
	return nil, s.failed(ctx, errAppendOnly)
}

// Tombstone is refused.
func (s *streamsService) Tombstone(ctx context.Context, _ *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	if err := s.admit(ctx); err != nil {
		return nil, s.failed(ctx, err)
	}
	return nil, s.failed(ctx, errAppendOnly)
}
