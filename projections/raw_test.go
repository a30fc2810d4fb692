package projections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// rawSeen records each event and its batch.
func rawSeen(name string, hook func(e event.Stored) error) *Projection {
	return Define(name, 1, `create table seen (position bigint primary key, name text not null)`,
		Raw(func(ctx context.Context, b *Batch, events []event.Stored) error {
			for _, e := range events {
				if hook != nil {
					if err := hook(e); err != nil {
						return err
					}
				}
				if _, err := b.Tx.Exec(ctx, `insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Type+string(e.Data)); err != nil {
					return err
				}
			}
			return nil
		}))
}

func TestRawFoldTakesEventsAsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := rawSeen("raw", nil)
	r.addRaw(t, "NobodyKnowsThis", `{"x":  1}`, `{}`)
	run := r.run(t, p)
	run.reached("raw", 1)
	r.addRaw(t, "BankAccountOpened", `{"name":7}`, `{"schema":99}`)
	require.Empty(t, run.reached("raw", 2).Error)
	want := []string{`NobodyKnowsThis{"x":  1}`, `BankAccountOpened{"name":7}`}
	require.Equal(t, want, r.names(t, "raw"))
	require.NoError(t, r.build(p).Run(t.Context()))
	run.reached("raw", 2)
	require.Equal(t, want, r.names(t, "raw"), "a rebuild gives the same tables")
	found, err := r.build(p).Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
	for _, size := range []int{1, 2} {
		differences, err := r.build(p).Fold(t.Context(), size, 2)
		require.NoError(t, err)
		require.Empty(t, differences, "an interrupted fill, and batches of %d", size)
	}
}

func TestRawFoldIsParkedAtTheEventAtFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cured atomic.Bool
	p := rawSeen("raw", func(e event.Stored) error {
		if e.Type == "Bad" && !cured.Load() {
			return errors.New("not this one")
		}
		return nil
	})
	run := r.run(t, p)
	run.until("raw", func(s Status) bool { return s.Ready })
	run.stop()
	for _, name := range []string{"Good", "Bad", "Good"} {
		r.addRaw(t, name, `{}`, `{}`)
	}
	run = r.run(t, p)
	run.until("raw", func(s Status) bool { return s.Error == "event Bad at position 2: not this one" })
	require.EqualValues(t, 1, r.parked(t, "raw").Position)
	require.ErrorContains(t, r.build(p).Run(t.Context()), "event Bad at position 2: not this one")
	cured.Store(true)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	run.reached("raw", 3)
	require.Equal(t, []string{"Good{}", "Bad{}", "Good{}"}, r.names(t, "raw"))
}

func TestRawFoldMustBeTheOnlyOne(t *testing.T) {
	t.Parallel()
	every := Raw(func(context.Context, *Batch, []event.Stored) error { return nil })
	require.Panics(t, func() { Define("two", 1, ``, every, every) })
}
