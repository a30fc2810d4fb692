package esdbtest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

type streamsService struct {
	streams.UnimplementedStreamsServer
	*Node

	life context.Context // of the node's present server: calls of an earlier one may outlast it
}

// proposed is an event of Append or BatchAppend.
type proposed interface {
	GetId() *shared.UUID
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

func proposalOf(p proposed) proposal {
	m := p.GetMetadata()
	return proposal{id: idOf(p.GetId()), typ: m["type"], contentType: m["content-type"], data: p.GetData(), meta: p.GetCustomMetadata()}
}

func idOf(id *shared.UUID) (parsed uuid.UUID) {
	if s := id.GetStructured(); s != nil {
		binary.BigEndian.PutUint64(parsed[:8], uint64(s.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(parsed[8:], uint64(s.GetLeastSignificantBits()))
		return parsed
	}
	return uuid.MustParse(id.GetString_())
}

func wireID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits: int64(binary.BigEndian.Uint64(id[:8])), LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// Append receives the stream and the expected revision, and then the events.
func (s streamsService) Append(call streams.Streams_AppendServer) error {
	first, err := call.Recv()
	if err != nil {
		return err
	}
	o := first.GetOptions()
	expected := int64(expectAny)
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		expected = int64(min(e.Revision, math.MaxInt64))
	case *streams.AppendReq_Options_NoStream:
		expected = expectNone
	case *streams.AppendReq_Options_StreamExists:
		expected = expectExists
	}
	var all []proposal
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all = append(all, proposalOf(m.GetProposedMessage()))
	}
	last, err := s.put(call.Context(), string(o.GetStreamIdentifier().GetStreamName()), expected, all)
	wrong, conflicted := errors.AsType[wrongRevision](err)
	switch {
	case errors.Is(err, errNotLeader):
		call.SetTrailer(s.cluster.leaderTrailer())
		return status.Error(codes.NotFound, "Leader info available")
	case conflicted:
		answer := &streams.AppendResp_WrongExpectedVersion{}
		answer.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
		if wrong.actual >= 0 {
			answer.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(wrong.actual)}
		}
		return call.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: answer}})
	case err != nil:
		return err
	}
	return call.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: last.revision},
		PositionOption: &streams.AppendResp_Success_Position{
			Position: &streams.AppendResp_Position{CommitPosition: last.position, PreparePosition: last.position},
		},
	}}})
}

func (c *Cluster) leaderTrailer() metadata.MD {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(c.leader.address)
	return metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port)
}

// batch is an append of BatchAppend whose pieces still arrive.
type batch struct {
	options *streams.BatchAppendReq_Options
	events  []proposal
}

// BatchAppend appends in the order in which the last pieces arrive.
func (s streamsService) BatchAppend(call streams.Streams_BatchAppendServer) error {
	open := map[uuid.UUID]*batch{}
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		id := idOf(m.GetCorrelationId())
		b := open[id]
		if b == nil {
			b = &batch{options: m.GetOptions()}
			open[id] = b
		}
		for _, p := range m.GetProposedMessages() {
			b.events = append(b.events, proposalOf(p))
		}
		if !m.GetIsFinal() {
			continue
		}
		delete(open, id)
		answer, err := s.putBatch(call, b)
		if err != nil {
			return err
		}
		answer.CorrelationId, answer.StreamIdentifier = m.GetCorrelationId(), b.options.GetStreamIdentifier()
		if err := call.Send(answer); err != nil {
			return err
		}
	}
}

// putBatch returns an append's answer, or the error that ends the whole call.
func (s streamsService) putBatch(call streams.Streams_BatchAppendServer, b *batch) (*streams.BatchAppendResp, error) {
	expected := int64(expectAny)
	switch e := b.options.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		expected = int64(min(e.StreamPosition, math.MaxInt64))
	case *streams.BatchAppendReq_Options_NoStream:
		expected = expectNone
	case *streams.BatchAppendReq_Options_StreamExists:
		expected = expectExists
	}
	last, err := s.put(call.Context(), string(b.options.GetStreamIdentifier().GetStreamName()), expected, b.events)
	wrong, conflicted := errors.AsType[wrongRevision](err)
	most, isTooLarge := errors.AsType[tooLarge](err)
	switch {
	case err == nil:
		return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Success_{Success: &streams.BatchAppendResp_Success{
			CurrentRevisionOption: &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: last.revision},
			PositionOption: &streams.BatchAppendResp_Success_Position{
				Position: &shared.AllStreamPosition{CommitPosition: last.position, PreparePosition: last.position},
			},
		}}}, nil
	case errors.Is(err, errNotLeader):
		call.SetTrailer(s.cluster.leaderTrailer())
		return nil, status.Error(codes.NotFound, "Leader info available")
	case conflicted:
		detail := &shared.WrongExpectedVersion{CurrentStreamRevisionOption: &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}}
		if wrong.actual >= 0 {
			detail.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(wrong.actual)}
		}
		return failed(codes.FailedPrecondition, "WrongExpectedVersion", detail), nil
	case isTooLarge:
		return failed(codes.InvalidArgument, "Maximum Append Size Exceeded", &shared.MaximumAppendSizeExceeded{MaxAppendSize: uint32(most)}), nil
	case status.Code(err) == codes.Aborted:
		return failed(codes.Aborted, "Operation timed out: Forwarding timeout", &shared.Timeout{}), nil
	default:
		return nil, err
	}
}

func failed(code codes.Code, text string, detail proto.Message) *streams.BatchAppendResp {
	packed, err := anypb.New(detail)
	if err != nil {
		panic(err) // our own messages can always be packed
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Error{
		Error: &rpc.Status{Code: int32(code), Message: text, Details: []*anypb.Any{packed}},
	}}
}
