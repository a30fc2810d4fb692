// Package interleavetest runs commands step by step, in any order of their steps, for tests. A command stops before each read of the log
// and before each append, until the test continues it.
package interleavetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/number"
	"bahi/eventstore"
)

// ErrDied is the error of every step of an act whose process has died.
var ErrDied = errors.New("the process died here")

// Act is a running command that stops at every [Pause].
type Act struct {
	What string
	Err  error // error of a completed act

	paused chan struct{}
	lives  chan bool // the result of a pause
	done   chan error
	reads  bool // its next step only reads
	dies   int  // the step at which its process dies; 0: none
	dead   bool // its process has died: its later steps have no effect
}

type actKey struct{}

// Pause stops the act of the context until the test continues it. Without an act, it does nothing.
func Pause(ctx context.Context) error { return pause(ctx, false) }

// PauseToRead is [Pause] before a step that only reads.
func PauseToRead(ctx context.Context) error { return pause(ctx, true) }

func pause(ctx context.Context, reads bool) error {
	a, _ := ctx.Value(actKey{}).(*Act)
	if a == nil {
		return nil
	}
	if !a.dead {
		a.reads = reads
		a.paused <- struct{}{}
		a.dies--
		a.dead = !<-a.lives || a.dies == 0
	}
	if a.dead {
		return ErrDied
	}
	return nil
}

// Begin starts an act. The caller must wait for it with [Act.Waits].
func Begin(ctx context.Context, what string, do func(ctx context.Context) error) *Act {
	return BeginMortal(ctx, what, 0, do)
}

// BeginMortal is Begin for an act whose process dies at a step, counted from 1.
func BeginMortal(ctx context.Context, what string, dies int, do func(ctx context.Context) error) *Act {
	a := &Act{What: what, dies: dies, paused: make(chan struct{}), lives: make(chan bool), done: make(chan error, 1)}
	go func() { a.done <- do(context.WithValue(ctx, actKey{}, a)) }()
	return a
}

// Waits waits until the act has stopped. It returns false if the act is done.
func (a *Act) Waits() bool {
	select {
	case <-a.paused:
		return true
	case a.Err = <-a.done:
		return false
	}
}

// Continue continues a stopped act, and waits until it stops again. It returns false if the act is done.
func (a *Act) Continue() bool { return a.answer(true) }

// Die ends the process of a stopped act. It returns false if the act is done.
func (a *Act) Die() bool { return a.answer(false) }

func (a *Act) answer(lives bool) bool {
	a.lives <- lives
	return a.Waits()
}

// Orders calls run once for each sequence of choices that it can make. choose returns a number below n.
func Orders(run func(choose func(n int) int)) {
	type choice struct{ taken, of int }
	var path []choice
	for {
		made := 0
		run(func(n int) int {
			if made == len(path) {
				path = append(path, choice{0, n})
			}
			made++
			return path[made-1].taken
		})
		for len(path) > 0 && path[len(path)-1].taken+1 == path[len(path)-1].of {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return
		}
		path[len(path)-1].taken++
	}
}

// step is a step of an act or, if hears is set, of a node's subscriber.
type step struct {
	nth          int // number of the act or of the node
	hears, reads bool
}

// before reports whether a and its successor b have the same result in the other order, and a should be first. If each act runs on the node
// with its number, an act's reads depend only on that node's subscriber and on writes of other acts.
func (a step) before(b step) bool {
	switch {
	case a.hears:
		return b.hears && a.nth < b.nth
	case b.hears:
		return a.reads && a.nth != b.nth
	default:
		return a.reads && b.reads && a.nth < b.nth
	}
}

// steps returns the possible next steps, none if all acts are done.
func steps(acts []*Act, nodes []*Node) (all []step) {
	for i, a := range acts {
		if a != nil {
			all = append(all, step{nth: i, reads: a.reads})
		}
	}
	for i, n := range nodes {
		if len(all) > 0 && n.late() {
			all = append(all, step{nth: i, hears: true})
		}
	}
	return all
}

// Run runs acts in the order of choose, until all are done. A node's receipt of new events is a step too. If brief, Run returns false when
// it detects that an order only swaps independent steps of another one.
func Run(acts []*Act, nodes []*Node, brief bool, choose func(n int) int) bool {
	waiting := slices.Clone(acts)
	for i, a := range acts {
		if !a.Waits() {
			waiting[i] = nil
		}
	}
	var last *step
	for {
		next := steps(waiting, nodes)
		if len(next) == 0 {
			return true
		}
		if brief && last != nil {
			next = slices.DeleteFunc(next, func(s step) bool { return s.before(*last) })
		}
		if len(next) == 0 {
			break
		}
		last = &next[0]
		if len(next) > 1 {
			last = &next[choose(len(next))]
		}
		if last.hears {
			nodes[last.nth].Hear()
		} else if !waiting[last.nth].Continue() {
			waiting[last.nth] = nil
		}
	}
	for _, a := range waiting {
		for a != nil && a.Die() {
		}
	}
	return false
}

// Log is an event log in memory. It trusts callers as far as a log may: it compares a check only with the events after AsOf.
type Log struct {
	mu      sync.Mutex
	events  []event.Stored
	streams map[string][]event.Stored
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{streams: map[string][]event.Stored{}} }

// Clone returns a log with the same events.
func (l *Log) Clone() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Log{events: slices.Clip(l.events), streams: maps.Clone(l.streams)}
	for name, events := range c.streams {
		c.streams[name] = slices.Clip(events)
	}
	return c
}

// After returns the events after a position.
func (l *Log) After(position event.Position) []event.Stored {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.events[position:])
}

func (l *Log) head() event.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return event.Position(len(l.events))
}

// append appends a transaction with exact expectations. It refuses one whose events have wrong numbers of later events.
func (l *Log) append(t eventstore.Transaction) (done eventstore.Appended, err error) {
	if err := t.Check(); err != nil {
		return done, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.AsOfID != uuid.Nil && (int(t.AsOf) > len(l.events) || l.events[t.AsOf-1].ID != t.AsOfID) {
		return done, eventstore.ErrTailLost
	}
	more := 0
	for _, w := range t.Writes {
		more += len(w.Events)
		if err := l.expect(w.Stream, w.Expected, 0); err != nil {
			return done, err
		}
	}
	for _, c := range t.Checks {
		if err := l.expect(c.Stream, c.Expected, t.AsOf); err != nil {
			return done, err
		}
	}
	done.Position = event.Position(len(l.events))
	if more > 0 {
		done.First = done.Position + 1
	}
	done.At = time.Unix(0, 0).UTC()
	for _, w := range t.Writes {
		for i, e := range w.Events {
			if more--; event.More(e.Meta) != more {
				return done, fmt.Errorf("%w: %d events follow %s of %s, not %d", eventstore.ErrBadEvent, more, e.Type, w.Stream, event.More(e.Meta))
			}
			done.Position, done.Revision = done.Position+1, int64(w.Expected)+1+int64(i)
			s := event.Stored{
				Position: done.Position, Stream: w.Stream, Revision: done.Revision, ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta, At: done.At,
			}
			l.events, l.streams[w.Stream] = append(l.events, s), append(l.streams[w.Stream], s)
		}
	}
	return done, nil
}

// Lose deletes the newest events, as a failover to a late copy does.
func (l *Log) Lose(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stays := len(l.events) - count
	for _, e := range l.events[stays:] {
		l.streams[e.Stream] = slices.Clip(l.streams[e.Stream][:e.Revision])
	}
	l.events = slices.Clip(l.events[:stays])
}

// expect returns an error if a stream is not at its expected revision and has changed after asOf.
func (l *Log) expect(stream string, expected eventstore.Expected, asOf event.Position) error {
	held := l.streams[stream]
	actual := int64(len(held)) - 1
	if actual == int64(expected) || asOf > 0 && (actual < 0 || held[actual].Position <= asOf) {
		return nil
	}
	return &eventstore.WrongRevision{Stream: stream, Expected: expected, Actual: actual}
}

// Node is one process's connection to a log. Its calls are steps of acts, except those for numbers, which a process makes while it holds a
// lock. The test decides when subscribers receive events.
type Node struct {
	*Log

	Answers bool // an act also stops between an append and its result

	hooks sync.Mutex
	// Reading runs before each read of a stream, Appending before each write and Appended after it. Their errors replace the result.
	Reading, Appending, Appended func(ctx context.Context, stream string) error

	hear  chan chan struct{}
	heard event.Position
	last  uuid.UUID // the event at heard
}

// NewNode returns a new process's connection to a log.
func NewNode(l *Log) *Node {
	n := &Node{Log: l, hear: make(chan chan struct{})}
	n.hears(l.head())
	return n
}

// late reports whether the node's subscriber has unread events.
func (n *Node) late() bool { return n.heard < n.head() }

// Hear passes all new events to the node's only subscriber, and waits until it has processed them.
func (n *Node) Hear() {
	done := make(chan struct{})
	n.hear <- done
	<-done
}

// hears records that the subscriber has received the events up to a position of the log.
func (n *Node) hears(position event.Position) {
	if n.heard, n.last = position, uuid.Nil; position > 0 {
		n.last = n.After(position - 1)[0].ID
	}
}

// lost reports whether the log has lost the last event that the subscriber has.
func (n *Node) lost() bool {
	return n.heard > 0 && (n.heard > n.head() || n.After(n.heard - 1)[0].ID != n.last)
}

// IsNumbers reports whether a stream reserves numbers.
func IsNumbers(stream string) bool { return strings.HasPrefix(stream, number.Kind.Stream("")) }

// ID implements [eventstore.Store].
func (n *Node) ID() uuid.UUID { return uuid.Nil }

// Set changes the hooks.
func (n *Node) Set(change func()) {
	n.hooks.Lock()
	defer n.hooks.Unlock()
	change()
}

func (n *Node) ask(ctx context.Context, which *func(context.Context, string) error, writes ...eventstore.Write) (err error) {
	var hook func(context.Context, string) error
	n.Set(func() { hook = *which })
	for _, w := range writes {
		if hook != nil && err == nil {
			err = hook(ctx, w.Stream)
		}
	}
	return err
}

// Append implements [eventstore.Store].
func (n *Node) Append(ctx context.Context, t eventstore.Transaction) (done eventstore.Appended, err error) {
	if err = n.ask(ctx, &n.Appending, t.Writes...); err != nil {
		return done, err
	}
	if done, err = n.step(ctx, t); err == nil {
		err = n.ask(ctx, &n.Appended, t.Writes...)
	}
	return done, err
}

// step appends as a step of an act.
func (n *Node) step(ctx context.Context, t eventstore.Transaction) (done eventstore.Appended, err error) {
	if err := ctx.Err(); err != nil {
		return done, err
	}
	if len(t.Writes) == 1 && IsNumbers(t.Writes[0].Stream) {
		return n.append(t)
	}
	if err := pause(ctx, len(t.Writes) == 0); err != nil {
		return done, err
	}
	if done, err = n.append(t); err == nil && n.Answers {
		err = Pause(ctx)
	}
	return done, err
}

// AppendEach implements [eventstore.Store].
func (n *Node) AppendEach(ctx context.Context, all []eventstore.Transaction) []eventstore.Result {
	results := make([]eventstore.Result, len(all))
	for i, t := range all {
		results[i].Appended, results[i].Err = n.Append(ctx, t)
	}
	return results
}

// ReadStream implements [eventstore.Store].
func (n *Node) ReadStream(ctx context.Context, stream string, from int64, back eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		err := n.ask(ctx, &n.Reading, eventstore.Write{Stream: stream})
		if err == nil && !IsNumbers(stream) {
			err = pause(ctx, true)
		}
		if err != nil {
			yield(event.Stored{}, err)
			return
		}
		n.mu.Lock()
		held := n.streams[stream]
		n.mu.Unlock()
		if back {
			held = slices.Clone(held[:min(from, int64(len(held))-1)+1])
			slices.Reverse(held)
		} else {
			held = held[min(from, int64(len(held))):]
		}
		yieldAll(held, yield)
	}
}

// ReadAll implements [eventstore.Store].
func (n *Node) ReadAll(ctx context.Context, from event.Position, back eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		switch err := pause(ctx, true); {
		case err != nil:
			yield(event.Stored{}, err)
		case back == eventstore.Backwards:
			events := slices.Clone(n.After(0)[:min(from, n.head()+1)-1])
			slices.Reverse(events)
			yieldAll(events, yield)
		default:
			yieldAll(n.After(from), yield)
		}
	}
}

func yieldAll(events []event.Stored, yield func(event.Stored, error) bool) {
	for _, e := range events {
		if !yield(e, nil) {
			return
		}
	}
}

// Subscribe implements [eventstore.Store], for one subscriber.
func (n *Node) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		for n.hears(after); ; {
			select {
			case <-ctx.Done():
				yield(eventstore.Batch{}, ctx.Err())
				return
			case done := <-n.hear:
				if n.lost() {
					yield(eventstore.Batch{}, eventstore.ErrTailLost)
					close(done)
					return
				}
				events := n.After(n.heard)
				n.hears(n.heard + event.Position(len(events)))
				goOn := yield(eventstore.Batch{Events: events, UpTo: n.heard}, nil)
				close(done)
				if !goOn {
					return
				}
			}
		}
	}
}

// Head implements [eventstore.Store].
func (n *Node) Head(context.Context) (event.Position, error) { return n.head(), nil }

// PositionAt implements [eventstore.Store]: all events are of one time.
func (n *Node) PositionAt(context.Context, time.Time) (event.Position, error) { return n.head(), nil }
