package ledgerproj_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/draws"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/projections"
	"bahi/projections/ledgerproj"
)

// history draws what happens to the books of two workspaces.
func history(rt *rapid.T, length int) []eventstore.Transaction {
	const accounts = 6
	var (
		all     []eventstore.Transaction
		account = map[int64]int64{} // by row; without deleted rows
		closed  = map[int64]bool{}
		dates   = rapid.Custom(func(rt *rapid.T) unit.Date { return day + unit.Date(rapid.IntRange(0, 4).Draw(rt, "day")) })
		amount  = rapid.Custom(func(rt *rapid.T) book.Side { return entries(rapid.Int64Range(1, 500).Draw(rt, "paise")) })
		next    = int64(1)
	)
	metaOf := func(account int64) event.Meta {
		return event.Meta{Workspace: []uuid.UUID{home, away}[account%2], Actor: "user:7"}
	}
	add := func(stream string, e event.Proposed, err error) {
		require.NoError(rt, err)
		all = append(all, eventstore.To(stream, eventstore.Any, e))
	}
	ofAccount := func(id int64, e event.Event[book.Account]) {
		n, err := bank.Ledger.Accounts.Encode(uuid.New(), e, metaOf(id))
		add(bank.Ledger.Accounts.Stream(text(id)), n, err)
	}
	ofRow := func(id int64, e event.Event[book.Row]) {
		n, err := bank.Ledger.Rows.Encode(uuid.New(), e, metaOf(account[id]))
		add(bank.Ledger.Rows.Stream(text(id)), n, err)
	}
	post := func(to int64, in, out book.Side, reverses int64) int64 {
		row := next
		account[row], next = to, next+1
		ofRow(row, book.RowAdded{Account: to, Date: dates.Draw(rt, "date"), In: in, Out: out, Reverses: reverses})
		return row
	}
	for id := range int64(accounts) {
		ofAccount(id+1, book.AccountOpened{Name: "SBI"})
	}
	for len(all) < length {
		to := rapid.Int64Range(1, accounts).Draw(rt, "account")
		row := rapid.Int64Range(1, next).Draw(rt, "row")
		_, there := account[row]
		there = there && !closed[account[row]]
		switch what := rapid.IntRange(0, 10).Draw(rt, "what"); {
		case what < 4 && !closed[to]:
			post(to, amount.Draw(rt, "in"), book.Side{}, 0)
		case what < 6 && there:
			ofRow(row, book.RowEdited{Date: new(dates.Draw(rt, "to")), Out: new(amount.Draw(rt, "out"))})
		case what == 6 && there:
			ofRow(row, book.RowDeleted{})
			delete(account, row)
		case what == 7 && there:
			ofRow(row, book.RowVoided{})
		case what == 8:
			through, whose := new(dates.Draw(rt, "through")), rapid.Int64Range(1, 2).Draw(rt, "books")
			n, err := bookslock.Kind.Encode(uuid.New(), bookslock.Moved{To: through}, metaOf(whose))
			add(bookslock.Kind.Stream(metaOf(whose).Workspace.String()), n, err)
		case what == 9 && there:
			by := post(account[row], book.Side{}, amount.Draw(rt, "back"), row)
			ofRow(row, book.RowReversed{By: by})
		case what == 10 && !closed[to] && rapid.IntRange(0, 9).Draw(rt, "seldom") == 0:
			ofAccount(to, book.AccountDeleted{EarliestRow: new(day)})
			closed[to] = true
		case what == 10 && !closed[to]:
			ofAccount(to, book.AccountRenamed{To: rapid.StringMatching(`[a-z]{3}`).Draw(rt, "name")})
		}
	}
	return all[:length]
}

// books is a log with the projection of the books.
type books struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	build projections.Build
}

func openBooks(t *testing.T) *books {
	t.Helper()
	pool, store := logtest.Open(t)
	return &books{pool: pool, store: store, build: projections.Build{
		Store: store, Config: pool.Config().ConnConfig.Copy(), Projection: ledgerproj.Books, Log: slog.New(slog.DiscardHandler),
	}}
}

// places returns the positions of the parts of a build.
func (b *books) places(t *testing.T) []int64 {
	t.Helper()
	return pgtest.Values[int64](t, b.pool, `select position from projection.partition order by ordinal`)
}

// leave begins a build in parts and stops it while one part lags behind the others.
func (b *books) leave(t *testing.T, parts, late int) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	build, left := b.build, make(chan error, 1)
	build.How = projections.BuildOptions{Partitions: parts, Throttle: 40} // for some seconds
	go func() { left <- build.Run(ctx) }()
	reaches := func(what string, is func(places []int64) bool) {
		require.Eventually(t, func() bool { return is(b.places(t)) }, time.Minute, time.Millisecond, what)
	}
	reaches("it begins", func(places []int64) bool { return len(places) == parts && places[late] > 0 })
	hold, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer hold.Rollback(context.WithoutCancel(t.Context()))
	pgtest.Exec(t, hold, `select from projection.partition where ordinal = $1 for update`, late)
	reaches("the others are ahead", func(places []int64) bool { return places[(late+1)%parts] > places[late] })
	end()
	require.ErrorIs(t, <-left, context.Canceled)
}

// tend runs another process until it has finished all builds.
func (b *books) tend(t *testing.T) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- projections.NewRunner(b.store, b.pool, slog.New(slog.DiscardHandler)).MaintainGenerations(ctx, ledgerproj.Books)
	}()
	require.Eventually(t, func() bool {
		building := pgtest.Value[bool](t, b.pool, `select exists (select from projection.generation where status <> 'live')`)
		return !building
	}, time.Minute, 10*time.Millisecond)
	end()
	require.NoError(t, <-done)
}

// For any events, and wherever the parts of a build stopped, the tables equal those of an uninterrupted build with one part, and
// those of a running projection.
func TestPartsThatWereLeftAtDifferentPlacesGiveTheSameBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := openBooks(t)
		for i, e := range history(rt, 250) {
			done, err := b.store.Append(t.Context(), e)
			require.NoError(t, err)
			require.EqualValues(t, i+1, done.Position)
		}
		parts := rapid.IntRange(2, 4).Draw(rt, "parts")
		b.leave(t, parts, rapid.IntRange(0, parts-1).Draw(rt, "late"))
		require.NoError(t, projections.Throttle(t.Context(), b.pool, ledgerproj.Books, 0))
		b.tend(t)
		whole := b.build
		whole.How.Partitions = 1
		found, err := whole.Examine(t.Context())
		require.NoError(t, err)
		require.Empty(t, found.Differences)
		require.Positive(t, found.Rows)
		running := b.build
		running.How.Partitions = parts
		differences, err := running.Fold(t.Context(), rapid.SampledFrom([]int{1, 7, 60}).Draw(rt, "batch"), 1)
		require.NoError(t, err)
		require.Empty(t, differences)
	})
}

// TestMain makes fewer runs of the property than rapid would: each has a database of its own.
func TestMain(m *testing.M) {
	draws.Default(4)
	os.Exit(m.Run())
}
