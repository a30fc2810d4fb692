package projections

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/eventstore/vault"
)

func TestAnEventWhoseKeyIsMissingIsBlamedAfterTheTransactionsBeforeIt(t *testing.T) {
	t.Parallel()
	p := Define("contacts", 1, "", On(func(*Batch, event.Recorded[contact.Added]) {}))
	piece := func() (d decoded) {
		for i, more := range []int{0, 1, 0, 1, 0} {
			e := event.Recorded[any]{Data: contact.Added{Name: event.NewPersonal("messagingcontact-1", "name")}, Position: event.Position(i + 1)}
			e.Meta.More = more
			d.events, d.names, d.upTo = append(d.events, e), append(d.names, "MessagingContactAdded"), e.Position
		}
		return d
	}
	for _, c := range []struct {
		fails int // number of the event
		err   error
		left  int // events before its transaction
	}{{1, vault.ErrNoKey, 0}, {2, vault.ErrChanged, 1}, {3, vault.ErrNoKey, 1}, {5, vault.ErrNoKey, 3}} {
		single := 0
		d, err := p.open(t.Context(), func(_ context.Context, values []*event.Sealed) error {
			if len(values) > 1 {
				return c.err
			}
			if single++; single == c.fails {
				return c.err
			}
			return nil
		}, piece(), nil)
		bad, is := errors.AsType[*poison](err)
		require.True(t, is, "%v", err)
		require.EqualValues(t, c.fails, bad.at)
		require.ErrorIs(t, err, c.err)
		require.Equal(t, c.left, d.len())
		require.EqualValues(t, c.left, d.upTo)
	}
	unreachable := errors.New("unreachable")
	d, err := p.open(t.Context(), func(context.Context, []*event.Sealed) error { return unreachable }, piece(), nil)
	require.ErrorIs(t, err, unreachable)
	require.Zero(t, d.len())
	_, is := errors.AsType[*poison](err)
	require.False(t, is, "a vault that is unreachable parks no projection")
}
