package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/request"
	"bahi/eventstore"
)

var errCrash = errors.New("the process is gone")

// crash lets the node die before or after its next append to a stream whose name has this prefix.
func (n *node) crash(before, after string) {
	once := func(prefix string) func(context.Context, string) error {
		if prefix == "" {
			return nil
		}
		return func(_ context.Context, stream string) error {
			if !strings.HasPrefix(stream, prefix) {
				return nil
			}
			n.store.Set(func() { n.store.Appending, n.store.Appended = nil, nil })
			return errCrash
		}
	}
	n.store.Set(func() { n.store.Appending, n.store.Appended = once(before), once(after) })
}

// fresh returns a new id at each call.
func fresh() func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return uuid.NewString(), nil }
}

func TestTheSameRequestTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	req := as(t, keyed("k", "x"))
	out, err := Create(t.Context(), all[0].Handler, req, things, fresh(), makeThing{Name: "a"})
	require.NoError(t, err)
	require.False(t, out.Replayed)
	_, err = Handle(t.Context(), all[1].Handler, as(t), things, out.ID, nameThing{Name: "edited since"})
	require.NoError(t, err)
	for _, n := range all {
		again, err := Create(t.Context(), n.Handler, req, things, fresh(), makeThing{Name: "a"})
		require.NoError(t, err)
		want := out
		want.Replayed = true
		require.Equal(t, want, again, "the state is the one of then")
	}
	require.Equal(t, []string{"RequestAccepted", "ThingMade", "ThingNamed"}, all[0].log(t))
}

// An operation of several steps asks first for the outcome of an earlier request.
func TestARequestKnowsWhatItDidEarlier(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].make(t, "a", "before")
	req := as(t, keyed("k", "x"))
	for _, without := range []Request{req, as(t)} {
		_, done, err := PreviousOutcome(t.Context(), all[0].Handler, without, things)
		require.NoError(t, err)
		require.False(t, done)
	}
	out, err := Handle(t.Context(), all[0].Handler, req, things, "a", nameThing{Name: "after"})
	require.NoError(t, err)
	again, done, err := PreviousOutcome(t.Context(), all[1].Handler, req, things)
	require.NoError(t, err)
	require.True(t, done)
	out.Replayed = true
	require.Equal(t, out, again)
	_, _, err = PreviousOutcome(t.Context(), all[1].Handler, as(t, keyed("k", "another request")), things)
	require.ErrorIs(t, err, ErrKeyReused)

	all[0].crash("thing-", "") // it was accepted, and changed nothing
	crashed := as(t, keyed("k2", "x"))
	_, err = Handle(t.Context(), all[0].Handler, crashed, things, "a", nameThing{Name: "never"})
	require.ErrorIs(t, err, errCrash)
	_, done, err = PreviousOutcome(t.Context(), all[1].Handler, crashed, things)
	require.NoError(t, err)
	require.False(t, done)
}

func TestTheSameRequestOnManyNodesAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	all[0].make(t, "edited", "a")
	for round := range 12 {
		do := map[string]func(n *node, req Request) (Outcome[thing], error){
			"make": func(n *node, req Request) (Outcome[thing], error) {
				return Create(t.Context(), n.Handler, req, things, fresh(), makeThing{Name: "a"})
			},
			"name": func(n *node, req Request) (Outcome[thing], error) {
				return Handle(t.Context(), n.Handler, req, things, "edited", nameThing{Name: strconv.Itoa(round)})
			},
			"end": func(n *node, req Request) (Outcome[thing], error) {
				return Handle(t.Context(), n.Handler, req, things, "ended"+strconv.Itoa(round), endThing{})
			},
		}
		all[0].make(t, "ended"+strconv.Itoa(round), "a")
		for what, do := range do {
			req := as(t, keyed(fmt.Sprint(what, round), "x"))
			var (
				at   sync.WaitGroup
				mu   sync.Mutex
				outs []Outcome[thing]
				gate = make(chan struct{})
			)
			for i := range 6 {
				at.Go(func() {
					<-gate
					out, err := do(all[i%len(all)], req)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					outs = append(outs, out)
				})
			}
			close(gate)
			at.Wait()
			for _, out := range outs {
				out.Replayed = outs[0].Replayed
				require.Equal(t, outs[0], out, what)
			}
			again, err := do(all[0], req)
			require.NoError(t, err)
			require.True(t, again.Replayed)
		}
	}
	counts := map[string]int{}
	for _, name := range all[0].log(t) {
		counts[name]++
	}
	require.Equal(t, map[string]int{"RequestAccepted": 36, "ThingMade": 1 + 24, "ThingNamed": 12, "ThingEnded": 12}, counts)
}

func TestAnotherRequestWithTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "a")
	_, err := Handle(t.Context(), n.Handler, as(t, keyed("k", "x")), things, "1", nameThing{Name: "b"})
	require.NoError(t, err)
	_, err = Handle(t.Context(), n.Handler, as(t, keyed("k", "y")), things, "1", nameThing{Name: "c"})
	require.ErrorIs(t, err, ErrKeyReused)
	for name, other := range map[string]func(*Request){
		"operation": func(r *Request) { r.Operation = "other" },
		"caller":    func(r *Request) { r.Actor.ID = "8" },
		"workspace": func(r *Request) { r.Workspace = stranger },
	} {
		out, err := Create(t.Context(), n.Handler, as(t, keyed("k", "y"), other), things, called(name), makeThing{Name: "c"})
		require.NoError(t, err, "the key is another's of another %s", name)
		require.False(t, out.Replayed)
	}
}

func TestThePublicSharesNoKeys(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	public := func(r *Request) { r.Actor = actor.Actor{} }
	one, err := Create(t.Context(), n.Handler, as(t, keyed("1", "x"), public), things, fresh(), makeThing{Name: "a"})
	require.NoError(t, err)
	two, err := Create(t.Context(), n.Handler, as(t, keyed("1", "y"), public), things, fresh(), makeThing{Name: "b"})
	require.NoError(t, err, "it is another caller who also counts from 1")
	require.NotEqual(t, one.ID, two.ID)
	again, err := Create(t.Context(), n.Handler, as(t, keyed("1", "y"), public), things, fresh(), makeThing{Name: "b"})
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, two.ID, again.ID)
}

func TestARefusedRequestDoesNotBurnItsKey(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	_, err := Handle(t.Context(), n.Handler, as(t, keyed("k", "x")), things, "1", nameThing{Name: "b"})
	require.ErrorIs(t, err, errNoThing)
	require.Empty(t, n.log(t))
	n.make(t, "1", "a")
	out, err := Handle(t.Context(), n.Handler, as(t, keyed("k", "other")), things, "1", nameThing{Name: "c"})
	require.NoError(t, err)
	require.Equal(t, "c", out.State.Name)
}

func TestThatNothingChangedIsRememberedToo(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].make(t, "1", "a")
	req := as(t, keyed("k", "x"))
	out, err := Handle(t.Context(), all[0].Handler, req, things, "1", nameThing{Name: "a"})
	require.NoError(t, err)
	require.False(t, out.Changed || out.Replayed)
	_, err = Handle(t.Context(), all[0].Handler, as(t), things, "1", nameThing{Name: "b"})
	require.NoError(t, err)
	again, err := Handle(t.Context(), all[1].Handler, req, things, "1", nameThing{Name: "a"})
	require.NoError(t, err)
	out.Replayed = true
	require.Equal(t, out, again, "it still changes nothing later")
	require.Greater(t, out.Position, all[0].stream(t, "thing-1")[0].Position, "it was decided later")
	require.Less(t, out.Position, all[0].stream(t, "thing-1")[1].Position)
	require.Len(t, all[0].stream(t, "thing-1"), 2)
}

func TestAKeyIsFreeAgainWhenItsRequestLostToAnother(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].make(t, "1", "a")
	all[0].store.Set(func() {
		all[0].store.Appending = func(_ context.Context, stream string) error {
			if stream != "thing-1" {
				return nil
			}
			all[0].store.Set(func() { all[0].store.Appending = nil })
			_, err := Handle(t.Context(), all[1].Handler, as(t), things, "1", endThing{})
			return err
		}
	})
	req := as(t, keyed("k", "x"))
	_, err := Handle(t.Context(), all[0].Handler, req, things, "1", nameThing{Name: "b"})
	require.ErrorIs(t, err, errNoThing)
	require.Equal(t, []string{"ThingMade", "ThingEnded"}, all[0].log(t))

	out, err := Create(t.Context(), all[1].Handler, as(t, keyed("k", "another body")), things, called("2"), makeThing{Name: "b"})
	require.NoError(t, err)
	again, err := Create(t.Context(), all[0].Handler, as(t, keyed("k", "another body")), things, called("3"), makeThing{Name: "b"})
	require.NoError(t, err)
	require.Equal(t, out.ID, again.ID)
}

func TestAKeyIsKeptOnlyAsAKeyedHash(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	_, err := Create(t.Context(), n.Handler, as(t, keyed("the key", "the body")), things, called("1"), makeThing{Name: "a"})
	require.NoError(t, err)
	for e, err := range n.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if e.Type != "RequestAccepted" {
			continue
		}
		_, id := event.SplitStream(e.Stream)
		require.Len(t, id, 64)
		require.NotContains(t, e.Stream+string(e.Data)+string(e.Meta), "the ")
		r, err := request.Kind.Decode(e)
		require.NoError(t, err)
		require.Equal(t, "thing-1", r.Data.(request.Accepted).Stream)
	}
}

func TestAVaultThatDoesNotAnswerFailsTheRequest(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.vault = shut{}
	_, err := Create(t.Context(), n.Handler, as(t, keyed("k", "x")), things, called("1"), makeThing{Name: "a"})
	require.ErrorIs(t, err, errCrash)
	_, refused := errors.AsType[*fault.Error](err)
	require.False(t, refused)
	require.Empty(t, n.log(t))
}

type shut struct{ sum }

func (shut) ForgetNamed() {}

func (shut) HMAC(context.Context, string, ...[]byte) ([]byte, error) { return nil, errCrash }
