package projections

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
)

// poisoned are events that cannot be folded until cure is set, which stands for a new program.
func poisoned(cured *atomic.Bool) func(*Batch, string) {
	return func(b *Batch, name string) {
		switch {
		case cured.Load():
		case name == "error":
			b.Exec(`select 1 / 0`)
		case name == "panic":
			panic("a mistake")
		}
	}
}

func TestPoisonEventStopsOnlyItsProjection(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"error": "event BankAccountOpened at position 3: ERROR: division by zero (SQLSTATE 22012)",
		"panic": "event BankAccountOpened at position 3: panic: a mistake",
		"version": `event BankAccountOpened at position 3: decode BankAccountOpened at position 3: schema version 99 is unknown to this ` +
			`program, which knows 1 to 1`,
		"garbage": "event BankAccountOpened at position 3: decode BankAccountOpened at position 3: json: cannot unmarshal number into Go " +
			"struct field",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var cured atomic.Bool
			sick := seen("sick", poisoned(&cured))
			other := Define("other", 1, seenDDL, On(func(b *Batch, e event.Recorded[book.AccountRenamed]) {
				b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.To)
			}))
			run := r.run(t, sick, other)
			for _, p := range []string{"sick", "other"} {
				run.until(p, func(s Status) bool { return s.Ready })
			}
			// One batch, with the bad event in its middle.
			bad, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
			require.NoError(t, err)
			switch name {
			case "version":
				bad.Meta = []byte(`{"schema":99}`)
			case "garbage":
				bad.Data = []byte(`{"name":7}`)
			}
			good := func(name string) event.Proposed {
				e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
				require.NoError(t, err)
				return e
			}
			moved, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountRenamed{To: "z"}, event.Meta{})
			require.NoError(t, err)
			_, err = r.store.Append(t.Context(), eventstore.To("bank-1", eventstore.NoStream, good("a"), good("b"), bad, good("c"), moved))
			require.NoError(t, err)

			run.reached("other", 5)
			status := run.until("sick", func(s Status) bool { return s.Error != "" })
			require.Contains(t, status.Error, want)
			require.EqualValues(t, 2, status.Position)
			require.False(t, status.Working)
			require.Equal(t, []string{"a", "b"}, r.names(t, "sick"), "the events before it have taken effect")
			require.Equal(t, []string{"z"}, r.names(t, "other"))
			parked := r.parked(t, "sick")
			require.Contains(t, parked.Error, want)
			require.Equal(t, "parked", parked.State)
			require.EqualValues(t, 2, parked.Position)

			cured.Store(true)
			require.NoError(t, Retry(t.Context(), r.pool, sick))
			if name == "version" || name == "garbage" { // no retry helps
				require.Contains(t, r.parked(t, "sick").Error, want)
				return
			}
			require.Empty(t, run.reached("sick", 5).Error)
			require.Equal(t, []string{"a", "b", name, "c"}, r.names(t, "sick"))
			listed, err := List(t.Context(), r.pool)
			require.NoError(t, err)
			require.Equal(t, []string{"live", "live"}, []string{listed[0].State, listed[1].State})
		})
	}
}

// parked waits until the registry shows a projection as parked.
func (r *rig) parked(t *testing.T, name string) (found GenerationInfo) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, err := List(t.Context(), r.pool)
		require.NoError(t, err)
		for _, l := range all {
			if l.Name == name && l.State == "parked" {
				found = l
				return true
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
	return found
}

func TestOtherProcessesReportAParkedProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cured atomic.Bool
	p := seen("seen", poisoned(&cured))
	one, two := r.run(t, p), r.run(t, p)
	for _, run := range []*running{one, two} {
		run.until("seen", func(s Status) bool { return s.Ready })
	}
	r.add(t, "a", "error")
	for _, run := range []*running{one, two} {
		run.until("seen", func(s Status) bool { return strings.Contains(s.Error, "division by zero") })
	}
	cured.Store(true)
	goesOn := func(run *running) bool {
		s := run.Statuses()["seen"]
		return s.Position >= 2 && s.Error == ""
	}
	require.Eventually(t, func() bool { // one of them may have been about to park again
		if err := Retry(t.Context(), r.pool, p); err != nil {
			require.ErrorIs(t, err, ErrNotParked)
		}
		return goesOn(one) && goesOn(two)
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"a", "error"}, r.names(t, "seen"))
}

func TestProjectionOfAnotherLogStopsAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, repair, want string }{
		"another log": {
			`update log.identity set store_id = '00000000-0000-4000-8000-000000000000'`, ``,
			"but this is log 00000000-0000-4000-8000-000000000000: rebuild it",
		},
		"a log without its newest events": {
			`create table public.tail as select * from log.event where position > 3; delete from log.event where position > 3`,
			`insert into log.event select * from public.tail`,
			"is at position 5 with event",
		},
		"an empty log": {
			`create table public.tail as select * from log.event; delete from log.event`,
			`insert into log.event select * from public.tail`,
			"the log has no such event there",
		},
		"another event there": {
			`update log.event set id = '00000000-0000-4000-8000-000000000000' where position = 5`, ``,
			"the log was restored without its newest events, or is another one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := seen("seen", nil)
			r.add(t, numberedNames(0, 5)...)
			run := r.run(t, p)
			run.reached("seen", 5)
			run.stop()
			r.exec(t, c.spoil)
			r.reopen(t)
			run = r.run(t, p)
			status := run.until("seen", func(s Status) bool { return s.Error != "" })
			require.Contains(t, status.Error, c.want)
			require.Contains(t, r.parked(t, "seen").Error, c.want)
			r.add(t, "new")
			require.Contains(t, run.until("seen", func(s Status) bool { return !s.Working && s.Error != "" }).Error, c.want)
			require.Len(t, r.names(t, "seen"), 5, "the tables are unchanged")
			if c.repair == "" {
				require.NoError(t, r.build(p).Run(t.Context()), "the advice in the message helps")
				run.reached("seen", r.head(t))
				require.Contains(t, r.names(t, "seen"), "new")
				return
			}
			r.exec(t, `delete from log.event`)
			r.exec(t, c.repair)
			run.reached("seen", 5)
			listed, err := List(t.Context(), r.pool)
			require.NoError(t, err)
			require.Equal(t, "live", listed[0].State)
		})
	}
}
