package ledgerview_test

import (
	"context"
	"errors"
	"fmt"
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
	"bahi/domain/ledger/karigar"
	"bahi/domain/unit"
	"bahi/eventstore/postgres"
	"bahi/internal/test/draws"
	"bahi/internal/test/logtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// noKeys serves requests without an Idempotency-Key.
type noKeys struct{}

func (noKeys) ForgetNamed() {}

func (noKeys) HMAC(context.Context, string, ...[]byte) ([]byte, error) {
	return nil, errors.New("no Idempotency-Key expected")
}

func (noKeys) Seal(context.Context, []*event.Sealed) error         { return nil }
func (noKeys) OpenPersonal(context.Context, []*event.Sealed) error { return nil }

// fixture writes and reads the books of its own log.
type fixture struct {
	ctx   context.Context
	store *postgres.Store
	pool  *pgxpool.Pool
	books *ledgercmd.Books
	views *ledgerview.Views
	log   *slog.Logger
}

var today = unit.DateOf(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC))

func open(t *testing.T) *fixture {
	t.Helper()
	pool, store := logtest.Open(t)
	log := slog.New(slog.DiscardHandler)
	runner := projections.NewRunner(store, pool, log)
	h := commands.New(store, noKeys{}, time.Now)
	reader := readmodels.NewReader(logtest.Snapshots(t, pool), map[string]int{"books": ledgerproj.Books.Version}, runner.Follow)
	reader.Wait = 30 * time.Second
	v := &ledgerview.Views{Reader: reader}
	o := &fixture{
		ctx: t.Context(), store: store, pool: pool, views: v, log: log,
		books: &ledgercmd.Books{Commands: h, Reads: v, Today: func() unit.Date { return today }, Log: log},
	}
	worktest.Background(t, h.Run)
	worktest.Background(t, func(ctx context.Context) error { return runner.Run(ctx, ledgerproj.Books) })
	require.Eventually(t, func() bool { return runner.Statuses()["books"].Ready }, time.Minute, 5*time.Millisecond)
	return o
}

func (o *fixture) rows(of ledgerview.AccountKey, sel ledgerview.Selection) (rows []ledgerview.Row, total int64, err error) {
	total, err = o.views.EachRow(o.ctx, nil, of, sel, func(r ledgerview.Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows, total, err
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
		rows, _, err := o.rows(key, sel)
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

func TestPagesOfACrowdedDayHaveTheirBalances(t *testing.T) {
	t.Parallel()
	const (
		bulks, bulk = 17, 1000
		all         = bulks * bulk
		size        = 7
	)
	o := open(t)
	workspace := uuid.New()
	ctx, req := o.ctx, as(workspace)
	opened, err := ledgercmd.OpenAccount(ctx, req, o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
	require.NoError(t, err)
	account := number(t, opened.ID)
	first := int64(0)
	for n := range bulks {
		var rows []book.RowInput
		for i := range bulk {
			rows = append(rows, book.RowInput{Date: new(today), In: book.Entries([]bank.Entry{{Amount: unit.Money(1 + n*bulk + i)}})})
		}
		out, err := ledgercmd.PostRows(ctx, req, o.books, bank.Ledger, account, rows)
		require.NoError(t, err)
		if n == 0 {
			first = out.First
		}
	}
	balance := func(rows int) unit.Money { return unit.Money(rows * (rows + 1) / 2) }
	for _, page := range []int{1, 2, 100, 1200, 2341, all/size + 1} {
		rows, total, err := o.rows(ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account},
			ledgerview.Selection{Page: page, PageSize: size})
		require.NoError(t, err)
		require.EqualValues(t, all, total)
		require.NotEmpty(t, rows)
		for i, r := range rows {
			want := balance((page-1)*size + i + 1)
			require.True(t, want.Decimal().Equal(r.Cash.Decimal), "page %d, row %d: %s, not %s", page, i, r.Cash, want)
		}
		one, err := o.views.Row(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, rows[0].ID,
			ledgerview.As{})
		require.NoError(t, err)
		require.Equal(t, rows[0].Cash.String(), one.Cash.String())
	}
	there, err := o.views.BalancesAt(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, first+all, today)
	require.NoError(t, err)
	require.True(t, balance(all).Decimal().Equal(there[today].Cash.Decimal))
}

// A statement from a day on begins with the balance before the day, and searches no later total.
func TestRowsFromADayAreNotSearched(t *testing.T) {
	t.Parallel()
	o, workspace := open(t), uuid.New()
	opened, err := ledgercmd.OpenAccount(o.ctx, as(workspace), o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
	require.NoError(t, err)
	key := ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: number(t, opened.ID)}
	var rows []book.RowInput
	for i := range 6 {
		rows = append(rows, book.RowInput{Date: new(today - 1 + unit.Date(i%2)), In: book.Entries([]bank.Entry{{Amount: 100}})})
	}
	_, err = ledgercmd.PostRows(o.ctx, as(workspace), o.books, bank.Ledger, key.ID, rows)
	require.NoError(t, err)
	position, err := o.store.Head(o.ctx)
	require.NoError(t, err)
	read := func(known *event.Position) []ledgerview.Row {
		rows, total, err := o.rows(key, ledgerview.Selection{As: ledgerview.As{KnownAt: known}, From: new(today), Page: 1,
			PageSize: 2})
		require.NoError(t, err)
		require.EqualValues(t, 3, total)
		require.Len(t, rows, 2)
		return rows
	}
	now, then := read(nil), read(&position)
	require.Equal(t, "4.00", now[0].Cash.StringFixed(2))
	require.Equal(t, now, then)
	moveTotal := func(day unit.Date, from, to int) {
		_, err := o.pool.Exec(o.ctx, `update `+projections.SchemaName("books", 1)+`.total set level = $2 where node = $1 and level = $3`,
			int64(day), to, from)
		require.NoError(t, err)
	}
	moveTotal(today, 2, 9)
	require.Equal(t, now, read(nil), "the totals before the day are enough")
	moveTotal(today, 9, 2)
	moveTotal(today-1, 2, 9)
	require.Equal(t, then, read(&position), "the totals from the day on are enough")
}

func TestSidesAreSummedUpBeforeADay(t *testing.T) {
	t.Parallel()
	o := open(t)
	workspace := uuid.New()
	ctx, req := o.ctx, as(workspace)
	a, err := ledgercmd.OpenAccount(ctx, req, o.books, karigar.Ledger, book.OpenAccount{Name: "Imran"})
	require.NoError(t, err)
	key := ledgerview.AccountKey{Workspace: workspace, Ledger: karigar.Ledger, ID: number(t, a.ID)}
	before := func(day unit.Date, known event.Position) string {
		s, err := o.views.SidesBefore(ctx, nil, key, day, known)
		require.NoError(t, err)
		return fmt.Sprintf("in %s, %s g; out %s, %s g", s.In.Cash, s.In.Fine, s.Out.Cash, s.Out.Fine)
	}
	require.Equal(t, "in 0, 0 g; out 0, 0 g", before(today, a.Position))
	add := func(day unit.Date, other unit.Money, fine unit.Grams) int64 {
		out, err := ledgercmd.AddRow(ctx, req, o.books, karigar.Ledger, key.ID, book.RowInput{
			Date: &day, In: book.Entries([]karigar.In{{Other: &other}}), Out: book.Entries([]karigar.Out{{FineWeight: &fine}}),
		})
		require.NoError(t, err)
		return number(t, out.ID)
	}
	add(today-200, 100_00, 9_000)
	add(today-130, 200_00, 10_000)
	add(today-5, 40_00, 500_000)
	add(today, 7_00, 1_000)
	voided, deleted := add(today-150, 1, 1), add(today-4, 2, 2)
	void, err := ledgercmd.VoidRow(ctx, req, o.books, karigar.Ledger, key.ID, voided)
	require.NoError(t, err)
	last, err := ledgercmd.ChangeRow(ctx, req, o.books, karigar.Ledger, deleted, book.DeleteRow{Ledger: karigar.Ledger, Account: key.ID})
	require.NoError(t, err)

	require.Equal(t, "in 340, 0 g; out 0, 519 g", before(today, last.Position))
	require.Equal(t, "in 347, 0 g; out 0, 520 g", before(today+1, last.Position))
	require.Equal(t, "in 347, 0 g; out 0, 520 g", before(today+500, last.Position))
	require.Equal(t, "in 300, 0 g; out 0, 19 g", before(today-5, last.Position))
	require.Equal(t, "in 100, 0 g; out 0, 9 g", before(today-130, last.Position))
	require.Equal(t, "in 340.02, 0 g; out 0, 519.002 g", before(today, void.Position), "with the row that was deleted later")
	require.Equal(t, "in 340.03, 0 g; out 0, 519.003 g", before(today, void.Position-1), "with the row that was voided later")
	key.Workspace = uuid.New()
	_, err = o.views.SidesBefore(ctx, nil, key, today, last.Position)
	require.ErrorIs(t, err, karigar.Ledger.NoAccount)
}

func TestAnEntryIsReadInWords(t *testing.T) {
	t.Parallel()
	for entry, words := range map[string]string{
		`{"amount":12.5}`: "",
		`{"item_name":"पायल","weight":100,"touch":92,"computed":["fine_weight"]}`:    "पायल, weight 100, touch 92",
		`{"weight":1,"description":"a_b, \"c\""}`:                                    `a_b, "c", weight 1`,
		`{"kind":"rate_cut","fine_weight":10,"rate":172500.5,"rate_unit":"per_10g"}`: "rate cut, fine weight 10, rate 1,72,500.5, per 10g",
		`{"description":"bill 1250000","making_charge":1250}`:                        "bill 1250000, making charge 1,250",
		`{"kind":"rate_cut","amount":70000,"counter":true}`:                          "rate cut, counter",
		`{"kind":"metal","item_name":"bar_kind","fine_weight":0.001,"amount":70000}`: "bar_kind, metal, fine weight 0.001",
	} {
		require.Equal(t, words, ledgerview.Words([]byte(entry)))
	}
}
