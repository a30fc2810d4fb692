// Package interleavetest runs commands step by step, in any order of their steps, for tests. A command stops before each read of the log
// and before each append, until the test continues it.
package interleavetest

import (
	"context"
	"errors"
	"slices"
)

// ErrDied is the error of every step of an act whose process has died.
var ErrDied = errors.New("the process died here")

// Act is a running command that stops at every [Pause].
type Act struct {
	What string
	Err  error // of an act that is done

	paused chan struct{}
	lives  chan bool // the result of a pause
	done   chan error
	reads  bool // its next step only reads
	dead   bool // its process has died: its later steps have no effect
}

type actKey struct{}

// Pause stops the act of the context until the test continues it. Without an act, it does nothing.
func Pause(ctx context.Context) error { return pause(ctx, false) }

// pause is [Pause] before a step that perhaps only reads.
func pause(ctx context.Context, reads bool) error {
	a, _ := ctx.Value(actKey{}).(*Act)
	if a == nil {
		return nil
	}
	if !a.dead {
		a.reads = reads
		a.paused <- struct{}{}
		a.dead = !<-a.lives
	}
	if a.dead {
		return ErrDied
	}
	return nil
}

// Begin starts an act. The caller must wait for it with [Act.Waits].
func Begin(ctx context.Context, what string, do func(ctx context.Context) error) *Act {
	a := &Act{What: what, paused: make(chan struct{}), lives: make(chan bool), done: make(chan error, 1)}
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
	nth          int // of the act or of the node
	hears, reads bool
}

// before reports whether a and its successor b have the same result in the other order, and a should be first. If each act has the node of
// its number, an act's reads depend only on its own node's subscriber and on others' writes.
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
		if len(all) > 0 && n.Late() {
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
