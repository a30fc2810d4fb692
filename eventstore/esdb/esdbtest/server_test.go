package esdbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The tests of this file hold the server against what was measured on the vendor's: CONTRACT.md 0.10.

// client calls a node without the official client, which has opinions of its own.
type client struct {
	t       testing.TB
	streams streams.StreamsClient
}

func dial(t testing.TB, n *Node) client {
	t.Helper()
	conn, err := grpc.NewClient(n.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return client{t, streams.NewStreamsClient(conn)}
}

func sized(bytes int) proposal {
	return proposal{id: uuid.New(), typ: "Done", data: make([]byte, bytes)}
}

func some(n int) []proposal {
	all := make([]proposal, n)
	for i := range all {
		all[i] = sized(20)
	}
	return all
}

// append appends with the protocol's Append.
func (c client) append(ctx context.Context, stream string, expected int64, all ...proposal) (*streams.AppendResp, metadata.MD, error) {
	c.t.Helper()
	call, err := c.streams.Append(ctx)
	require.NoError(c.t, err)
	options := &streams.AppendReq_Options{StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)}}
	switch expected {
	case expectAny:
		options.ExpectedStreamRevision = &streams.AppendReq_Options_Any{Any: &shared.Empty{}}
	case expectNone:
		options.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
	default:
		options.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: uint64(expected)}
	}
	_ = call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: options}}) // a refusal is in the answer
	for _, p := range all {
		_ = call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
			Id: wireID(p.id), Data: p.data, CustomMetadata: p.meta, Metadata: map[string]string{"type": p.typ, "content-type": "application/json"},
		}}})
	}
	answer, err := call.CloseAndRecv()
	return answer, call.Trailer(), err
}

// put appends and returns the position and the revision that the answer names.
func (c client) put(stream string, expected int64, all ...proposal) (position, revision uint64) {
	c.t.Helper()
	answer, _, err := c.append(c.t.Context(), stream, expected, all...)
	require.NoError(c.t, err)
	require.NotNil(c.t, answer.GetSuccess(), "%s", answer)
	at := answer.GetSuccess().GetPosition()
	require.Equal(c.t, at.GetCommitPosition(), at.GetPreparePosition())
	return at.GetCommitPosition(), answer.GetSuccess().GetCurrentRevision()
}

func (c client) conflicts(stream string, expected int64, all ...proposal) {
	c.t.Helper()
	answer, _, err := c.append(c.t.Context(), stream, expected, all...)
	require.NoError(c.t, err)
	require.NotNil(c.t, answer.GetWrongExpectedVersion(), "%s", answer)
}

func ofLog(from uint64, backwards bool) *streams.ReadReq_Options {
	o := &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
			AllOption: &streams.ReadReq_Options_AllOptions_Position{Position: &streams.ReadReq_Options_Position{CommitPosition: from, PreparePosition: from}},
		}},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
		CountOption:  &streams.ReadReq_Options_Count{Count: math.MaxInt64},
	}
	if backwards {
		o.ReadDirection = streams.ReadReq_Options_Backwards
	}
	return o
}

// read returns the events that a read yields, until it ends.
func (c client) read(o *streams.ReadReq_Options) (events []*streams.ReadResp_ReadEvent_RecordedEvent, err error) {
	c.t.Helper()
	call, err := c.streams.Read(c.t.Context(), &streams.ReadReq{Options: o})
	require.NoError(c.t, err)
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, m.GetEvent().GetEvent())
	}
}

func (c client) positions(from uint64, backwards bool) (at []uint64) {
	c.t.Helper()
	events, err := c.read(ofLog(from, backwards))
	require.NoError(c.t, err)
	for _, e := range events {
		at = append(at, e.GetCommitPosition())
	}
	return at
}

// follow subscribes to the log after a position.
func (c client) follow(from uint64, filter *streams.ReadReq_Options_FilterOptions) streams.Streams_ReadClient {
	c.t.Helper()
	o := ofLog(from, false)
	if from == 0 {
		o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
			AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}},
		}}
	}
	o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	if filter != nil {
		o.FilterOption = &streams.ReadReq_Options_Filter{Filter: filter}
	}
	call, err := c.streams.Read(c.t.Context(), &streams.ReadReq{Options: o})
	require.NoError(c.t, err)
	return call
}

func next(t testing.TB, call streams.Streams_ReadClient) *streams.ReadResp {
	t.Helper()
	m, err := call.Recv()
	require.NoError(t, err)
	return m
}

func TestOnlyPositionsOfEventsAreReadFrom(t *testing.T) {
	t.Parallel()
	c := dial(t, Start(t, 1).Node(0))
	var at []uint64
	for i := range 3 {
		position, _ := c.put("thing-1", int64(i-1), sized(10))
		at = append(at, position)
	}
	require.Equal(t, at[1:], c.positions(at[1], false), "forwards includes the event at the position")
	require.Equal(t, at[:1], c.positions(at[1], true), "backwards does not")
	for range 2 { // it stays so
		for _, between := range []uint64{at[0] + 1, at[1] - 1, at[2] + 1} {
			for _, backwards := range []bool{false, true} {
				_, err := c.read(ofLog(between, backwards))
				require.ErrorContains(t, err, "Unexpected ReadAllResult: Error")
			}
			_, err := c.follow(between, nil).Recv()
			require.Equal(t, codes.Unknown, status.Code(err))
			require.ErrorContains(t, err, "Exception was thrown by handler.")
		}
	}
	const beyond = 1 << 40
	require.Empty(t, c.positions(beyond, false))
	_, err := c.read(ofLog(beyond, true))
	require.ErrorContains(t, err, "Unexpected ReadAllResult: Error")

	waiting := c.follow(beyond, nil)
	require.NotNil(t, next(t, waiting).GetConfirmation())
	require.NotNil(t, next(t, waiting).GetCaughtUp())
	position, _ := c.put("thing-1", 2, sized(10))
	require.Equal(t, position, next(t, waiting).GetEvent().GetEvent().GetCommitPosition())
}

func TestEventsOfAnAppendHaveTheirOwnTimesAndPositions(t *testing.T) {
	t.Parallel()
	c := dial(t, Start(t, 1).Node(0))
	position, revision := c.put("thing-1", expectNone, some(10)...)
	require.EqualValues(t, 9, revision)
	events, err := c.read(ofLog(0, false))
	require.NoError(t, err)
	require.Len(t, events, 10)
	require.Equal(t, position, events[9].GetCommitPosition(), "the answer names the last event")
	for i, e := range events[1:] {
		require.Greater(t, e.GetCommitPosition(), events[i].GetCommitPosition())
		require.Greater(t, e.GetMetadata()["created"], events[i].GetMetadata()["created"])
	}
}

func TestARepetitionIsAnsweredAsTheFirstTime(t *testing.T) {
	t.Parallel()
	c := dial(t, Start(t, 1).Node(0))
	c.put("thing-1", expectNone, some(2)...)
	three := some(3)
	position, revision := c.put("thing-1", 1, three...)
	c.put("thing-1", 4, some(1)...) // the stream goes on
	for _, expected := range []int64{1, expectAny} {
		again, at := c.put("thing-1", expected, three...)
		require.Equal(t, position, again)
		require.Equal(t, revision, at)
		again, at = c.put("thing-1", expected, three[:2]...)
		require.Less(t, again, position)
		require.Equal(t, revision-1, at)
		c.conflicts("thing-1", expected, append(three[:3:3], sized(1))...)
	}
	c.conflicts("thing-1", 4, three...)
	other, _ := c.put("thing-2", expectNone, three...)
	require.Greater(t, other, position, "in another stream it is another append")
	require.Len(t, c.positions(0, false), 9)
}

func TestAnAppendHasAGreatestSize(t *testing.T) {
	t.Parallel()
	c := dial(t, Start(t, 1).Node(0))
	full := sized(MaxAppend - len("Done") - 16)
	c.put("thing-1", expectNone, full)
	full.id, full.meta = uuid.New(), []byte("x")
	_, _, err := c.append(t.Context(), "thing-2", expectNone, full)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "Maximum Append Size of 1048576 Exceeded")
	c.put("thing-2", expectNone, some(1000)...)
	c.put(strings.Repeat("n", 5000), expectNone, proposal{id: uuid.New(), typ: strings.Repeat("T", 5000)})
}

func batchOf(stream string, expected int64, all ...proposal) *streams.BatchAppendReq {
	o := &streams.BatchAppendReq_Options{StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)}}
	o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
	if expected >= 0 {
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: uint64(expected)}
	}
	m := &streams.BatchAppendReq{CorrelationId: wireID(uuid.New()), Options: o, IsFinal: true}
	for _, p := range all {
		m.ProposedMessages = append(m.ProposedMessages, &streams.BatchAppendReq_ProposedMessage{
			Id: wireID(p.id), Data: p.data, CustomMetadata: p.meta, Metadata: map[string]string{"type": p.typ, "content-type": "application/json"},
		})
	}
	return m
}

func TestAppendsOfABatchTakePlaceInTheirOrder(t *testing.T) {
	t.Parallel()
	const count = 2000
	c := dial(t, Start(t, 1).Node(0))
	call, err := c.streams.BatchAppend(t.Context())
	require.NoError(t, err)
	go func() {
		for i := range count {
			_ = call.Send(batchOf(fmt.Sprint("thing-", i), expectNone, sized(1))) // an error ends the call
		}
	}()
	var at []uint64
	for range count {
		m, err := call.Recv()
		require.NoError(t, err)
		at = append(at, m.GetSuccess().GetPosition().GetCommitPosition())
	}
	events, err := c.read(ofLog(0, false))
	require.NoError(t, err)
	for i, e := range events {
		require.Equal(t, fmt.Sprint("thing-", i), string(e.GetStreamIdentifier().GetStreamName()))
		require.Equal(t, at[i], e.GetCommitPosition())
	}
	for _, refused := range []struct {
		request *streams.BatchAppendReq
		detail  any
	}{
		{batchOf("thing-1", 7, sized(1)), &shared.WrongExpectedVersion{}},
		{batchOf("thing-1", 0, sized(MaxAppend)), &shared.MaximumAppendSizeExceeded{}},
	} {
		require.NoError(t, call.Send(refused.request))
		m, err := call.Recv()
		require.NoError(t, err)
		detail, err := m.GetError().GetDetails()[0].UnmarshalNew()
		require.NoError(t, err)
		require.IsType(t, refused.detail, detail)
	}
}

func TestASubscriptionCatchesUpAndTellsCheckpointsOfItsFilter(t *testing.T) {
	t.Parallel()
	cluster := Start(t, 1)
	c := dial(t, cluster.Node(0))
	cluster.System(25)
	ours, _ := c.put("thing-1", expectNone, sized(1))
	filter := &streams.ReadReq_Options_FilterOptions{
		Filter: &streams.ReadReq_Options_FilterOptions_EventType{
			EventType: &streams.ReadReq_Options_FilterOptions_Expression{Regex: `^[^\$]`},
		},
		Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: 5},
		CheckpointIntervalMultiplier: 2,
	}
	call := c.follow(0, filter)
	require.NotNil(t, next(t, call).GetConfirmation())
	for range 2 { // of 10 events each
		require.NotNil(t, next(t, call).GetCheckpoint())
	}
	require.Equal(t, ours, next(t, call).GetEvent().GetEvent().GetCommitPosition())
	require.NotNil(t, next(t, call).GetCaughtUp())
	cluster.System(3) // the window is not full yet
	later, _ := c.put("thing-1", 0, sized(1))
	require.Equal(t, later, next(t, call).GetEvent().GetEvent().GetCommitPosition())
	require.NotNil(t, next(t, call).GetCheckpoint(), "the 30th event")
}

func TestAFollowerForwardsAndTimesOutWithoutItsLeader(t *testing.T) {
	t.Parallel()
	cluster := Start(t, 3)
	leader, follower := cluster.Node(0), dial(t, cluster.Node(1))
	position, _ := follower.put("thing-1", expectNone, sized(1))
	require.Equal(t, []uint64{position}, dial(t, leader).positions(0, false))

	demanding := metadata.AppendToOutgoingContext(t.Context(), "requires-leader", "true")
	_, trailer, err := follower.append(demanding, "thing-1", 0, sized(1))
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Equal(t, leader.Address(), trailer.Get("leader-endpoint-host")[0]+":"+trailer.Get("leader-endpoint-port")[0])

	gone := dial(t, leader)
	leader.Stop()
	_, err = gone.streams.Read(t.Context(), &streams.ReadReq{Options: ofLog(0, false)})
	if err == nil {
		_, _, err = gone.append(t.Context(), "thing-1", 0, sized(1))
	}
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, _, err = follower.append(t.Context(), "thing-1", 0, sized(1))
	require.Equal(t, codes.Aborted, status.Code(err))
	require.ErrorContains(t, err, "Operation timed out: Forwarding timeout")

	cluster.Node(2).Elect()
	follower.put("thing-1", 0, sized(1))
	leader.Restart(t)
	leader.Unready(true)
	_, _, err = dial(t, leader).append(t.Context(), "thing-1", 1, sized(1))
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "Server Is Not Ready")
	leader.Unready(false)
	dial(t, leader).put("thing-1", 1, sized(1)) // a follower now
	require.Len(t, dial(t, cluster.Node(2)).positions(0, false), 3)
}
