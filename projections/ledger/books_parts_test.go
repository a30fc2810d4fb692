package ledger_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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
	"bahi/internal/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/ledger"
)

// history draws what happens to the books of two workspaces: also what breaks their rules, which is void.
func history(rt *rapid.T, length int) []eventstore.Transaction {
	var (
		all   []eventstore.Transaction
		rows  []int64 // that were ever asked for
		dates = rapid.Custom(func(rt *rapid.T) unit.Date { return day + unit.Date(rapid.IntRange(0, 4).Draw(rt, "day")) })
		next  = int64(1)
	)
	account := rapid.Int64Range(1, 7)
	amount := rapid.Custom(func(rt *rapid.T) book.Side { return entries(rapid.Int64Range(1, 500).Draw(rt, "paise")) })
	add := func(kind interface {
		Stream(id string) string
	}, id string, encode func(event.Meta) (event.New, error), of event.Position) {
		meta := event.Meta{Workspace: home, Actor: "user:7", Of: of}
		if rapid.IntRange(0, 3).Draw(rt, "whose") == 0 {
			meta.Workspace = away
		}
		e, err := encode(meta)
		require.NoError(rt, err)
		all = append(all, eventstore.To(kind.Stream(id), eventstore.Any, e))
	}
	ofAccount := func(id int64, e event.Event[book.Account]) {
		add(bank.Ledger.Accounts, text(id), func(m event.Meta) (event.New, error) { return bank.Ledger.Accounts.Encode(uuid.New(), e, m) }, 0)
	}
	ofRow := func(id int64, e event.Event[book.Row], of event.Position) {
		add(bank.Ledger.Rows, text(id), func(m event.Meta) (event.New, error) { return bank.Ledger.Rows.Encode(uuid.New(), e, m) }, of)
	}
	old := func() int64 {
		if len(rows) == 0 {
			return 999
		}
		return rapid.SampledFrom(rows).Draw(rt, "row")
	}
	for id := range int64(6) {
		ofAccount(id+1, book.AccountOpened{Name: "SBI"})
	}
	for len(all) < length {
		switch rapid.IntRange(0, 11).Draw(rt, "what") {
		case 0, 1, 2, 3:
			ofRow(next, book.RowAdded{Account: account.Draw(rt, "account"), Date: dates.Draw(rt, "date"), In: amount.Draw(rt, "in")}, 0)
			rows, next = append(rows, next), next+1
		case 4, 5:
			ofRow(old(), book.RowEdited{Date: new(dates.Draw(rt, "to")), Out: new(amount.Draw(rt, "out"))}, 0)
		case 6:
			ofRow(old(), book.RowDeleted{}, 0)
		case 7:
			ofRow(old(), book.RowVoided{}, 0)
		case 8:
			through := new(dates.Draw(rt, "through"))
			if rapid.Bool().Draw(rt, "open") {
				through = nil
			}
			whose := rapid.SampledFrom([]uuid.UUID{home, away}).Draw(rt, "books")
			add(bookslock.Kind, whose.String(), func(m event.Meta) (event.New, error) {
				m.Workspace = whose
				return bookslock.Kind.Encode(uuid.New(), bookslock.Moved{To: through}, m)
			}, 0)
		case 9:
			posted := book.RowsPosted{Account: account.Draw(rt, "account")}
			first := next
			for range rapid.IntRange(1, 4).Draw(rt, "rows") {
				posted.Rows = append(posted.Rows, book.BulkRow{Date: dates.Draw(rt, "date"), Out: amount.Draw(rt, "out")})
				rows, next = append(rows, next), next+1
			}
			add(bank.Ledger.Bulks, text(first), func(m event.Meta) (event.New, error) { return bank.Ledger.Bulks.Encode(uuid.New(), posted, m) }, 0)
			at := event.Position(len(all))
			for i, row := range posted.Rows[:rapid.IntRange(0, len(posted.Rows)).Draw(rt, "filled")] {
				ofRow(first+int64(i), book.RowAdded{Account: posted.Account, Date: row.Date, Out: row.Out}, at)
			}
		case 10:
			ofAccount(account.Draw(rt, "account")%6+1, book.AccountRenamed{To: rapid.StringMatching(`[a-z]{3}`).Draw(rt, "name")})
		case 11:
			if rapid.IntRange(0, 9).Draw(rt, "seldom") == 0 {
				ofAccount(account.Draw(rt, "account")%6+1, book.AccountDeleted{EarliestRow: new(day)})
			}
		}
	}
	return all
}

// books are a log of the ledger with the projection of it.
type books struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	build projections.Build
}

func openBooks(t *testing.T) *books {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return &books{pool: pool, store: store, build: projections.Build{
		Store: store, Config: pool.Config().ConnConfig.Copy(), Projection: ledger.Books, Log: log,
	}}
}

// places are how far the parts of a build are.
func (b *books) places(t *testing.T) []int64 {
	t.Helper()
	rows, _ := b.pool.Query(t.Context(), `select position from projection.partition order by nth`)
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return found
}

// leave begins a build in parts and leaves it with one of them behind the others.
func (b *books) leave(t *testing.T, parts, late int) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	build, left := b.build, make(chan error, 1)
	build.How = projections.How{Partitions: parts, Throttle: 40} // for some seconds
	go func() { left <- build.Run(ctx) }()
	reaches := func(what string, is func(places []int64) bool) {
		require.Eventually(t, func() bool { return is(b.places(t)) }, time.Minute, time.Millisecond, what)
	}
	reaches("it begins", func(places []int64) bool { return len(places) == parts && places[late] > 0 })
	hold, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer hold.Rollback(context.WithoutCancel(t.Context()))
	_, err = hold.Exec(t.Context(), `select from projection.partition where nth = $1 for update`, late)
	require.NoError(t, err)
	reaches("the others are ahead", func(places []int64) bool { return places[(late+1)%parts] > places[late] })
	end()
	require.ErrorIs(t, <-left, context.Canceled)
}

// tend lets another process go on until nothing is being built.
func (b *books) tend(t *testing.T) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- projections.NewRunner(b.store, b.pool, slog.New(slog.DiscardHandler)).Tend(ctx, ledger.Books)
	}()
	require.Eventually(t, func() bool {
		var building bool
		require.NoError(t, b.pool.QueryRow(t.Context(), `select exists (select from projection.generation where not live)`).Scan(&building))
		return !building
	}, time.Minute, 10*time.Millisecond)
	end()
	require.NoError(t, <-done)
}

// Whatever happens to the books, and wherever their parts were left: the tables are those that one part makes
// without an end, and those that a running projection makes. A lock that moves while the parts are at different
// places is judged by its position.
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
		require.NoError(t, projections.Throttle(t.Context(), b.pool, ledger.Books, 0))
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
