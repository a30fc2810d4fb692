package unique_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/internal/test/interleavetest"
)

// startShops starts a process that assigns ids to shops.
func startShops(ctx context.Context, n *interleavetest.Node) (*commands.Handler, *commands.Handler, error) {
	h := commands.New(n, hashes{}, func() time.Time { return time.Unix(0, 0).UTC() })
	_, err := h.Numbers(ctx, shops.Category(), 1)
	return h, h, err
}

// twice returns the phones that two shops have at the same time.
func twice(events []event.Stored) (found []string, err error) {
	states, has := map[string]shop{}, map[string]string{}
	for _, stored := range events {
		category, id := event.SplitStream(stored.Stream)
		if category != shops.Category() {
			continue
		}
		e, err := shops.Decode(stored)
		if err != nil {
			return nil, err
		}
		if had := states[id].phone; has[had] == id {
			delete(has, had)
		}
		states[id] = shops.Evolve(states[id], e)
		now := states[id].phone
		if other, ok := has[now]; ok && now != "" {
			found = append(found, fmt.Sprintf("shops %s and %s have the phone %s", other, id, now))
		}
		has[now] = id
	}
	return found, nil
}

// newSuite returns commands of shops, the first two of which have the phones 1 and 2.
func newSuite(t *testing.T) *interleavetest.Suite[*commands.Handler] {
	t.Helper()
	s := &interleavetest.Suite[*commands.Handler]{Log: interleavetest.NewLog(), Start: startShops, Broken: twice}
	command := func(name string, do func(context.Context, *commands.Handler, commands.Request) (commands.Outcome[shop], error)) {
		run := func(ctx context.Context, h *commands.Handler, dryRun bool) (any, error) {
			req := request("")
			req.DryRun = dryRun
			out, err := interleavetest.Outcome(do(ctx, h, req))
			return fmt.Sprintf("%+v", out), err
		}
		s.Commands = append(s.Commands, interleavetest.Command[*commands.Handler]{Name: name, Do: run})
	}
	opens := func(key, number string) {
		command("open "+number+key, func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
			req.Key, req.Fingerprint = key, []byte(key)
			return phone.Create(ctx, h, req, number, h.IDFromSeries(shops.Category(), 1), func(string) event.Command[shop] { return open{number} })
		})
	}
	moves := func(id, number string) {
		command("move "+id+" to "+number, func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
			return phone.Handle(ctx, h, req, id, &number, move{number})
		})
	}
	opens("", "1")
	opens("", "2")
	opens("", "3")
	opens(" with a key", "3")
	moves("2", "1")
	moves("2", "3")
	moves("3", "1")
	moves("3", "3")
	command("close 2", func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
		return phone.Handle(ctx, h, req, "2", new(""), end{})
	})
	h, _, err := startShops(t.Context(), interleavetest.NewNode(s.Log))
	require.NoError(t, err)
	for _, c := range s.Commands[:2] { // the shops 2 and 3: number 1 is taken
		_, err := c.Do(t.Context(), h, false)
		require.NoError(t, err)
	}
	return s
}

// Whatever the order of the steps of two commands, the result equals running them one after the other.
func TestTwoCommandsAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	newSuite(t).Pairs(t)
}

// Whatever the order of the steps of five commands, no two shops have one phone.
func TestFiveCommandsLeaveAPhoneToOneShop(t *testing.T) {
	t.Parallel()
	newSuite(t).Some(t, 5)
}
