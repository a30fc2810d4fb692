package projections

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"sync"
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

func TestRebuildUnderLoadReplacesTheLiveGeneration(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	remarks := newRemarks()
	r.log = slog.New(remarks)
	p := seen("seen", nil)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	ctx, stop := context.WithCancel(t.Context())
	var adding sync.WaitGroup
	total := 0
	adding.Go(func() {
		for ctx.Err() == nil {
			if err := r.tryAdd(t.Context(), numberedNames(total, total+10)...); err != nil {
				t.Error(err)
				return
			}
			total += 10
		}
	})
	const rounds = 8
	compared := 0
	for range rounds {
		build := r.build(p)
		var once sync.Once
		build.Progress = func(now Progress) {
			if now.Phase == comparing {
				once.Do(func() { compared++ })
			}
		}
		require.NoError(t, build.Run(t.Context()))
	}
	stop()
	adding.Wait()
	require.Equal(t, rounds, compared)
	require.Empty(t, remarks.said(), "all tables were compared, though they move")
	r.add(t, numberedNames(total, total+1)...) // only an event shows the last generation
	total++
	run.until("seen", func(s Status) bool { return s.Position >= r.head(t) && s.Generation == rounds+1 })
	require.ElementsMatch(t, numberedNames(0, total), r.names(t, "seen"))
	require.Equal(t, []string{fmt.Sprintf("seen_g%d", rounds+1)}, r.schemas(t))
	listed, err := List(t.Context(), r.pool)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Equal(t, "live", listed[0].State, listed[0].Error)
}

// No process folds the log when the new generation becomes live: the new tables end at the old ones' position.
func TestANewGenerationIsLiveWhereTheOldOneStopped(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	r.add(t, "a")
	run.reached("seen", 1)
	build, looks := r.build(p), 0
	build.Store = &atHead{Store: r.store, then: func() {
		if looks++; looks == 2 { // the build will fold no more than the first event
			r.add(t, "late")
			run.reached("seen", 2)
			run.stop()
		}
	}}
	require.NoError(t, build.Run(t.Context()))
	require.Equal(t, 2, r.live(t, p).Generation)
	require.Equal(t, []string{"a", "late"}, r.names(t, "seen"))
}

// atHead runs a function after each of the first two reads of the head.
type atHead struct {
	eventstore.Store

	looks atomic.Int32
	then  func()
}

func (a *atHead) Head(ctx context.Context) (event.Position, error) {
	head, err := a.Store.Head(ctx)
	if a.looks.Add(1) <= 2 {
		a.then()
	}
	return head, err
}

// Without statistics the first plans would be those of small tables. With those of an empty table, a prepared statement would keep its plan
// while the table fills.
func TestATableThatIsNotEmptyHasItsStatistics(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(t, numberedNames(0, 50)...)
	p := Define("seen", 1, seenDDL+"create table empty (id int);", On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
		b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.Name)
	}))
	require.NoError(t, r.build(p).Run(t.Context()))
	var columns, never int
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_stats where schemaname = 'seen_g1'`).Scan(&columns))
	require.NotZero(t, columns)
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_class where oid = 'seen_g1.empty'::regclass and reltuples = -1`).
		Scan(&never))
	require.Equal(t, 1, never, "never analyzed")
}

func TestFailedBuildKeepsTheLiveGenerationAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"error":   "event BankAccountOpened at position 2: ERROR: division by zero (SQLSTATE 22012)",
		"panic":   "event BankAccountOpened at position 2: panic: a mistake",
		"version": "event BankAccountOpened at position 3: decode BankAccountOpened at position 3: schema version 99 is unknown",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			var cured atomic.Bool
			cured.Store(true)
			p := seen("seen", poisoned(&cured))
			r.add(t, "a", name)
			require.NoError(t, r.build(p).Run(t.Context()))
			cured.Store(false)
			if name == "version" {
				r.addRaw(t, "BankAccountOpened", `{}`, `{"schema":99}`)
				r.exec(t, `update projection.generation set position = 3, event_id = (select id from log.event where position = 3)`)
			}
			require.ErrorContains(t, r.build(p).Run(t.Context()), want)
			require.Equal(t, []string{"a", name}, r.names(t, "seen"))
			listed, err := List(t.Context(), r.pool)
			require.NoError(t, err)
			require.Equal(t, []string{"live", "parked"}, []string{listed[0].State, listed[1].State})
			require.Contains(t, listed[1].Error, want)
			require.ErrorIs(t, r.build(p).Run(t.Context()), ErrBuildRuns, "the build is resumed, not started twice")

			require.NoError(t, r.build(p).Cancel(t.Context()))
			require.Equal(t, []string{"seen_g1"}, r.schemas(t))
			require.ErrorIs(t, r.build(p).Cancel(t.Context()), ErrNoBuild)
		})
	}
}

// feed is a log that yields the batches that it is given.
type feed struct {
	eventstore.Store

	batches chan eventstore.Batch
	ended   chan struct{}
}

func (f *feed) Subscribe(ctx context.Context, _ event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		defer close(f.ended)
		for {
			select {
			case b, more := <-f.batches:
				if !more {
					yield(eventstore.Batch{}, eventstore.ErrUnavailable)
					return
				}
				if !yield(b, nil) {
					return
				}
			case <-ctx.Done():
				yield(eventstore.Batch{}, ctx.Err())
				return
			}
		}
	}
}

func stored(position event.Position, name string) event.Stored {
	return event.Stored{Position: position, ID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, position)), Type: name}
}

func TestIrrelevantBatchesAreCoalesced(t *testing.T) {
	t.Parallel()
	f := &feed{batches: make(chan eventstore.Batch), ended: make(chan struct{})}
	p := seen("seen", nil)
	go func() {
		for i := range event.Position(100) {
			f.batches <- eventstore.Batch{Events: []event.Stored{stored(2*i+1, "Other"), stored(2*i+2, "Other")}, UpTo: 2*i + 2}
		}
		f.batches <- eventstore.Batch{UpTo: 205}
		f.batches <- eventstore.Batch{Events: []event.Stored{stored(206, "Other"), stored(207, "BankAccountOpened")}, UpTo: 207}
		f.batches <- eventstore.Batch{Events: []event.Stored{stored(208, "Other")}, UpTo: 208}
	}()
	var got []eventstore.Batch
	for batch, err := range coalesced(t.Context(), p, f, 0, &demand{}) {
		require.NoError(t, err)
		got = append(got, batch)
		if batch.UpTo == 208 {
			break
		}
	}
	require.Less(t, len(got), 60, "irrelevant batches need few transactions")
	for i, b := range got {
		if b.UpTo == 207 {
			require.Len(t, b.Events, 2, "relevant batches arrive unchanged")
			continue
		}
		if b.UpTo != 205 {
			require.Equal(t, []event.Stored{stored(b.UpTo, "Other")}, b.Events, "the checkpoint has its event")
		}
		if i > 0 {
			require.Greater(t, b.UpTo, got[i-1].UpTo)
		}
	}
	<-f.ended // the goroutine that reads ahead ends with its consumer
}

func TestGatheredEventsAreYieldedWhenTheirPositionIsAskedFor(t *testing.T) {
	t.Parallel()
	f := &feed{batches: make(chan eventstore.Batch), ended: make(chan struct{})}
	sent, asked := make(chan struct{}), &demand{}
	go func() {
		for i := range event.Position(3) {
			f.batches <- eventstore.Batch{Events: []event.Stored{stored(i+1, "BankAccountOpened")}, UpTo: i + 1}
		}
		close(sent)
		f.batches <- eventstore.Batch{Events: []event.Stored{stored(4, "BankAccountOpened")}, UpTo: 4}
	}()
	go func() {
		<-sent
		asked.raise(1)
		asked.raise(4)
	}()
	var positions []event.Position
	for batch, err := range coalesced(t.Context(), seen("seen", nil).WithBatchDelay(time.Hour), f, 0, asked) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			positions = append(positions, e.Position)
		}
		if batch.UpTo == 4 {
			break
		}
	}
	require.Equal(t, []event.Position{1, 2, 3, 4}, positions)
	<-f.ended
}

func TestEndOfASubscriptionIsReported(t *testing.T) {
	t.Parallel()
	f := &feed{batches: make(chan eventstore.Batch), ended: make(chan struct{})}
	close(f.batches)
	for _, err := range coalesced(t.Context(), seen("seen", nil), f, 0, &demand{}) {
		require.ErrorIs(t, err, eventstore.ErrUnavailable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	quiet := &feed{batches: make(chan eventstore.Batch), ended: make(chan struct{})}
	for _, err := range coalesced(ctx, seen("seen", nil), quiet, 0, &demand{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	<-quiet.ended
}

func TestProjectionFoldsATypeOnce(t *testing.T) {
	t.Parallel()
	on := On(func(*Batch, event.Recorded[book.AccountOpened]) {})
	require.PanicsWithValue(t, "projection twice folds BankAccountOpened twice", func() { Define("twice", 1, "", on, on) })
}

func TestFoldsOfABatchKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := Define("seen", 1, seenDDL,
		On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
			b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.Name)
		}),
		Apply([]string{"BankAccountRenamed"}, func(ctx context.Context, b *Batch, events []event.Recorded[any]) error {
			var count int
			if err := b.Tx.QueryRow(ctx, `select count(*) from seen`).Scan(&count); err != nil {
				return err
			}
			b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(events[0].Position), fmt.Sprintf("%d after %d", len(events), count))
			return nil
		}))
	open := func(name string) event.Proposed {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
		require.NoError(t, err)
		return e
	}
	rename := func() event.Proposed {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountRenamed{To: "x"}, event.Meta{})
		require.NoError(t, err)
		return e
	}
	_, err := r.store.Append(t.Context(),
		eventstore.To("bank-1", eventstore.Any, open("a"), rename(), rename(), open("b"), open("c"), rename()))
	require.NoError(t, err)
	require.NoError(t, r.build(p).Run(t.Context()))
	require.Equal(t, []string{"a", "2 after 1", "b", "c", "1 after 4"}, r.names(t, "seen"))
}

func TestABuildNotesWhatItTookBehindItsFill(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	old := named(1, same)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(old).Run(t.Context()))
	took := func(p *Projection) (after *time.Duration) {
		t.Helper()
		g := r.live(t, p)
		require.NoError(t, r.pool.QueryRow(t.Context(), `select after_fill from projection.generation where name = $1 and generation = $2`,
			g.Name, g.Generation).Scan(&after))
		return after
	}
	require.Positive(t, *took(old))
	e, err := r.build(old).Estimate(t.Context())
	require.NoError(t, err)
	require.InDelta(t, *took(old), e.Then, 10, "the next one takes as long, for as many events")

	wrong := named(2, func(string) string { return "Wasp" })
	b := r.build(wrong)
	b.How.Accept = true
	require.NoError(t, b.Run(t.Context()))
	require.Nil(t, took(wrong), "it may have waited for another process")
}

// One connection follows, one builds, one fills. On a slow machine one more checks for orders.
func TestFirstBuildHasFourConnectionsAtMost(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "a", "b")
	var mu sync.Mutex
	open, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		open += n
		most = max(most, open)
	}
	runner := NewRunner(r.store, r.pool, r.log)
	dial := runner.config.DialFunc
	runner.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		count(1)
		return &counted{conn, sync.OnceFunc(func() { count(-1) })}, nil
	}
	serving := r.running(t, runner, func(ctx context.Context) error { return runner.Run(ctx, p) })
	serving.until("seen", func(s Status) bool { return s.Ready })
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, most, 4)
}

// counted is a connection that reports its end.
type counted struct {
	net.Conn

	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestBuildRecordsItsPositionWithoutEventsToFold(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "a")
	for range 40 {
		r.addRaw(t, "BankAccountRenamed", `{"name":"b"}`, `{}`)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	build := r.build(p)
	build.How = BuildOptions{Throttle: throttledBatches} // batches of one event
	build.Progress = func(now Progress) {
		if now.Done >= 15 {
			stop()
		}
	}
	require.ErrorIs(t, build.Run(ctx), context.Canceled)

	build.Progress = func(now Progress) {
		require.GreaterOrEqual(t, now.Done, event.Position(15), "the build continues from its position")
	}
	require.NoError(t, build.Join(t.Context()))
}

func TestBuildReportsLostParts(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(t, "a")
	p := seen("seen", nil)
	build := r.build(p)
	require.NoError(t, build.Request(t.Context()))
	r.exec(t, `update projection.generation set status = 'filling'`)
	r.exec(t, `create schema seen_g1; create table seen_g1.seen (position bigint not null, name text not null)`)
	require.ErrorContains(t, build.Join(t.Context()), "has lost its parts")
}

func TestExaminationBesideWritersHasIndexes(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, numberedNames(0, 100)...)
	run := r.run(t, p)
	run.reached("seen", 100)
	build := r.build(p)
	var meanwhile sync.Once
	indexes := 0
	build.Progress = func(now Progress) {
		switch now.Phase {
		case catchingUp: // the log was folded up to the position at the start
			meanwhile.Do(func() {
				r.add(t, numberedNames(100, 200)...)
				run.reached("seen", 200)
			})
		case comparing:
			require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_indexes where indexname = 'seen_position_idx'`).Scan(&indexes))
		}
	}
	found, err := build.Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
	require.EqualValues(t, 200, found.Position)
	require.Equal(t, 2, indexes, "of the live tables and of those that are compared with them")
}
