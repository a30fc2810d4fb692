package commands

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/internal/test/interleavetest"
	"bahi/internal/test/worktest"
)

// thing is an aggregate for these tests.
type thing struct {
	Name string
	Gone bool
}

type (
	made  struct{ Name string }
	named struct{ Name string }
	ended struct{}
)

func (e made) Evolve(thing) thing    { return thing{Name: e.Name} }
func (e named) Evolve(s thing) thing { s.Name = e.Name; return s }
func (ended) Evolve(s thing) thing   { s.Gone = true; return s }

var things = event.NewKind("thing", event.Of[made]("ThingMade", 1), event.Of[named]("ThingNamed", 1), event.Of[ended]("ThingEnded", 1))

var (
	errNoThing = fault.New(fault.NotFound, "Thing not found")
	errThing   = fault.New(fault.Conflict, "Thing exists already")
)

type (
	makeThing struct{ Name string }
	nameThing struct{ Name string }
	endThing  struct{}
)

func (c makeThing) Decide(s thing) ([]event.Event[thing], error) {
	if s.Name != "" {
		return nil, errThing
	}
	return []event.Event[thing]{made(c)}, nil
}

func (c nameThing) Decide(s thing) ([]event.Event[thing], error) {
	switch {
	case s.Name == "" || s.Gone:
		return nil, errNoThing
	case s.Name == c.Name:
		return nil, nil
	}
	return []event.Event[thing]{named(c)}, nil
}

func (endThing) Decide(s thing) ([]event.Event[thing], error) {
	if s.Name == "" || s.Gone {
		return nil, errNoThing
	}
	return []event.Event[thing]{ended{}}, nil
}

// sum is a Vault that all nodes share. These tests' events have nothing to seal.
type sum struct{}

func (sum) Seal(context.Context, []*event.Sealed) error         { return nil }
func (sum) OpenPersonal(context.Context, []*event.Sealed) error { return nil }
func (sum) ForgetNamed()                                        {}

func (sum) HMAC(_ context.Context, name string, parts ...[]byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte(name))
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return h.Sum(nil), nil
}

// breakingLog is a node whose subscription a test breaks once.
type breakingLog struct {
	*interleavetest.Node

	broken atomic.Bool
}

func (f *breakingLog) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		for batch, err := range f.Node.Subscribe(ctx, after) {
			if f.broken.CompareAndSwap(true, false) {
				yield(eventstore.Batch{}, eventstore.ErrUnavailable)
				return
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// node is one of several processes on a log.
type node struct {
	*Handler

	store *breakingLog
	clock *worktest.Clock
}

// idle is a node that does not follow the log yet.
func idle(log *interleavetest.Log) *node {
	n := &node{store: &breakingLog{Node: interleavetest.NewNode(log)}, clock: worktest.NewClock(time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC))}
	n.Handler = New(n.store, sum{}, n.clock.Now)
	return n
}

// follow makes the node follow the log. It receives what others append in [node.catchUp].
func (n *node) follow(t *testing.T) *node {
	t.Helper()
	worktest.Background(t, n.Run)
	n.store.Hear()
	return n
}

// catchUp passes the whole log to the node.
func (n *node) catchUp() {
	for n.cache.newest().position != event.Position(len(n.store.After(0))) {
		n.store.Hear()
	}
}

// nodes returns several processes on one log.
func nodes(t *testing.T, count int) []*node {
	t.Helper()
	log := interleavetest.NewLog()
	all := make([]*node, count)
	for i := range all {
		all[i] = idle(log).follow(t)
	}
	return all
}

var (
	workspace = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	stranger  = uuid.MustParse("22222222-2222-4222-8222-222222222222")
	seller    = actor.Actor{Type: "user", ID: "7", Workspace: workspace}
)

func as(t *testing.T, change ...func(*Request)) Request {
	t.Helper()
	r := Request{Actor: seller, Workspace: workspace, RequestID: "r1", CorrelationID: "c1", Operation: "op", Fingerprint: []byte("body")}
	for _, c := range change {
		c(&r)
	}
	return r
}

func keyed(key, body string) func(*Request) {
	return func(r *Request) { r.Key, r.Fingerprint = key, []byte(body) }
}

func called(id string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return id, nil }
}

// stream lists the events of a stream in the log.
func (n *node) stream(t *testing.T, name string) (all []event.Stored) {
	t.Helper()
	for e, err := range n.store.ReadStream(t.Context(), name, 0, eventstore.Forwards) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// log lists the stored names of all events, oldest first.
func (n *node) log(t *testing.T) (names []string) {
	t.Helper()
	for e, err := range n.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		names = append(names, e.Type)
	}
	return names
}

func (n *node) make(t *testing.T, id, name string) {
	t.Helper()
	_, err := Create(t.Context(), n.Handler, as(t), things, called(id), makeThing{Name: name})
	require.NoError(t, err)
}
