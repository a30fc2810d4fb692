package projections

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/subscriber"
	"bahi/eventstore"
	"bahi/internal/test/pgtest"
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
			r := newFixture(t)
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
func (r *fixture) parked(t *testing.T, name string) (found GenerationInfo) {
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
	r := newFixture(t)
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
			r := newFixture(t)
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

// skip lets a follower skip an event, as the operators' command does.
func (r *fixture) skip(t *testing.T, name string, version int, at event.Position) {
	t.Helper()
	skip := subscriber.Skip{Version: version, Position: at, Type: openedName, Reason: "written by a broken import"}
	for e, err := range r.store.ReadAll(t.Context(), at+1, eventstore.Backwards) {
		require.NoError(t, err)
		skip.EventID = e.ID
		break
	}
	decided, err := skip.Decide(subscriber.State{})
	require.NoError(t, err)
	require.Len(t, decided, 1)
	e, err := subscriber.Kind.Encode(uuid.New(), decided[0], event.Meta{Actor: "user:7"})
	require.NoError(t, err)
	_, err = r.store.Append(t.Context(), eventstore.To(subscriber.Kind.Stream(name), eventstore.Any, e))
	require.NoError(t, err)
}

func TestSkipUnparksAProjection(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var never atomic.Bool
	p := seen("seen", poisoned(&never))
	serving := r.serve(t, p)
	serving.until("seen", func(s Status) bool { return s.Ready })
	r.add(t, "Ant")
	serving.reached("seen", 1)
	r.add(t, "error", "Bee")
	r.parked(t, "seen")
	require.ErrorIs(t, ParkedAt(t.Context(), r.pool, p, 1), ErrNotParked)
	require.NoError(t, ParkedAt(t.Context(), r.pool, p, 2))
	require.Equal(t, "test", r.program(t))

	require.NoError(t, Retry(t.Context(), r.pool, p))
	require.EqualValues(t, 1, r.parked(t, "seen").Position, "a retry alone does not help")
	r.skip(t, "seen", 1, 2)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	serving.reached("seen", r.head(t))
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
	r.exact(t, p)
	require.ErrorIs(t, Retry(t.Context(), r.pool, p), ErrNotParked)

	require.NoError(t, r.build(p).Run(t.Context()), "a rebuild of the same version skips it")
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
	next := seen("seen", poisoned(&never))
	next.Version = 2
	require.ErrorContains(t, r.build(next).Run(t.Context()), "division by zero", "a new version does not skip it")
	never.Store(true) // the event can be folded now
	require.NoError(t, Retry(t.Context(), r.pool, next))
	r.serve(t, next)
	r.goesLive(t, next, 3)
	names := pgtest.Value[int](t, r.pool, `select count(*) from seen_g3.seen`)
	require.Equal(t, 3, names)
}

// program returns the version of the program that recorded the error of the live generation.
func (r *fixture) program(t *testing.T) string {
	t.Helper()
	return pgtest.Value[string](t, r.pool, `select error_program from projection.generation
		where status = 'live' and error is not null`)
}

func TestSkipUnparksABuild(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]int{"whole": 1, "in parts": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			var never atomic.Bool
			p := seen("seen", poisoned(&never)).PartitionedBy(func(e *event.Recorded[any]) (int64, bool) { return int64(e.Position), false })
			r.add(t, "Ant", "Bee", "error", "Cat")
			build := r.build(p)
			build.How.Partitions = parts
			require.ErrorContains(t, build.Run(t.Context()), "event BankAccountOpened at position 3: ERROR: division by zero")
			require.NoError(t, ParkedAt(t.Context(), r.pool, p, 3))
			r.skip(t, "seen", 1, 3)
			serving := r.serve(t, p)
			serving.reached("seen", 5)
			require.Equal(t, []string{"Ant", "Bee", "Cat"}, r.names(t, "seen"))
			r.exact(t, p)
		})
	}
}

// A reactor, too, handles the events of a transaction together.
func TestSkipUnparksAReactor(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.exec(t, `create table public.effect (position bigint not null)`)
	mail := React("mail", []string{openedName}, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
		for _, e := range events {
			if e.Position == 3 {
				return errors.New("no recipient")
			}
			if _, err := tx.Exec(ctx, `insert into effect values ($1)`, int64(e.Position)); err != nil {
				return err
			}
		}
		return nil
	})
	run := r.react(t, mail)
	run.until("mail", func(s Status) bool { return s.Ready && s.Working })
	effects := func() []int { return pgtest.Values[int](t, r.pool, `select position from effect order by 1`) }
	r.add(t, "Ant")
	r.together(t, "Bee", "Cat", "Dog")
	status := run.until("mail", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, "event BankAccountOpened at position 3: no recipient")
	soon(t, "the reactor is parked", func() bool { return ReactorParkedAt(t.Context(), r.pool, "mail", 3) == nil })
	require.Equal(t, []int{1}, effects())
	require.ErrorIs(t, ReactorParkedAt(t.Context(), r.pool, "mail", 2), ErrNotParked)
	r.skip(t, "mail", 0, 3)
	require.NoError(t, RetryReactor(t.Context(), r.pool, "mail"))
	run.reached("mail", 5)
	require.Equal(t, []int{1, 2, 4}, effects())
	require.ErrorIs(t, ReactorParkedAt(t.Context(), r.pool, "mail", 3), ErrNotParked)
}

// together opens an account for each name, in one transaction of the log. The projection does not decode a renamed event.
func (r *fixture) together(t *testing.T, names ...string) {
	t.Helper()
	var x eventstore.Transaction
	for i, name := range names {
		var e event.Proposed
		var err error
		meta := event.Meta{More: len(names) - 1 - i}
		if name == "renamed" {
			e, err = bank.Ledger.Accounts.Encode(uuid.New(), book.AccountRenamed{To: name}, meta)
		} else {
			e, err = bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, meta)
		}
		require.NoError(t, err)
		if name == "garbage" {
			e.Data = []byte(`{"name":7}`)
		}
		x.Writes = append(x.Writes, eventstore.Write{Stream: "bank-" + uuid.NewString(), Expected: eventstore.NoStream,
			Events: []event.Proposed{e}})
	}
	_, err := r.store.Append(t.Context(), x)
	require.NoError(t, err)
}

func TestNoPartOfATransactionIsFoldedAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"error", "panic", "garbage"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			var never atomic.Bool
			p := seen("seen", poisoned(&never))
			serving := r.serve(t, p)
			serving.until("seen", func(s Status) bool { return s.Ready })
			r.together(t, "a", "b")
			serving.reached("seen", 2)
			r.together(t, "c", "d", name, "e")
			r.together(t, "f")
			parked := r.parked(t, "seen")
			require.Contains(t, parked.Error, "at position 5")
			require.EqualValues(t, 2, parked.Position, "the end of the transaction before")
			require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
			require.ErrorContains(t, r.build(p).Run(t.Context()), "at position 5", "a rebuild stops there too")

			r.skip(t, "seen", 1, 5)
			require.NoError(t, Retry(t.Context(), r.pool, p))
			serving.reached("seen", r.head(t))
			require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, r.names(t, "seen"))
		})
	}
}

// A fill's batches end between transactions, even if the store leaves out events of other projections.
func TestABatchOfAFillEndsBetweenTransactions(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	const transactions, size = 20, 30
	for n := range transactions {
		names := numberedNames(n*size, (n+1)*size)
		for i := range names {
			if i%7 == 3 || i == 0 || i == size-1 {
				names[i] = "renamed"
			}
		}
		r.together(t, names...)
	}
	p := seen("seen", nil)
	decoding, err := newDecoder(t.Context(), r.store, p, nil)
	require.NoError(t, err)
	c, throttle := &control{}, 2000
	c.obey(generation{buildState: buildState{Throttle: &throttle}})
	batches, end := 0, event.Position(0)
	for d, err := range r.build(p).ahead(t.Context(), decoding, 0, r.head(t), c) {
		require.NoError(t, err)
		batches++
		for i := range d.len() {
			at, whole := d.place(i)
			if i == 0 {
				require.Greater(t, at, end, "batch %d begins inside a transaction", batches)
			}
			end = max(end, whole)
		}
	}
	require.Greater(t, batches, 3)
	require.Equal(t, event.Position(transactions*size), end)
}
