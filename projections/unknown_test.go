package projections

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
)

const unknown = "event BankAccountRetitled at position 3: this program does not know events of this type"

func TestUnknownEventTypeInAFoldedCategoryStopsTheProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	r.add(t, "a", "b")
	r.addRaw(t, "BankAccountRetitled", `{}`, `{"schema":1}`)
	r.add(t, "c")

	status := run.until("seen", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, unknown)
	require.EqualValues(t, 2, status.Position)
	require.Contains(t, r.parked(t, "seen").Error, unknown)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
	require.ErrorContains(t, r.build(p).Run(t.Context()), unknown, "a rebuild does not skip it either")
}

func TestOtherEventTypesAreSkipped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, seen("seen", nil))
	run.until("seen", func(s Status) bool { return s.Ready })
	r.addRaw(t, "BankAccountRenamed", `{"name":"b"}`, `{"schema":1}`)
	r.addForeign(t)
	r.add(t, "a")
	require.Empty(t, run.reached("seen", 3).Error)
}

func TestUnknownEventTypeStopsTheReactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.react(t, React("greeter", []string{openedName}, func(context.Context, pgx.Tx, []event.Recorded[any]) error { return nil }))
	run.until("greeter", func(s Status) bool { return s.Working })
	r.add(t, "a", "b")
	r.addRaw(t, "BankAccountRetitled", `{}`, `{"schema":1}`)
	require.Contains(t, run.until("greeter", func(s Status) bool { return s.Error != "" }).Error, unknown)
}

func TestGenerationOfOtherEventTypesIsNotFolded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(t, "a")
	theirs := r.run(t, seen("seen", nil))
	theirs.reached("seen", 1)
	theirs.stop()
	require.Eventually(t, func() (gone bool) { // otherwise ours is on standby, and reports the other's state
		require.NoError(t, r.pool.QueryRow(t.Context(), `select not exists (select from pg_stat_activity
			where datname = current_database() and application_name = 'bahi projection seen')`).Scan(&gone))
		return gone
	}, time.Minute, time.Millisecond)
	ours := Define("seen", 1, seenDDL, On(func(*Batch, event.Recorded[book.AccountRenamed]) {}))
	require.NotEqual(t, seen("seen", nil).Hash(), ours.Hash())
	run := r.run(t, ours)
	r.add(t, "b")
	status := run.until("seen", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, "was built by a program with other tables or event types")
	require.False(t, status.Ready)
	run.stop()
	theirs = r.run(t, seen("seen", nil))
	theirs.reached("seen", 2)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}

func TestHashIgnoresTheOrderOfFolds(t *testing.T) {
	t.Parallel()
	names := bank.Ledger.Accounts.Names()
	hash := func(names ...string) string { return Define("seen", 1, seenDDL, Apply(names, nil)).Hash() }
	require.Equal(t, hash(names[0], names[1]), hash(names[1], names[0]))
	require.NotEqual(t, hash(names[0]), hash(names[1]))
	require.False(t, strings.EqualFold(hash(names[0]), hash(names...)))
}
