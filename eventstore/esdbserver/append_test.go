package esdbserver

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"bahi/domain/event"
	"bahi/eventstore"
)

func proposal1(e event.Proposed) *streams.AppendReq_ProposedMessage {
	return &streams.AppendReq_ProposedMessage{
		Id: textID(e.ID), Metadata: map[string]string{"type": e.Type, "content-type": "application/json"}, CustomMetadata: e.Meta, Data: e.Data,
	}
}

// appendTo appends to a stream of any revision, unless the options are changed.
func appendTo(
	ctx context.Context, r *running, stream string, change func(*streams.AppendReq_Options), proposals ...*streams.AppendReq_ProposedMessage,
) (*streams.AppendResp, error) {
	call, err := r.streams().Append(ctx)
	if err != nil {
		return nil, err
	}
	o := &streams.AppendReq_Options{StreamIdentifier: identifier(stream),
		ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}}}
	if change != nil {
		change(o)
	}
	if err := call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}}); err != nil {
		return nil, err
	}
	for _, p := range proposals {
		if err := call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: p}}); err != nil {
			break // the response has the reason
		}
	}
	answer, err := call.CloseAndRecv()
	if err != nil {
		for name, values := range call.Trailer() {
			if name == "exception" {
				err = fmt.Errorf("%s: %w", values[0], err)
			}
		}
	}
	return answer, err
}

func (r *running) holds(t *testing.T, stream string) (kinds []string) {
	t.Helper()
	for e, err := range r.log.ReadStream(t.Context(), stream, 0, eventstore.Forwards) {
		require.NoError(t, err)
		kinds = append(kinds, e.Type)
	}
	return kinds
}

func TestAppendIsStored(t *testing.T) {
	t.Parallel()
	r := start(t)
	one, two := thing("Begun"), thing("Done")
	one.Meta = nil // clients may leave it out
	structured := proposal1(two)
	structured.Id = structuredID(two.ID)
	answer, err := appendTo(asOperator(t), r, "new-1", func(o *streams.AppendReq_Options) {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
	}, proposal1(one), structured)
	require.NoError(t, err)
	require.EqualValues(t, 1, answer.GetSuccess().GetCurrentRevision())
	var got []event.Stored
	for e, err := range r.log.ReadStream(t.Context(), "new-1", 0, eventstore.Forwards) {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Len(t, got, 2)
	require.Equal(t, []uuid.UUID{one.ID, two.ID}, []uuid.UUID{got[0].ID, got[1].ID})
	require.Equal(t, "{}", string(got[0].Meta))
	require.Equal(t, string(two.Meta), string(got[1].Meta))
	require.Equal(t, uint64(got[1].Position), answer.GetSuccess().GetPosition().GetCommitPosition())

	again, err := appendTo(asOperator(t), r, "new-1", func(o *streams.AppendReq_Options) {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
	}, proposal1(one), structured)
	require.NoError(t, err)
	require.True(t, proto.Equal(answer, again))
	require.Len(t, r.holds(t, "new-1"), 2)
}

func TestConflictReportsBothRevisions(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.put(t, "there-1", thing("Begun"), thing("Done"))
	type conflicts = streams.AppendResp_WrongExpectedVersion
	for _, c := range []struct {
		stream string
		change func(*streams.AppendReq_Options)
		want   *conflicts
	}{
		{"there-1", func(o *streams.AppendReq_Options) {
			o.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
		}, &conflicts{
			CurrentRevisionOption:  &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: 1},
			ExpectedRevisionOption: &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}},
		}},
		{"there-1", func(o *streams.AppendReq_Options) {
			o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: 7}
		}, &conflicts{
			CurrentRevisionOption:  &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: 1},
			ExpectedRevisionOption: &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: 7},
		}},
		{"missing-1", func(o *streams.AppendReq_Options) {
			o.ExpectedStreamRevision = &streams.AppendReq_Options_StreamExists{StreamExists: &shared.Empty{}}
		}, &conflicts{
			CurrentRevisionOption:  &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}},
			ExpectedRevisionOption: &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}},
		}},
	} {
		answer, err := appendTo(asOperator(t), r, c.stream, c.change, proposal1(thing("Late")))
		require.NoError(t, err)
		require.True(t, proto.Equal(c.want, answer.GetWrongExpectedVersion()), "%v", answer)
	}
	require.Len(t, r.holds(t, "there-1"), 2)
}

func TestInvalidAppendIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Check = func(stream string, e event.Proposed) error {
			if e.Type == "Unsound" {
				return fmt.Errorf("%s is not for %s", e.Type, stream)
			}
			return nil
		}
	})
	with := func(change func(*streams.AppendReq_ProposedMessage)) []*streams.AppendReq_ProposedMessage {
		p := proposal1(thing("Added"))
		change(p)
		return []*streams.AppendReq_ProposedMessage{proposal1(thing("Good")), p, proposal1(thing("Good"))}
	}
	many := func(count int) (all []*streams.AppendReq_ProposedMessage) {
		for range count {
			all = append(all, proposal1(thing("Added")))
		}
		return all
	}
	large := strings.Repeat("x", 6<<20)
	for name, c := range map[string]struct {
		proposals []*streams.AppendReq_ProposedMessage
		code      codes.Code
		text      string
	}{
		"binary": {with(func(p *streams.AppendReq_ProposedMessage) {
			p.GetMetadata()["content-type"] = "application/octet-stream"
		}), codes.InvalidArgument, "the log holds events in JSON"},
		"no JSON": {with(func(p *streams.AppendReq_ProposedMessage) { p.Data = []byte(`{`) }), codes.InvalidArgument, "JSON"},
		"no type": {with(func(p *streams.AppendReq_ProposedMessage) { delete(p.GetMetadata(), "type") }), codes.InvalidArgument,
			"missing-required-metadata-property"},
		"no id": {with(func(p *streams.AppendReq_ProposedMessage) { p.Id = nil }), codes.InvalidArgument, "an event's id is a UUID"},
		"system": {with(func(p *streams.AppendReq_ProposedMessage) { p.GetMetadata()["type"] = "$metadata" }), codes.PermissionDenied,
			"access-denied"},
		"checked": {with(func(p *streams.AppendReq_ProposedMessage) { p.GetMetadata()["type"] = "Unsound" }), codes.InvalidArgument,
			"Unsound is not for refused-1"},
		"too much": {with(func(p *streams.AppendReq_ProposedMessage) {
			p.Data, p.CustomMetadata = []byte(`"`+large+large+`"`), []byte(`"`+large[:9<<19]+`"`)
		}), codes.InvalidArgument, "maximum-append-size-exceeded"},
		"too many": {many(maxEvents + 1), codes.InvalidArgument, "at most 4000000 bytes and 4096 events"},
		"nothing":  {nil, codes.InvalidArgument, "a write has at least one event"},
	} {
		_, err := appendTo(asOperator(t), r, "refused-1", nil, c.proposals...)
		require.Error(t, err, name)
		requireRefused(t, err, c.code, c.text)
	}
	_, err := appendTo(asOperator(t), r, "$settings", nil, proposal1(thing("Added")))
	requireRefused(t, err, codes.PermissionDenied, "the server's own")
	_, err = appendTo(asOperator(t), r, "refused-1", func(o *streams.AppendReq_Options) { o.ExpectedStreamRevision = nil },
		proposal1(thing("Added")))
	requireRefused(t, err, codes.InvalidArgument, "begins with its stream and expected revision")
	call, err := r.streams().Append(asOperator(t))
	require.NoError(t, err)
	_, err = call.CloseAndRecv()
	requireRefused(t, err, codes.InvalidArgument, "begins with its options")
	require.Empty(t, r.holds(t, "refused-1"))
}

func TestReadOnlyGatewayRefusesAppends(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Writable = false })
	_, err := appendTo(asOperator(t), r, "new-1", nil, proposal1(thing("Added")))
	requireRefused(t, err, codes.PermissionDenied, "access-denied")
	require.ErrorContains(t, err, "BAHI_GATEWAY_WRITE")
	b := r.batches(t)
	b.send(t, batchOf("new-1", true, thing("Added")))
	requireDetail(t, b.next(t), &shared.AccessDenied{})
	require.Empty(t, r.holds(t, "new-1"))
}

// batches is a call of BatchAppend.
type batches struct {
	streams.Streams_BatchAppendClient
}

func (r *running) batches(t *testing.T) *batches {
	t.Helper()
	call, err := r.streams().BatchAppend(asOperator(t))
	require.NoError(t, err)
	return &batches{call}
}

func (b *batches) send(t *testing.T, message *streams.BatchAppendReq) {
	t.Helper()
	require.NoError(t, b.Send(message))
}

func (b *batches) next(t *testing.T) *streams.BatchAppendResp {
	t.Helper()
	answer, err := b.Recv()
	require.NoError(t, err)
	return answer
}

func batchOf(stream string, final bool, events ...event.Proposed) *streams.BatchAppendReq {
	m := &streams.BatchAppendReq{CorrelationId: textID(uuid.New()), IsFinal: final, Options: &streams.BatchAppendReq_Options{
		StreamIdentifier: identifier(stream), ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
	}}
	for _, e := range events {
		p := proposal1(e)
		m.ProposedMessages = append(m.ProposedMessages, &streams.BatchAppendReq_ProposedMessage{
			Id: p.GetId(), Metadata: p.GetMetadata(), CustomMetadata: p.GetCustomMetadata(), Data: p.GetData(),
		})
	}
	return m
}

// requireDetail checks the kind of an error. Some clients read nothing else.
func requireDetail(t *testing.T, answer *streams.BatchAppendResp, want proto.Message) {
	t.Helper()
	require.Len(t, answer.GetError().GetDetails(), 1)
	got, err := answer.GetError().GetDetails()[0].UnmarshalNew()
	require.NoError(t, err)
	require.True(t, proto.Equal(want, got), "%v", got)
}

func TestBatchedAppendsAreAnsweredSeparately(t *testing.T) {
	t.Parallel()
	r := start(t)
	b := r.batches(t)
	pieces := batchOf("pieces-1", false, thing("First"))
	b.send(t, pieces)
	whole := batchOf("whole-1", true, thing("Only"))
	b.send(t, whole)
	answer := b.next(t)
	require.True(t, proto.Equal(whole.GetCorrelationId(), answer.GetCorrelationId()))
	require.Equal(t, "whole-1", string(answer.GetStreamIdentifier().GetStreamName()))
	require.NotNil(t, answer.GetAny())
	require.Zero(t, answer.GetSuccess().GetCurrentRevision())
	require.NotZero(t, answer.GetSuccess().GetPosition().GetCommitPosition())
	require.Empty(t, r.holds(t, "pieces-1"))

	second := batchOf("", true, thing("Second"))
	second.CorrelationId, second.Options = pieces.GetCorrelationId(), nil
	b.send(t, second)
	answer = b.next(t)
	require.True(t, proto.Equal(pieces.GetCorrelationId(), answer.GetCorrelationId()))
	require.EqualValues(t, 1, answer.GetSuccess().GetCurrentRevision())
	require.Equal(t, []string{"First", "Second"}, r.holds(t, "pieces-1"))

	late := batchOf("whole-1", true, thing("Late"))
	late.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
	b.send(t, late)
	requireDetail(t, b.next(t), &shared.WrongExpectedVersion{
		CurrentStreamRevisionOption:  &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: 0},
		ExpectedStreamPositionOption: &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}},
	})
	missing := batchOf("missing-1", true, thing("Late"))
	missing.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: 3}
	b.send(t, missing)
	requireDetail(t, b.next(t), &shared.WrongExpectedVersion{
		CurrentStreamRevisionOption:  &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}},
		ExpectedStreamPositionOption: &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: 3},
	})
	system := batchOf("$settings", true, thing("Added"))
	b.send(t, system)
	requireDetail(t, b.next(t), &shared.AccessDenied{})
	for _, deadline := range []func(*streams.BatchAppendReq_Options){
		func(o *streams.BatchAppendReq_Options) {
			o.DeadlineOption = &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(-time.Second)}
		},
		func(o *streams.BatchAppendReq_Options) {
			o.DeadlineOption = &streams.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Now().Add(-time.Second))}
		},
	} {
		past := batchOf("whole-1", true, thing("Late"))
		deadline(past.GetOptions())
		b.send(t, past)
		requireDetail(t, b.next(t), &shared.Timeout{})
	}
	large := thing("Large")
	large.Data = []byte(`"` + strings.Repeat("x", maxAppend) + `"`)
	b.send(t, batchOf("large-1", true, large))
	requireDetail(t, b.next(t), &shared.MaximumAppendSizeExceeded{MaxAppendSize: maxAppend})
	unsound := thing("Unsound")
	unsound.Data = []byte(`{`)
	b.send(t, batchOf("large-1", true, unsound))
	require.Contains(t, b.next(t).GetError().GetMessage(), "JSON")

	require.NoError(t, b.CloseSend())
	_, err := b.Recv()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"Only"}, r.holds(t, "whole-1"))
	require.Empty(t, r.holds(t, "large-1"))
}

func TestBatchedAppendsToAStreamKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := start(t)
	b := r.batches(t)
	const count = 300
	sent := make(chan error, 1)
	go func() {
		for i := range count {
			m := batchOf("ordered-1", true, thing(fmt.Sprintf("Done%d", i)))
			if i > 0 {
				m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: uint64(i - 1)}
			}
			if err := b.Send(m); err != nil {
				sent <- err
				return
			}
		}
		sent <- b.CloseSend()
	}()
	for i := range count {
		require.EqualValues(t, i, b.next(t).GetSuccess().GetCurrentRevision())
	}
	require.NoError(t, <-sent)
	require.Len(t, r.holds(t, "ordered-1"), count)
}

func TestUnfinishedAppendsDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	r := start(t)
	b := r.batches(t)
	large := thing("Large")
	large.Data = []byte(`"` + strings.Repeat("x", 12<<20) + `"`)
	for range 8 {
		if err := b.Send(batchOf("large-1", false, large)); err != nil {
			break // the server had enough
		}
	}
	_, err := b.Recv()
	requireRefused(t, err, codes.ResourceExhausted, "bytes")
}

func TestBatchAppendRequiresAKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	call, err := r.streams().BatchAppend(metadata.AppendToOutgoingContext(with(t, ""), "authorization", basic("wrong")))
	require.NoError(t, err)
	b := &batches{call}
	b.send(t, batchOf("new-1", true, thing("Added")))
	requireDetail(t, b.next(t), &shared.AccessDenied{})
	require.Empty(t, r.holds(t, "new-1"))
}
