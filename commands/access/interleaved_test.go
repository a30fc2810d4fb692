package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/commands/access"
	"bahi/domain/patch"
	"bahi/internal/draws"
)

// act is an action that stops before every read of the log and every append, until the test lets it continue.
type act struct {
	what    string
	paused  chan struct{}
	verdict chan verdict
	done    chan error
	dead    bool // its process has died: nothing that it does later takes effect
}

type verdict int

const (
	goOn verdict = iota
	dieNow
)

type actKey struct{}

// pause is the hook of a log that acts stop at.
func pause(ctx context.Context) error {
	a, _ := ctx.Value(actKey{}).(*act)
	if a == nil {
		return nil
	}
	if !a.dead {
		a.paused <- struct{}{}
		a.dead = <-a.verdict == dieNow
	}
	if a.dead {
		return errCrash
	}
	return nil
}

// begin starts an act. It returns once the act has stopped.
func begin(ctx context.Context, what string, do func(ctx context.Context) error) *act {
	a := &act{what: what, paused: make(chan struct{}), verdict: make(chan verdict), done: make(chan error, 1)}
	go func() { a.done <- do(context.WithValue(ctx, actKey{}, a)) }()
	return a
}

// waits waits until the act has stopped; false when it is done.
func (a *act) waits(t *rapid.T) bool {
	select {
	case <-a.paused:
		return true
	case err := <-a.done:
		switch {
		case err == nil, errors.Is(err, errCrash), errors.Is(err, access.ErrTaken), errors.Is(err, access.ErrInUse),
			errors.Is(err, commands.ErrBusy), errors.Is(err, commands.ErrStale):
		default:
			t.Fatalf("%s: %v", a.what, err)
		}
		return false
	case <-time.After(30 * time.Second):
		t.Fatalf("%s hangs", a.what)
		return false
	}
}

// TestMain lets rapid make fewer runs: each settles people and lets them race.
func TestMain(m *testing.M) {
	draws.Default(40)
	os.Exit(m.Run())
}

// Registrations and changes of addresses may interleave, die and be slow in any way. Still, an address belongs to one active
// account at most, an account is found by its address, and a free address can be registered.
func TestRacesForAnAddressLeaveOneAccount(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	for _, n := range tn.nodes {
		n.store.set(func() {
			n.store.read = func(ctx context.Context, _ string) error { return pause(ctx) }
			n.store.before = func(ctx context.Context, _ string) error { return pause(ctx) }
			n.store.after = func(ctx context.Context, _ string) error { return pause(ctx) }
		})
	}
	sane := tn.nodes[0]
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		emails, users := make([]string, 3), make([]uuid.UUID, 2)
		for i := range emails {
			emails[i] = fmt.Sprintf("a%d-%d@example.org", round, i)
		}
		for i := range users {
			users[i] = sane.settle(t, emails[i])
		}
		tn.pass(time.Minute)
		email, node := rapid.SampledFrom(emails), rapid.SampledFrom(tn.nodes)
		acts := map[int]*act{}
		for i := range rapid.IntRange(2, 5).Draw(rt, "acts") {
			n, to := node.Draw(rt, "node"), email.Draw(rt, "to")
			var a *act
			if who := rapid.IntRange(0, len(users)).Draw(rt, "who"); who == len(users) {
				a = begin(t.Context(), "register "+to, func(ctx context.Context) error {
					_, err := n.Register(ctx, commands.Request{}, registration(to))
					return err
				})
			} else {
				a = begin(t.Context(), fmt.Sprintf("move %d to %s", who, to), func(ctx context.Context) error {
					_, err := n.Change(ctx, commands.Request{}, users[who], access.Profile{Email: patch.Set(to)})
					return err
				})
			}
			if a.waits(rt) {
				acts[i] = a
			}
		}
		for len(acts) > 0 {
			i := rapid.SampledFrom(slices.Sorted(maps.Keys(acts))).Draw(rt, "act")
			a := acts[i]
			tn.pass(rapid.SampledFrom([]time.Duration{0, 0, 0, 20 * time.Second, 2 * time.Minute, 25 * time.Hour}).Draw(rt, "time passes"))
			a.verdict <- rapid.SampledFrom([]verdict{goOn, goOn, goOn, goOn, goOn, goOn, goOn, goOn, goOn, dieNow}).Draw(rt, "verdict")
			if !a.waits(rt) {
				delete(acts, i)
			}
		}
		tn.pass(2 * time.Minute)
		for _, e := range emails {
			key := sane.key(t, e)
			var have []uuid.UUID
			for _, id := range append(tn.registered(key), users...) {
				if s := sane.state(t, id); s.Active() && s.EmailKey == key {
					have = append(have, id)
				}
			}
			slices.SortFunc(have, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
			have = slices.Compact(have)
			holder := sane.holder(t, e)
			switch {
			case len(have) > 1:
				rt.Fatalf("%s is the address of %d accounts", e, len(have))
			case len(have) == 1 && holder != have[0]:
				rt.Fatalf("%s is the address of %s, but the claim names %s", e, have[0], holder)
			case len(have) == 0 && holder != uuid.Nil:
				rt.Fatalf("%s is nobody's address, but the claim names %s", e, holder)
			}
			unproven := len(have) == 1 && !sane.state(t, have[0]).Trusted() // its address may lapse
			_, err := sane.Register(t.Context(), commands.Request{}, registration(e))
			if len(have) == 0 && err != nil || len(have) == 1 && !unproven && !errors.Is(err, access.ErrTaken) {
				rt.Fatalf("%s, which %d have, is registered again with %v", e, len(have), err)
			}
		}
		for _, id := range users {
			key := sane.state(t, id).EmailKey
			if key == "" {
				continue // its address has lapsed
			}
			found, _, err := sane.HolderOf(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, id, found, "an account is found by its address")
		}
	})
}
