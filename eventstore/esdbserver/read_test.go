package esdbserver

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	forwards  = streams.ReadReq_Options_Forwards
	backwards = streams.ReadReq_Options_Backwards
)

func read(direction streams.ReadReq_Options_ReadDirection, count uint64) *streams.ReadReq_Options {
	return &streams.ReadReq_Options{
		ReadDirection: direction, CountOption: &streams.ReadReq_Options_Count{Count: count},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
	}
}

// readStream reads from the start forwards, or from the end backwards.
func readStream(stream string, direction streams.ReadReq_Options_ReadDirection, count uint64) *streams.ReadReq {
	o, from := read(direction, count), &streams.ReadReq_Options_StreamOptions{StreamIdentifier: identifier(stream)}
	if from.RevisionOption = (&streams.ReadReq_Options_StreamOptions_Start{}); direction == backwards {
		from.RevisionOption = &streams.ReadReq_Options_StreamOptions_End{}
	}
	o.StreamOption = &streams.ReadReq_Options_Stream{Stream: from}
	return &streams.ReadReq{Options: o}
}

func readAll(direction streams.ReadReq_Options_ReadDirection, count uint64, from *event.Position) *streams.ReadReq {
	o := read(direction, count)
	o.StreamOption = &streams.ReadReq_Options_All{All: allOptions(from)}
	return &streams.ReadReq{Options: o}
}

func allOptions(from *event.Position) *streams.ReadReq_Options_AllOptions {
	switch {
	case from == nil:
		return &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{}}
	case *from == eventstore.End:
		return &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_End{}}
	default:
		at := &streams.ReadReq_Options_Position{CommitPosition: uint64(*from), PreparePosition: uint64(*from)}
		return &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Position{Position: at}}
	}
}

// subscribeAll subscribes from a position, or from the start.
func subscribeAll(from *event.Position, f *streams.ReadReq_Options_FilterOptions) *streams.ReadReq {
	o := read(forwards, 0)
	o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	o.StreamOption = &streams.ReadReq_Options_All{All: allOptions(from)}
	if f != nil {
		o.FilterOption = &streams.ReadReq_Options_Filter{Filter: f}
	}
	return &streams.ReadReq{Options: o}
}

func byType(e *streams.ReadReq_Options_FilterOptions_Expression) *streams.ReadReq_Options_FilterOptions {
	return &streams.ReadReq_Options_FilterOptions{Filter: &streams.ReadReq_Options_FilterOptions_EventType{EventType: e}}
}

func byStream(e *streams.ReadReq_Options_FilterOptions_Expression) *streams.ReadReq_Options_FilterOptions {
	return &streams.ReadReq_Options_FilterOptions{Filter: &streams.ReadReq_Options_FilterOptions_StreamIdentifier{StreamIdentifier: e}}
}

type expression = streams.ReadReq_Options_FilterOptions_Expression

func (r *running) read(t *testing.T, request *streams.ReadReq) streams.Streams_ReadClient {
	t.Helper()
	call, err := r.streams().Read(asOperator(t), request)
	require.NoError(t, err)
	return call
}

func next(t *testing.T, call streams.Streams_ReadClient) *streams.ReadResp {
	t.Helper()
	answer, err := call.Recv()
	require.NoError(t, err)
	return answer
}

// names reads to the end and returns the messages, events as stream@revision.
func (r *running) names(t *testing.T, request *streams.ReadReq) (names []string) {
	t.Helper()
	call := r.read(t, request)
	for {
		answer, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, name(answer))
	}
}

func name(answer *streams.ReadResp) string {
	switch c := answer.GetContent().(type) {
	case *streams.ReadResp_Event:
		e := c.Event.GetEvent()
		return fmt.Sprintf("%s@%d", e.GetStreamIdentifier().GetStreamName(), e.GetStreamRevision())
	case *streams.ReadResp_StreamNotFound_:
		return fmt.Sprintf("no %s", c.StreamNotFound.GetStreamIdentifier().GetStreamName())
	case *streams.ReadResp_Checkpoint_:
		return fmt.Sprintf("checkpoint %d", c.Checkpoint.GetCommitPosition())
	case *streams.ReadResp_CaughtUp_:
		return "caught up"
	case *streams.ReadResp_FellBehind_:
		return "fell behind"
	default:
		return fmt.Sprintf("%T", c)
	}
}

func TestEventIsSentAsStored(t *testing.T) {
	t.Parallel()
	r := start(t)
	e := thing("Kept")
	e.Data, e.Meta = []byte(" {\"b\":1.0, \"a\":\"₹\"}\n"), []byte(`{"schema":1,  "actor":"user:1"}`)
	done := r.put(t, "kept-1", e)
	for _, text := range []bool{false, true} {
		request := readStream("kept-1", forwards, 10)
		if text {
			request.Options.UuidOption = &streams.ReadReq_Options_UUIDOption{
				Content: &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}}
		}
		call := r.read(t, request)
		answer := next(t, call).GetEvent()
		got := answer.GetEvent()
		require.Equal(t, text, got.GetId().GetString_() == e.ID.String())
		id, err := parseID(got.GetId())
		require.NoError(t, err)
		require.Equal(t, e.ID, id)
		require.Equal(t, string(e.Data), string(got.GetData()))
		require.Equal(t, string(e.Meta), string(got.GetCustomMetadata()))
		require.Equal(t, "kept-1", string(got.GetStreamIdentifier().GetStreamName()))
		require.Zero(t, got.GetStreamRevision())
		require.Equal(t, uint64(done.Position), got.GetCommitPosition())
		require.Equal(t, uint64(done.Position), got.GetPreparePosition())
		require.Equal(t, uint64(done.Position), answer.GetCommitPosition())
		require.Equal(t, map[string]string{
			"type": "Kept", "content-type": "application/json", "created": strconv.FormatInt(done.At.UnixNano()/100, 10),
		}, got.GetMetadata())
	}
}

func TestStreamIsReadAsInEventStoreDB(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 4 {
		r.put(t, "read-1", thing("Read"))
	}
	from := func(direction streams.ReadReq_Options_ReadDirection, revision uint64) *streams.ReadReq {
		request := readStream("read-1", direction, 10)
		request.Options.GetStream().RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: revision}
		return request
	}
	require.Equal(t, []string{"read-1@0", "read-1@1", "read-1@2", "read-1@3"}, r.names(t, readStream("read-1", forwards, 10)))
	require.Equal(t, []string{"read-1@0", "read-1@1"}, r.names(t, readStream("read-1", forwards, 2)))
	require.Equal(t, []string{"read-1@3"}, r.names(t, readStream("read-1", backwards, 1)))
	require.Equal(t, []string{"read-1@2", "read-1@3"}, r.names(t, from(forwards, 2)), "it included")
	require.Equal(t, []string{"read-1@1", "read-1@0"}, r.names(t, from(backwards, 1)), "it included")
	require.Empty(t, r.names(t, from(forwards, 4)), "the stream exists without such a revision")
	require.Empty(t, r.names(t, from(forwards, 1<<63)))
	require.Equal(t, []string{"no read-2"}, r.names(t, readStream("read-2", forwards, 10)))
	require.Equal(t, []string{"no read-2"}, r.names(t, readStream("read-2", backwards, 10)))
}

func TestAllIsReadAsInEventStoreDB(t *testing.T) {
	t.Parallel()
	r := start(t)
	var at []event.Position
	for i := range 4 {
		at = append(at, r.put(t, fmt.Sprintf("all-%d", i), thing("Read")).Position)
	}
	end := eventstore.End
	require.Equal(t, []string{"all-0@0", "all-1@0", "all-2@0", "all-3@0"}, r.names(t, readAll(forwards, 10, nil)))
	require.Equal(t, []string{"all-3@0", "all-2@0"}, r.names(t, readAll(backwards, 2, &end)))
	require.Equal(t, []string{"all-2@0", "all-3@0"}, r.names(t, readAll(forwards, 10, &at[2])), "it included")
	require.Equal(t, []string{"all-1@0", "all-0@0"}, r.names(t, readAll(backwards, 10, &at[2])), "exclusive")
	require.Empty(t, r.names(t, readAll(forwards, 10, &end)))
	require.Empty(t, r.names(t, readAll(backwards, 10, nil)))
	beyond := at[3] + 5
	require.Empty(t, r.names(t, readAll(forwards, 10, &beyond)))
}

func TestFilteredRead(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, stream := range []string{"bank-1", "bankrow-1", "user-1", "bank-2"} {
		r.put(t, stream, thing("Begun"), thing("Done"))
	}
	for what, c := range map[string]struct {
		filter *streams.ReadReq_Options_FilterOptions
		count  uint64
		want   []string
	}{
		"a stream's prefix": {byStream(&expression{Prefix: []string{"bank-"}}), 10,
			[]string{"bank-1@0", "bank-1@1", "bank-2@0", "bank-2@1"}},
		"several prefixes": {byStream(&expression{Prefix: []string{"user-", "bankrow-"}}), 3,
			[]string{"bankrow-1@0", "bankrow-1@1", "user-1@0"}},
		"a type's prefix": {byType(&expression{Prefix: []string{"Do"}}), 2, []string{"bank-1@1", "bankrow-1@1"}},
		"an expression": {byStream(&expression{Regex: `^bank(row)?-1$`}), 10,
			[]string{"bank-1@0", "bank-1@1", "bankrow-1@0", "bankrow-1@1"}},
		"an expression anywhere in it":  {byType(&expression{Regex: `eg`}), 1, []string{"bank-1@0"}},
		"all but the server's own":      {byType(&expression{Regex: `^[^\$].*`}), 1, []string{"bank-1@0"}},
		"what is not there":             {byType(&expression{Prefix: []string{"Ended"}}), 10, nil},
		"a prefix is no expression":     {byStream(&expression{Prefix: []string{"bank."}}), 10, nil},
		"counted are those it takes":    {byStream(&expression{Prefix: []string{"bank-2"}}), 1, []string{"bank-2@0"}},
		"an expression is RE2's (\\pL)": {byType(&expression{Regex: `^\p{Lu}one$`}), 1, []string{"bank-1@1"}},
	} {
		request := readAll(forwards, c.count, nil)
		request.Options.FilterOption = &streams.ReadReq_Options_Filter{Filter: c.filter}
		require.Equal(t, c.want, r.names(t, request), what)
	}
}

func TestInvalidReadIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	filtered := func(f *streams.ReadReq_Options_FilterOptions) *streams.ReadReq { return subscribeAll(nil, f) }
	back := subscribeAll(nil, nil)
	back.Options.ReadDirection = backwards
	ofStream := readStream("bank-1", forwards, 1)
	ofStream.Options.FilterOption = filtered(byType(&expression{Regex: "x"})).GetOptions().GetFilterOption()
	for text, request := range map[string]*streams.ReadReq{
		"a read has a count":                       {},
		"a read is of a stream or of all":          {Options: read(forwards, 1)},
		"a stream has a name":                      readStream("", forwards, 1),
		"a subscription goes forwards":             back,
		"a filter has prefixes":                    filtered(byType(&expression{})),
		"expression is invalid in RE2 syntax":      filtered(byType(&expression{Regex: `^(?!\$)`})),
		"or a regular expression of 1024 bytes":    filtered(byType(&expression{Regex: strings.Repeat("x", 1025)})),
		"a filter has at most 256 prefixes":        filtered(byType(&expression{Prefix: make([]string, 257)})),
		"only a read of all can be filtered":       ofStream,
		"the regular expression is invalid in RE2": filtered(byStream(&expression{Regex: `(a{1000}){1000}`})),
	} {
		call := r.read(t, request)
		_, err := call.Recv()
		requireRefused(t, err, codes.InvalidArgument, text)
	}
}

func TestSubscriptionReportsThatItHasCaughtUp(t *testing.T) {
	t.Parallel()
	r := start(t)
	var last event.Position
	for i := range 3 {
		last = r.put(t, fmt.Sprintf("followed-%d", i), thing("Done")).Position
	}
	before, beyond, end := last-1, last+100, eventstore.End
	follow := func(from *event.Position, want ...string) streams.Streams_ReadClient {
		call := r.read(t, subscribeAll(from, nil))
		require.NotEmpty(t, next(t, call).GetConfirmation().GetSubscriptionId())
		for _, w := range want {
			require.Equal(t, w, name(next(t, call)))
		}
		return call
	}
	follow(&beyond, "caught up")
	calls := []streams.Streams_ReadClient{
		follow(nil, "followed-0@0", "followed-1@0", "followed-2@0", "caught up"), follow(&before, "followed-2@0", "caught up"),
		follow(&last, "caught up"), follow(&end, "caught up"),
	}
	r.put(t, "later-1", thing("Done"))
	for _, call := range calls {
		require.Equal(t, "later-1@0", name(next(t, call)))
	}
}

func TestFilteredSubscriptionSendsCheckpoints(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 10 {
		r.put(t, "noise-1", thing("Done"))
	}
	r.put(t, "wanted-1", thing("Done"))
	head := r.put(t, "noise-1", thing("Done")).Position
	f := byStream(&expression{Prefix: []string{"wanted-"}})
	f.Window, f.CheckpointIntervalMultiplier = &streams.ReadReq_Options_FilterOptions_Max{Max: 2}, 2
	call := r.read(t, subscribeAll(nil, f))
	require.NotNil(t, next(t, call).GetConfirmation())
	for _, want := range []string{
		"checkpoint 4", "checkpoint 8", "wanted-1@0", "checkpoint 12", "caught up",
	} {
		require.Equal(t, want, name(next(t, call)))
	}
	require.EqualValues(t, 12, head)
	for range 4 {
		head = r.put(t, "noise-1", thing("Done")).Position
	}
	require.Equal(t, fmt.Sprintf("checkpoint %d", head), name(next(t, call)), "also later on")
}

func TestStreamIsFollowed(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 3 {
		r.put(t, "one-1", thing("Done"))
		r.put(t, "other-1", thing("Done"))
	}
	follow := func(change func(*streams.ReadReq_Options_StreamOptions)) streams.Streams_ReadClient {
		request := readStream("one-1", forwards, 0)
		request.Options.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
		change(request.GetOptions().GetStream())
		call := r.read(t, request)
		require.NotNil(t, next(t, call).GetConfirmation())
		return call
	}
	start := follow(func(*streams.ReadReq_Options_StreamOptions) {})
	after := follow(func(o *streams.ReadReq_Options_StreamOptions) {
		o.RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: 1}
	})
	end := follow(func(o *streams.ReadReq_Options_StreamOptions) {
		o.RevisionOption = &streams.ReadReq_Options_StreamOptions_End{}
	})
	future := follow(func(o *streams.ReadReq_Options_StreamOptions) {
		o.StreamIdentifier = identifier("future-1")
	})
	for _, c := range []struct {
		call streams.Streams_ReadClient
		want []string
	}{
		{start, []string{"one-1@0", "one-1@1", "one-1@2", "caught up"}}, {after, []string{"one-1@2", "caught up"}},
		{end, []string{"caught up"}}, {future, []string{"caught up"}},
	} {
		for _, w := range c.want {
			require.Equal(t, w, name(next(t, c.call)))
		}
	}
	r.put(t, "other-1", thing("Done"))
	r.put(t, "one-1", thing("Done"))
	r.put(t, "future-1", thing("Done"))
	for _, call := range []streams.Streams_ReadClient{start, after, end} {
		require.Equal(t, "one-1@3", name(next(t, call)))
	}
	require.Equal(t, "future-1@0", name(next(t, future)))
}

func TestSlowClientIsToldThatItFellBehind(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.slow = 0
	call := r.read(t, subscribeAll(nil, nil))
	require.NotNil(t, next(t, call).GetConfirmation())
	require.Equal(t, "caught up", name(next(t, call)))
	large := thing("Done")
	large.Data = []byte(`"` + strings.Repeat("x", 900_000) + `"`)
	for range 24 { // more than the connection ever holds
		large.ID[0]++
		r.put(t, "large-1", large)
	}
	events := 0
	for fell := false; ; {
		switch name(next(t, call)) {
		case "fell behind":
			fell = true
		case "caught up":
			if fell && events == 24 { // it may have caught up earlier: the connection's buffers vary
				return
			}
		default:
			events++
		}
	}
}

// As after a restore that lost events: the subscription would wait, and then miss the new events at the lost positions.
func TestSubscriptionBeyondTheEndIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	beyond := r.put(t, "thing-1", thing("ThingDone")).Position + 1
	call := r.read(t, subscribeAll(&beyond, nil))
	var err error
	for err == nil {
		var answer *streams.ReadResp
		answer, err = call.Recv()
		require.Nil(t, answer.GetEvent())
	}
	requireRefused(t, err, codes.DataLoss, "the log lost its newest events")
}
