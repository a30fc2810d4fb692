package eventtest_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/internal/test/eventtest"
)

type state struct {
	Count int
	At    event.Position
	Names map[string]bool
	Email event.Personal
}

type (
	counted  struct{}
	placed   struct{}
	stranger struct{}
	wrote    struct { // changes the given state
		Name string `json:"name"`
	}
	lossy struct {
		Kept string `json:"kept"`
		Lost string `json:"-"`
	}
	mailed struct {
		Email event.Personal `json:"email"`
	}
)

func (counted) Evolve(s state) state  { s.Count++; return s }
func (stranger) Evolve(s state) state { return s }
func (lossy) Evolve(s state) state    { return s }
func (placed) Evolve(s state) state   { return s }
func (mailed) Evolve(s state) state   { return s }

func (placed) EvolveAt(s state, at event.Position) state { s.At = at; return s }

func (e wrote) Evolve(s state) state {
	if s.Names == nil {
		s.Names = map[string]bool{}
	}
	s.Names[e.Name] = true
	return s
}

var kind = event.NewKind("sample", event.Of[counted]("Counted", 1), event.Of[placed]("Placed", 1),
	event.Of[wrote]("Wrote", 1), event.Of[lossy]("Lossy", 1), event.Of[mailed]("Mailed", 1))

// decide is a command with a fixed result.
type decide struct {
	events []event.Event[state]
	err    error
}

func (d decide) Decide(state) ([]event.Event[state], error) { return d.events, d.err }

func to(events ...event.Event[state]) decide { return decide{events: events} }

var (
	errOwn  = errors.New("own")
	refusal = fault.Fields(fault.Field{Field: "name", Message: "must not be empty"})
)

// mistakes are cases that must fail. Each runs in a separate process, because a failure fails its whole test.
var mistakes = map[string]struct {
	run  func(t *testing.T)
	says string
}{
	"an event that is missing from the kind": {
		func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to(stranger{})).Then(stranger{}) }, "is not an event of kind sample",
	},
	"an event that loses something in the log": {
		func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to(lossy{"a", "b"})).Then(lossy{"a", "b"}) }, "is decoded differently",
	},
	"a history that loses something": {
		func(t *testing.T) { eventtest.Given(t, kind, lossy{"a", "b"}) }, "is decoded differently",
	},
	"Evolve that changes the given state": {
		func(t *testing.T) { eventtest.Given(t, kind, wrote{"a"}, wrote{"b"}) }, "changed the state that it was given",
	},
	"other events": {
		func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to(counted{})).Then(placed{}) }, "Not equal",
	},
	"other personal values": {
		func(t *testing.T) {
			eventtest.Given(t, kind).Case("c").When(to(mailed{event.NewPersonal("user-1", "a")})).Then(mailed{event.NewPersonal("user-1", "b")})
		}, "Not equal",
	},
	"an unexpected error":    {func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(decide{err: errOwn}).Then(counted{}) }, "own"},
	"something, not nothing": {func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to(counted{})).ThenNothing() }, "Should be empty"},
	"no error":               {func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to()).ThenFails(errOwn) }, "own"},
	"a refusal for another field": {
		func(t *testing.T) {
			eventtest.Given(t, kind).Case("c").When(decide{err: refusal}).ThenFails(fault.Fields(fault.Field{Field: "date",
				Message: "must not be empty"}))
		}, "Not equal",
	},
	"a case without a Then": {func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to()) }, `"c" has no Then`},
	"a case without a When": {func(t *testing.T) { eventtest.Given(t, kind).Case("c").ThenNothing() }, "this case has no When"},
	"Then without events":   {func(t *testing.T) { eventtest.Given(t, kind).Case("c").When(to()).Then() }, "say ThenNothing"},
}

const mistakeToMake = "EVENTTEST_MISTAKE"

func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	if name, child := os.LookupEnv(mistakeToMake); child {
		mistakes[name].run(t)
		return
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMistakesAreFound$")
			cmd.Env = append(os.Environ(), mistakeToMake+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), mistake.says)
		})
	}
}
