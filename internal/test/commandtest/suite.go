// Package commandtest runs commands of several processes in all orders of their steps, and compares the results with those of running them
// one after the other.
package commandtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/internal/test/interleavetest"
)

// Suite has commands to run concurrently, in processes of a type.
type Suite[P any] struct {
	Log      *interleavetest.Log // before the commands; each run has a copy of it
	Commands []Command[P]

	// Start starts a process on a log. Its numbers must not depend on what other processes do after that.
	Start func(ctx context.Context, n *interleavetest.Node) (P, *commands.Handler, error)
	// Broken returns the rules that a log breaks.
	Broken func(events []event.Stored) ([]string, error)
	// Same returns a payload without values that may differ between two otherwise equal runs. Nil: none may.
	Same func(e event.Stored) string
}

// Command is a command of a suite. Its result must not depend on positions.
type Command[P any] struct {
	Name string
	Once bool // a second time, it is refused or replayed, and appends nothing
	Do   func(ctx context.Context, p P, dryRun bool) (any, error)
}

// Outcome returns an outcome, without positions and times, for a [Command].
func Outcome[S any](out commands.Outcome[S], err error) (any, error) {
	return commands.Outcome[S]{ID: out.ID, State: out.State, Revision: out.Revision, Changed: out.Changed, Replayed: out.Replayed}, err
}

// round is a run of some commands, each in its own process or in one of a few.
type round[P any] struct {
	t     require.TestingT
	suite *Suite[P]
	log   *interleavetest.Log
	nodes []*interleavetest.Node
	procs []P
	stop  func()
}

func (s *Suite[P]) round(ctx context.Context, t require.TestingT, processes int) *round[P] {
	ctx, cancel := context.WithCancel(ctx)
	r := &round[P]{t: t, suite: s, log: s.Log.Clone()}
	stopped := make(chan error, processes)
	for range processes {
		n := interleavetest.NewNode(r.log)
		p, h, err := s.Start(ctx, n)
		require.NoError(t, err)
		go func() { stopped <- h.Run(ctx) }()
		r.nodes, r.procs = append(r.nodes, n), append(r.procs, p)
	}
	for _, n := range r.nodes {
		n.Hear()
	}
	r.stop = func() {
		cancel()
		for range processes {
			require.NoError(t, <-stopped)
		}
	}
	return r
}

// do runs a command, and returns its outcome as text. It expects no errors but refusals.
func (r *round[P]) do(ctx context.Context, c Command[P], process int) (string, error) {
	out, err := c.Do(ctx, r.procs[process], false)
	if refused, ok := errors.AsType[*fault.Error](err); ok && !errors.Is(err, commands.ErrBusy) {
		return fmt.Sprintf("refused: %s %v", refused, refused.Fields), nil
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(out)
	return string(text), err
}

// keepsRules requires that the round's log breaks no rule.
func (r *round[P]) keepsRules(what func() string) {
	broken, err := r.suite.Broken(r.log.After(0))
	require.NoError(r.t, err)
	if len(broken) > 0 {
		require.Fail(r.t, "broken: "+strings.Join(broken, "; "), what())
	}
}

// effects separates the outcomes from the effects of commands.
const effects = "\n  appended:"

// result returns the results of the commands and the round's events.
func (r *round[P]) result(outs []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n  %s%s", strings.Join(outs, "\n  "), effects)
	for _, e := range r.log.After(event.Position(len(r.suite.Log.After(0)))) {
		if interleavetest.IsNumbers(e.Stream) {
			continue
		}
		data := string(e.Data)
		if r.suite.Same != nil {
			data = r.suite.Same(e)
		}
		fmt.Fprintf(&text, "\n    %s %d %s %s", e.Stream, e.Revision, e.Type, data)
	}
	return text.String()
}

// Pairs runs every pair of commands, even a command with itself, in all orders of their steps. Each has its own process, whose cache is
// empty at first, or has what the command reads. In the second case, the time when the process receives events matters too. The results and
// events of two commands must be those of running one after the other, in one of both orders.
func (s *Suite[P]) Pairs(t *testing.T) {
	for i, a := range s.Commands {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			for j, b := range s.Commands[i:] {
				s.orders(t, a, b, j == 0)
			}
		})
	}
}

// orders runs two commands, perhaps the same one twice, in all orders of their steps.
func (s *Suite[P]) orders(t *testing.T, a, b Command[P], same bool) {
	t.Helper()
	pair := []Command[P]{a, b}
	want := []string{s.sequence(t, pair, 0, 1), s.sequence(t, pair, 1, 0)}
	if same && a.Once {
		_, once, _ := strings.Cut(s.sequence(t, pair, 0), effects)
		_, twice, _ := strings.Cut(want[0], effects)
		require.Equal(t, once, twice, "%s twice", a.Name)
	}
	for _, warm := range []bool{false, true} {
		interleavetest.Orders(func(choose func(n int) int) {
			got, what, whole := s.pair(t, pair, warm, choose)
			if whole && !slices.Contains(want, got) {
				require.Fail(t, "no order of both commands has this outcome",
					"%s\ngot:%s\none after the other:%s\nor:%s", what(), got, want[0], want[1])
			}
		})
	}
}

// sequence returns the outcome of two commands one after the other.
func (s *Suite[P]) sequence(t *testing.T, pair []Command[P], order ...int) string {
	r := s.round(t.Context(), t, len(pair))
	defer r.stop()
	outs := make([]string, len(pair))
	for _, i := range order {
		var err error
		outs[i], err = r.do(t.Context(), pair[i], i)
		require.NoError(t, err, pair[i].Name)
	}
	r.keepsRules(func() string { return fmt.Sprintf("%s, %s, in the order %v", pair[0].Name, pair[1].Name, order) })
	return r.result(outs)
}

// pair returns the outcome of two commands whose steps are in the order of the choices; whole is false if [interleavetest.Run] left the
// order out.
func (s *Suite[P]) pair(
	t *testing.T, pair []Command[P], warm bool, choose func(n int) int,
) (outcome string, what func() string, whole bool) {
	r := s.round(t.Context(), t, len(pair))
	defer r.stop()
	var (
		acts  []*interleavetest.Act
		hears []*interleavetest.Node
		taken []int
		outs  = make([]string, len(pair))
	)
	what = func() string {
		return fmt.Sprintf("%s, %s, warm %t, steps %v", pair[0].Name, pair[1].Name, warm, taken)
	}
	if warm {
		hears = r.nodes
		for i, c := range pair {
			_, _ = c.Do(t.Context(), r.procs[i], true) // its result does not matter
		}
	}
	for i, c := range pair {
		acts = append(acts, interleavetest.Begin(t.Context(), c.Name, func(ctx context.Context) (err error) {
			if warm { // else it begins with a read
				err = interleavetest.PauseToRead(ctx)
			}
			if err == nil {
				outs[i], err = r.do(ctx, c, i)
			}
			return err
		}))
	}
	whole = interleavetest.Run(acts, hears, true, func(n int) int {
		taken = append(taken, choose(n))
		return taken[len(taken)-1]
	})
	if !whole {
		return "", what, false
	}
	for _, a := range acts {
		require.NoError(t, a.Err, what())
	}
	r.keepsRules(what)
	return r.result(outs), what, true
}

// Some runs some commands on two processes, with random steps. Some die at a step, and are repeated. The log must break no rule, and no
// command may give up.
func (s *Suite[P]) Some(t *testing.T, count int) {
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			s.some(t.Context(), rt, count)
		}
	})
}

func (s *Suite[P]) some(ctx context.Context, rt *rapid.T, count int) {
	r := s.round(ctx, rt, 2)
	defer r.stop()
	for _, n := range r.nodes {
		n.Answers = true
	}
	var (
		acts      []*interleavetest.Act
		commands  []Command[P]
		processes []int
		names     []string
	)
	for range count {
		c, process := rapid.SampledFrom(s.Commands).Draw(rt, "command"), rapid.IntRange(0, 1).Draw(rt, "process")
		dies := max(0, rapid.IntRange(-20, 6).Draw(rt, "dies"))
		commands, processes, names = append(commands, c), append(processes, process), append(names, c.Name)
		acts = append(acts, interleavetest.BeginMortal(ctx, c.Name, dies, func(ctx context.Context) error {
			err := interleavetest.Pause(ctx)
			if err == nil {
				_, err = r.do(ctx, c, process)
			}
			return err
		}))
	}
	interleavetest.Run(acts, r.nodes, false, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "step") })
	for i, a := range acts {
		err := a.Err
		if errors.Is(err, interleavetest.ErrDied) {
			_, err = r.do(ctx, commands[i], processes[i])
		}
		require.NoError(rt, err, a.What)
	}
	r.keepsRules(func() string { return strings.Join(names, ", ") })
}
