package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// rig is a log with projections of these tests' own.
type rig struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	log   *slog.Logger
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{log: slog.New(slog.DiscardHandler)}
	var err error
	r.pool, err = pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(r.pool.Close)
	r.reopen(t)
	return r
}

// reopen opens the log as another process would.
func (r *rig) reopen(t *testing.T) {
	t.Helper()
	store, err := postgres.Open(t.Context(), r.pool, r.log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	r.store = store
}

// add appends the opening of an account for each name.
func (r *rig) add(t *testing.T, names ...string) {
	t.Helper()
	require.NoError(t, r.tryAdd(t.Context(), names...))
}

func (r *rig) tryAdd(ctx context.Context, names ...string) error {
	requests := make([]eventstore.Request, len(names))
	for i, name := range names {
		e, err := bank.Accounts.Encode(uuid.New(), book.AccountOpened[bank.Entry]{Name: name}, event.Meta{})
		if err != nil {
			return err
		}
		requests[i] = eventstore.Request{Stream: "bank-" + uuid.NewString(), Expected: eventstore.NoStream, Events: []event.New{e}}
	}
	for _, done := range r.store.AppendEach(ctx, requests) {
		if done.Err != nil {
			return done.Err
		}
	}
	return nil
}

// addRaw appends an event as it is.
func (r *rig) addRaw(t *testing.T, name, data, meta string) {
	t.Helper()
	_, err := r.store.Append(t.Context(), "bank-"+uuid.NewString(), eventstore.NoStream,
		event.New{ID: uuid.New(), Type: name, Data: []byte(data), Meta: []byte(meta)})
	require.NoError(t, err)
}

func (r *rig) head(t *testing.T) event.Position {
	t.Helper()
	head, err := r.store.Head(t.Context())
	require.NoError(t, err)
	return head
}

// running is a process that runs projections.
type running struct {
	*Runner

	t       *testing.T
	stopped chan error
	cancel  context.CancelFunc
}

func (r *rig) run(t *testing.T, all ...*Projection) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &running{Runner: NewRunner(r.store, r.pool, r.log), t: t, stopped: make(chan error, 1), cancel: cancel}
	go func() { p.stopped <- p.Run(ctx, all...) }()
	t.Cleanup(p.stop)
	return p
}

func (p *running) stop() {
	p.t.Helper()
	p.cancel()
	select {
	case err := <-p.stopped:
		require.NoError(p.t, err)
		p.stopped <- nil
	case <-time.After(10 * time.Second):
		require.Fail(p.t, "the runner does not stop")
	}
}

// until waits for a status.
func (p *running) until(name string, is func(Status) bool) Status {
	p.t.Helper()
	late := time.After(30 * time.Second)
	for {
		moved := p.Moved()
		if s := p.Statuses()[name]; is(s) {
			return s
		}
		select {
		case <-moved:
		case <-late:
			require.Fail(p.t, "it does not come to that", "%+v", p.Statuses())
		}
	}
}

func (p *running) reached(name string, at event.Position) Status {
	p.t.Helper()
	return p.until(name, func(s Status) bool { return s.Position >= at && s.Working })
}

const seenDDL = `
create table seen (position bigint not null, name text not null);
-- after fill
create index seen_position_idx on seen (position);`

// seen notes the accounts that were opened, each as often as it is folded. With a hook, it first does
// what that says.
func seen(name string, hook func(b *Batch, name string)) *Projection {
	return Define(name, 1, seenDDL, On(func(b *Batch, e event.Recorded[book.AccountOpened[bank.Entry]]) {
		if hook != nil {
			hook(b, e.Data.Name)
		}
		b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.Name)
	}))
}

// names lists what the live generation has seen, in order.
func (r *rig) names(t *testing.T, projection string) []string {
	t.Helper()
	live, err := generations(t.Context(), r.pool, `live and name = $1`, projection)
	require.NoError(t, err)
	require.Len(t, live, 1)
	rows, _ := r.pool.Query(t.Context(), `select name from `+live[0].schema()+`.seen order by position`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func (r *rig) exec(t *testing.T, sql string) int64 {
	t.Helper()
	done, err := r.pool.Exec(t.Context(), sql)
	require.NoError(t, err)
	return done.RowsAffected()
}

// schemas lists the schemas of generations.
func (r *rig) schemas(t *testing.T) []string {
	t.Helper()
	rows, _ := r.pool.Query(t.Context(), `select nspname::text from pg_namespace where nspname ~ '_g[0-9]+$' order by 1`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

func numberedNames(from, to int) []string {
	names := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("n%04d", i))
	}
	return names
}

const killSelf = `select pg_terminate_backend(pg_backend_pid())`

func TestEachEventTakesEffectOnceWhereverItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var killed atomic.Int32
	once := func(n int32) bool { return killed.CompareAndSwap(n, n+1) }
	p := seen("seen", func(b *Batch, name string) {
		switch {
		case name == "n0003" && once(0): // before the event
			b.Exec(killSelf)
		case name == "n0005" && once(1): // in the middle of it
			b.Exec(`insert into seen (position, name) values (0, 'never')`)
			b.Exec(killSelf)
		case name == "n0007" && once(2): // when it is committed
			b.Exec(`create function pg_temp.die() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$`)
			b.Exec(`create constraint trigger die after insert on seen initially deferred for each row execute function pg_temp.die()`)
		}
	})
	r.add(t, "first")
	run := r.run(t, p)
	run.reached("seen", r.head(t))
	want := numberedNames(0, 10)
	for _, name := range want {
		r.add(t, name)
		run.reached("seen", r.head(t))
	}
	require.EqualValues(t, 3, killed.Load())
	require.Equal(t, append([]string{"first"}, want...), r.names(t, "seen"))
}

func TestEachEventTakesEffectOnceWhileConnectionsAreKilledAtRandom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, seen("seen", nil))
	run.until("seen", func(s Status) bool { return s.Ready })
	want := numberedNames(0, 400)
	for batch := range slices.Chunk(want, 20) {
		r.add(t, batch...)
		r.exec(t, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'bahi projection seen'`)
	}
	run.reached("seen", r.head(t))
	require.ElementsMatch(t, want, r.names(t, "seen"))
}

func TestOneRunnerOfSeveralProcessesWorksAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	one := r.run(t, p)
	one.until("seen", func(s Status) bool { return s.Working })
	r.reopen(t)
	two := r.run(t, p)
	r.add(t, numberedNames(0, 20)...)
	one.reached("seen", r.head(t))
	standing := two.until("seen", func(s Status) bool { return s.Position >= r.head(t) })
	require.False(t, standing.Working)
	require.True(t, standing.Ready)
	require.Equal(t, 1, standing.Generation)

	one.stop()
	r.add(t, numberedNames(20, 40)...)
	two.reached("seen", r.head(t))
	require.ElementsMatch(t, numberedNames(0, 40), r.names(t, "seen"))
	require.Equal(t, []string{"seen_g1"}, r.schemas(t))
}

func TestSeveralProcessesThatStartAtOnceBuildOneGeneration(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(t, numberedNames(0, 50)...)
	p := seen("seen", nil)
	all := []*running{r.run(t, p), r.run(t, p), r.run(t, p)}
	for _, one := range all {
		one.until("seen", func(s Status) bool { return s.Position >= r.head(t) })
	}
	require.Equal(t, []string{"seen_g1"}, r.schemas(t))
	require.Len(t, r.names(t, "seen"), 50)
}

// hold is a session on the live generation, as a runner has it.
func (r *rig) hold(t *testing.T, p *Projection) *session {
	t.Helper()
	conn, err := connect(t.Context(), r.pool.Config().ConnConfig, p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
	g, found, err := liveGeneration(t.Context(), conn, p)
	require.NoError(t, err)
	require.True(t, found)
	s := &session{p: p, g: g, owner: uuid.New(), conn: conn}
	require.NoError(t, s.own(t.Context()))
	return s
}

func (r *rig) build(p *Projection) Build {
	return Build{Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: p, Log: r.log}
}

func (r *rig) decoded(t *testing.T, p *Projection, after event.Position) decoded {
	t.Helper()
	var batch eventstore.Batch
	for e, err := range r.store.ReadAll(t.Context(), after, eventstore.Forwards) {
		require.NoError(t, err)
		batch.Events, batch.UpTo = append(batch.Events, e), e.Position
	}
	d, err := p.decode(batch)
	require.NoError(t, err)
	return d
}

func TestARunnerThatIsFencedOffWritesNothing(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"another owner":      `update projection.generation set owner = gen_random_uuid()`,
		"another generation": `update projection.generation set live = false`,
		"another position":   `update projection.generation set position = 1`,
		"no generation":      `delete from projection.generation`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := seen("seen", nil)
			require.NoError(t, r.build(p).Run(t.Context()))
			s := r.hold(t, p)
			r.add(t, "a", "b")
			require.EqualValues(t, 1, r.exec(t, sql))
			d := r.decoded(t, p, 0)
			require.ErrorIs(t, s.apply(t.Context(), d), ErrFenced)
			require.ErrorIs(t, s.applyFinding(t.Context(), d), ErrFenced)
			require.ErrorIs(t, s.fenced(t.Context()), ErrFenced)
			var count int
			require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from seen_g1.seen`).Scan(&count))
			require.Zero(t, count)
		})
	}
}

func TestTablesThatAreGoneAreNoEventsFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	s := r.hold(t, p)
	require.NoError(t, r.build(p).Run(t.Context()))
	r.add(t, "a")
	err := s.applyFinding(t.Context(), r.decoded(t, p, 0))
	require.ErrorIs(t, err, ErrFenced)
	_, poisoned := errors.AsType[*poison](err)
	require.False(t, poisoned)
}

func TestARunnerGoesOnAfterSomebodyElseHadItsProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, seen("seen", nil))
	r.add(t, "a")
	run.reached("seen", r.head(t))
	r.exec(t, `update projection.generation set owner = gen_random_uuid()`)
	r.add(t, "b")
	require.Empty(t, run.reached("seen", r.head(t)).Error)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}

// poisoned are events that cannot be folded. cure says that the program has changed and can.
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

func TestAPoisonEventStopsItsProjectionAlone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"error":   "event BankAccountOpened at position 3: ERROR: division by zero (SQLSTATE 22012)",
		"panic":   "event BankAccountOpened at position 3: panic: a mistake",
		"version": `event BankAccountOpened at position 3: decode BankAccountOpened at position 3: schema version 99 is unknown to this program, which knows 1 to 1`,
		"garbage": "event BankAccountOpened at position 3: decode BankAccountOpened at position 3: json: cannot unmarshal number into Go struct field",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var cured atomic.Bool
			sick := seen("sick", poisoned(&cured))
			other := Define("other", 1, seenDDL, On(func(b *Batch, e event.Recorded[book.AccountRenamed[bank.Entry]]) {
				b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.To)
			}))
			run := r.run(t, sick, other)
			for _, p := range []string{"sick", "other"} {
				run.until(p, func(s Status) bool { return s.Ready })
			}
			// All of one batch, and the bad one in its middle.
			bad, err := bank.Accounts.Encode(uuid.New(), book.AccountOpened[bank.Entry]{Name: name}, event.Meta{})
			require.NoError(t, err)
			switch name {
			case "version":
				bad.Meta = []byte(`{"schema":99}`)
			case "garbage":
				bad.Data = []byte(`{"name":7}`)
			}
			good := func(name string) event.New {
				e, err := bank.Accounts.Encode(uuid.New(), book.AccountOpened[bank.Entry]{Name: name}, event.Meta{})
				require.NoError(t, err)
				return e
			}
			moved, err := bank.Accounts.Encode(uuid.New(), book.AccountRenamed[bank.Entry]{To: "z"}, event.Meta{})
			require.NoError(t, err)
			_, err = r.store.Append(t.Context(), "bank-1", eventstore.NoStream, good("a"), good("b"), bad, good("c"), moved)
			require.NoError(t, err)

			run.reached("other", 5)
			status := run.until("sick", func(s Status) bool { return s.Error != "" })
			require.Contains(t, status.Error, want)
			require.EqualValues(t, 2, status.Position)
			require.False(t, status.Working)
			require.Equal(t, []string{"a", "b"}, r.names(t, "sick"), "what came before it has taken effect")
			require.Equal(t, []string{"z"}, r.names(t, "other"))
			parked := r.parked(t, "sick")
			require.Contains(t, parked.Error, want)
			require.Equal(t, "parked", parked.State)
			require.EqualValues(t, 2, parked.Position)

			cured.Store(true)
			require.NoError(t, Retry(t.Context(), r.pool, "sick"))
			if name == "version" || name == "garbage" { // which no retry cures
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

// parked waits until the registry says that a projection is.
func (r *rig) parked(t *testing.T, name string) (found Listed) {
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
	}, 20*time.Second, 5*time.Millisecond)
	return found
}

func TestAnotherProcessSaysThatAProjectionIsParked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cured atomic.Bool
	p := seen("seen", poisoned(&cured))
	one, two := r.run(t, p), r.run(t, p)
	r.add(t, "a", "error")
	for _, run := range []*running{one, two} {
		run.until("seen", func(s Status) bool { return strings.Contains(s.Error, "division by zero") })
	}
	cured.Store(true)
	require.NoError(t, Retry(t.Context(), r.pool, "seen"))
	for _, run := range []*running{one, two} {
		run.until("seen", func(s Status) bool { return s.Position >= 2 && s.Error == "" })
	}
	require.Equal(t, []string{"a", "error"}, r.names(t, "seen"))
}

func TestAProjectionThatDoesNotBelongToTheLogRefusesAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, repair, want string }{
		"another log": {
			`update log.identity set store_id = '00000000-0000-4000-8000-000000000000'`, ``,
			"and this is log 00000000-0000-4000-8000-000000000000: rebuild it",
		},
		"a log without its newest events": {
			`create table public.tail as select * from log.event where position > 3; delete from log.event where position > 3`,
			`insert into log.event select * from public.tail`,
			"stands at position 5 on event",
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
			require.Len(t, r.names(t, "seen"), 5, "it guesses nothing")
			if c.repair == "" {
				require.NoError(t, r.build(p).Run(t.Context()), "what the message advises helps")
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

func TestTheRunnerStopsWithinSeconds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cured atomic.Bool
	block := make(chan struct{})
	defer close(block)
	busy, sick := seen("busy", nil), seen("sick", poisoned(&cured))
	r.add(t, "error")
	one, two := r.run(t, busy, sick), r.run(t, busy, sick)
	one.until("sick", func(s Status) bool { return s.Error != "" })
	stopAdding, done := context.WithCancel(t.Context())
	added := make(chan struct{})
	go func() {
		defer close(added)
		for stopAdding.Err() == nil {
			if err := r.tryAdd(t.Context(), numberedNames(0, 50)...); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	one.until("busy", func(s Status) bool { return s.Position > 100 })
	for _, run := range []*running{one, two} {
		began := time.Now()
		run.stop()
		require.Less(t, time.Since(began), 4*time.Second)
	}
	done()
	<-added
}
