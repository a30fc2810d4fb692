package accesscmd_test

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
	"bahi/commands/accesscmd"
	"bahi/domain/patch"
	"bahi/internal/draws"
	"bahi/internal/test/interleavetest"
)

// settled fails the test if a completed act was neither refused nor interrupted.
func settled(t *rapid.T, a *interleavetest.Act) {
	for _, expected := range []error{nil, interleavetest.ErrDied, accesscmd.ErrTaken, accesscmd.ErrInUse, commands.ErrBusy,
		commands.ErrStale} {
		if errors.Is(a.Err, expected) {
			return
		}
	}
	t.Fatalf("%s: %v", a.What, a.Err)
}

// TestMain makes rapid run fewer times: each run settles people and lets them race.
func TestMain(m *testing.M) {
	draws.Default(40)
	os.Exit(m.Run())
}

// Registrations and changes of addresses may interleave, be interrupted, and be slow in any way. Still, an address belongs to at most one
// active account, an account is found by its address, and a free address can be registered.
func TestRacesForAnAddressLeaveOneAccount(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	for _, n := range tn.nodes {
		n.store.set(func() {
			n.store.read = func(ctx context.Context, _ string) error { return interleavetest.Pause(ctx) }
			n.store.before = func(ctx context.Context, _ string) error { return interleavetest.Pause(ctx) }
			n.store.after = func(ctx context.Context, _ string) error { return interleavetest.Pause(ctx) }
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
		acts := map[int]*interleavetest.Act{}
		for i := range rapid.IntRange(2, 5).Draw(rt, "acts") {
			n, to := node.Draw(rt, "node"), email.Draw(rt, "to")
			var a *interleavetest.Act
			if who := rapid.IntRange(0, len(users)).Draw(rt, "who"); who == len(users) {
				a = interleavetest.Begin(t.Context(), "register "+to, func(ctx context.Context) error {
					_, err := n.Register(ctx, commands.Request{}, registration(to))
					return err
				})
			} else {
				a = interleavetest.Begin(t.Context(), fmt.Sprintf("move %d to %s", who, to), func(ctx context.Context) error {
					_, err := n.Change(ctx, commands.Request{}, users[who], accesscmd.Profile{Email: patch.Set(to)})
					return err
				})
			}
			if a.Waits() {
				acts[i] = a
			} else {
				settled(rt, a)
			}
		}
		for len(acts) > 0 {
			i := rapid.SampledFrom(slices.Sorted(maps.Keys(acts))).Draw(rt, "act")
			a := acts[i]
			tn.pass(rapid.SampledFrom([]time.Duration{0, 0, 0, 20 * time.Second, 2 * time.Minute, 25 * time.Hour}).Draw(rt, "time passes"))
			goOn := a.Continue
			if rapid.IntRange(0, 9).Draw(rt, "dies") == 9 {
				goOn = a.Die
			}
			if !goOn() {
				delete(acts, i)
				settled(rt, a)
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
			if len(have) == 0 && err != nil || len(have) == 1 && !unproven && !errors.Is(err, accesscmd.ErrTaken) {
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
