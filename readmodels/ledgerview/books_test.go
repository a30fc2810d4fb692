package ledgerview_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/eventstore/postgres"
	"bahi/internal/draws"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// noKeys serves requests without an Idempotency-Key.
type noKeys struct{}

func (noKeys) HMAC(context.Context, string, ...[]byte) ([]byte, error) {
	return nil, errors.New("no Idempotency-Key expected")
}

func (noKeys) Seal(context.Context, []*event.Sealed) error         { return nil }
func (noKeys) OpenPersonal(context.Context, []*event.Sealed) error { return nil }

// office is the write side and the read side of the books, on a log of its own.
type office struct {
	ctx   context.Context
	store *postgres.Store
	pool  *pgxpool.Pool
	books *ledgercmd.Books
	views *ledgerview.Views
	log   *slog.Logger
}

var today = unit.DateOf(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC))

func open(t *testing.T) *office {
	t.Helper()
	url := pgtest.Template(t, "migrated", migrations.Up)
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	pool, err := pgxpool.New(ctx, url)
	require.NoError(t, err)
	store, err := postgres.Open(ctx, pool, log)
	require.NoError(t, err)
	runner := projections.NewRunner(store, pool, log)
	h := commands.New(store, noKeys{}, time.Now)
	v := &ledgerview.Views{Reader: readmodels.NewReader(pool, map[string]int{"books": ledgerproj.Books.Version}, runner.Follow)}
	v.Reader.Wait = 30 * time.Second
	o := &office{
		ctx: ctx, store: store, pool: pool, views: v, log: log,
		books: &ledgercmd.Books{Commands: h, Reads: v, Today: func() unit.Date { return today }, Log: log},
	}
	stopped := make(chan error, 2)
	go func() { stopped <- h.Run(ctx) }()
	go func() { stopped <- runner.Run(ctx, ledgerproj.Books) }()
	t.Cleanup(func() {
		cancel()
		<-stopped
		<-stopped
		store.Close()
		pool.Close()
	})
	require.Eventually(t, func() bool { return runner.Statuses()["books"].Ready }, time.Minute, 5*time.Millisecond)
	return o
}

func as(workspace uuid.UUID) commands.Request {
	return commands.Request{Actor: actor.Actor{Type: "system", ID: "test"}, Workspace: workspace, Reason: "because"}
}

// The bounds are those of a PDF's columns. The balances themselves are compared with a replay over HTTP.
func TestExtentBoundsTheBalancesOfItsRows(t *testing.T) {
	t.Parallel()
	o := open(t)
	rapid.Check(t, func(t *rapid.T) {
		workspace := uuid.New()
		a, err := ledgercmd.OpenAccount(o.ctx, as(workspace), o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
		require.NoError(t, err)
		key := ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: number(t, a.ID)}
		span := rapid.SampledFrom([]int{1, 5, 900}).Draw(t, "days")
		day := rapid.Custom(func(t *rapid.T) unit.Date { return today - unit.Date(rapid.IntRange(0, span-1).Draw(t, "age")) })
		known := []event.Position{a.Position}
		for range rapid.IntRange(1, 4).Draw(t, "posts") {
			rows := make([]book.RowInput, rapid.SampledFrom([]int{1, 3, 300}).Draw(t, "rows"))
			for i := range rows {
				entry := book.Entries([]bank.Entry{{Amount: unit.Money(rapid.IntRange(1, 999999).Draw(t, "amount"))}})
				if rows[i].Date = new(day.Draw(t, "date")); i%3 == 0 {
					rows[i].In = entry
				} else {
					rows[i].Out = entry
				}
			}
			out, err := ledgercmd.PostRows(o.ctx, as(workspace), o.books, bank.Ledger, key.ID, rows)
			require.NoError(t, err)
			known = append(known, out.Position)
		}
		sel := ledgerview.Selection{Page: 1, From: new(day.Draw(t, "from")), To: new(day.Draw(t, "to"))}
		if rapid.Bool().Draw(t, "known at") {
			sel.KnownAt = new(rapid.SampledFrom(known).Draw(t, "known at"))
		}
		rows, _, err := o.views.Rows(o.ctx, nil, key, sel)
		require.NoError(t, err)
		extent, err := o.views.Extent(o.ctx, nil, key, sel)
		require.NoError(t, err)
		before, err := o.views.Account(o.ctx, nil, key, ledgerview.As{KnownAt: sel.KnownAt, Of: new(*sel.From - 1)})
		require.NoError(t, err)
		moved, last := before.Cash.Sub(before.Cash.Decimal), int64(0)
		for _, r := range rows {
			moved = r.Cash.Sub(before.Cash.Decimal)
			require.True(t, extent.Lowest.Cash.LessThanOrEqual(moved) && extent.Highest.Cash.GreaterThanOrEqual(moved), "row %d: %v", r.ID, extent)
			last = max(last, r.ID)
		}
		require.Equal(t, last, extent.Last)
		require.True(t, extent.CashIn.Sub(extent.CashOut.Decimal).Equal(moved), "%v", extent)
	})
}

func number(t require.TestingT, id string) (n int64) {
	for _, c := range id {
		n = n*10 + int64(c-'0')
	}
	require.NotZero(t, n)
	return n
}

// TestMain lets rapid make fewer and longer runs: each has a ledger of its own.
func TestMain(m *testing.M) {
	draws.Default(20)
	os.Exit(m.Run())
}
