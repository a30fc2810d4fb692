package ledgerview_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
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

// line is a row in the model.
type line struct {
	id   int64
	date unit.Date
	sum  unit.Money
	gone bool
	void bool
	back int64 // the row that this one reverses
	by   int64 // the row that reverses this one
}

// free reports whether the row may be edited, deleted and voided.
func (l line) free() bool { return !l.gone && !l.void && l.back == 0 && l.by == 0 }

// reversible reports whether the row may be reversed.
func (l line) reversible() bool { return !l.gone && !l.void && l.by == 0 }

// ledgerModel returns the rows and balances that a view should return.
func ledgerModel(lines []line, from, to unit.Date) (shown []line, balances []unit.Money) {
	kept := slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.gone || l.date > to })
	slices.SortFunc(kept, func(a, b line) int {
		if a.date != b.date {
			return int(a.date - b.date)
		}
		return int(a.id - b.id)
	})
	var balance unit.Money
	for _, l := range kept {
		balance += l.sum
		if l.date >= from {
			shown, balances = append(shown, l), append(balances, balance)
		}
	}
	return shown, balances
}

func TestEveryPageAtEveryPositionEqualsAReplay(t *testing.T) {
	t.Parallel()
	o := open(t)
	rapid.Check(t, func(t *rapid.T) {
		workspace := uuid.New()
		ctx, req := o.ctx, as(workspace)
		a, err := ledgercmd.OpenAccount(ctx, req, o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
		require.NoError(t, err)
		account := number(t, a.ID)
		var (
			lines  []line
			states = map[event.Position][]line{a.Position: nil}
			known  = []event.Position{a.Position}
			span   = rapid.SampledFrom([]int{1, 5, 900}).Draw(t, "days")
		)
		day := rapid.Custom(func(t *rapid.T) unit.Date { return today - unit.Date(rapid.IntRange(0, span-1).Draw(t, "age")) })
		entry := rapid.Custom(func(t *rapid.T) []bank.Entry {
			return []bank.Entry{{Description: "x", Amount: unit.Money(rapid.IntRange(1, 999999).Draw(t, "amount"))}}
		})
		done := func(p event.Position) {
			states[p] = slices.Clone(lines)
			known = append(known, p)
		}
		add := func(t *rapid.T) {
			date, in := day.Draw(t, "date"), entry.Draw(t, "in")
			c := book.RowInput{Date: &date, In: book.Entries(in)}
			sum := in[0].Amount
			if rapid.Bool().Draw(t, "out too") {
				out := entry.Draw(t, "out")
				c.Out = book.Entries(out)
				sum -= out[0].Amount
			}
			out, err := ledgercmd.AddRow(ctx, req, o.books, bank.Ledger, account, c)
			require.NoError(t, err)
			lines = append(lines, line{id: number(t, out.ID), date: date, sum: sum})
			done(out.Position)
		}
		pick := func(t *rapid.T, which func(line) bool) int {
			var found []int
			for i, l := range lines {
				if which(l) {
					found = append(found, i)
				}
			}
			if len(found) == 0 {
				add(t)
				return len(lines) - 1
			}
			return rapid.SampledFrom(found).Draw(t, "row")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": add,
			"bulk": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 3, 300}).Draw(t, "rows")
				var (
					rows []book.RowInput
					sums []unit.Money
				)
				date := day.Draw(t, "date")
				for range n {
					e := entry.Draw(t, "out")
					rows, sums = append(rows, book.RowInput{Date: &date, Out: book.Entries(e)}), append(sums, -e[0].Amount)
				}
				out, err := ledgercmd.PostRows(ctx, req, o.books, bank.Ledger, account, rows)
				require.NoError(t, err)
				for i, sum := range sums {
					lines = append(lines, line{id: out.First + int64(i), date: date, sum: sum})
				}
				done(out.Position)
			},
			"edit": func(t *rapid.T) {
				i := pick(t, line.free)
				date, in := day.Draw(t, "date"), entry.Draw(t, "in")
				c := book.RowInput{Date: &date, In: book.Entries(in), Out: book.Entries([]bank.Entry{})}
				out, err := ledgercmd.EditRow(ctx, req, o.books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: lines[i].id}, c)
				require.NoError(t, err)
				lines[i].date, lines[i].sum = date, in[0].Amount
				done(out.Position)
			},
			"delete": func(t *rapid.T) {
				i := pick(t, line.free)
				out, err := ledgercmd.DeleteRow(ctx, req, o.books, bank.Ledger, account, lines[i].id)
				require.NoError(t, err)
				lines[i].gone = true
				done(out.Position)
			},
			"void": func(t *rapid.T) {
				i := pick(t, line.free)
				out, err := ledgercmd.VoidRow(ctx, req, o.books, bank.Ledger, account, lines[i].id)
				require.NoError(t, err)
				lines[i].void, lines[i].sum = true, 0
				done(out.Position)
			},
			"reverse": func(t *rapid.T) {
				some := map[int]bool{}
				for range rapid.SampledFrom([]int{1, 1, 2, 9}).Draw(t, "rows") {
					some[pick(t, line.reversible)] = true
				}
				c := ledgercmd.Reversal{}
				latest := unit.Date(-1 << 20)
				which := slices.Sorted(maps.Keys(some))
				for _, i := range which {
					c.Rows, latest = append(c.Rows, lines[i].id), max(latest, lines[i].date)
				}
				date := max(today, latest)
				if rapid.Bool().Draw(t, "dated") {
					date = latest + unit.Date(rapid.IntRange(0, int(today-latest)).Draw(t, "later"))
					c.Date = &date
				}
				out, err := ledgercmd.ReverseRows(ctx, req, o.books, bank.Ledger, account, c)
				require.NoError(t, err)
				for k, i := range which {
					id := out.First + int64(k)
					lines[i].by = id
					lines = append(lines, line{id: id, date: date, sum: -lines[i].sum, back: lines[i].id})
				}
				done(out.Position)
			},
			"sum up": func(t *rapid.T) {
				day, latest := day.Draw(t, "day"), ledgerview.As{KnownAt: &known[len(known)-1]}
				sums, err := o.views.Summary(ctx, nil, workspace, day, 3, ledgerview.As{})
				require.NoError(t, err)
				same, err := o.views.Summary(ctx, nil, workspace, day, 3, latest)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(same), fmt.Sprint(sums))
				cash, err := o.views.CashBefore(ctx, nil, workspace, bank.Ledger, day, ledgerview.As{})
				require.NoError(t, err)
				was, err := o.views.CashBefore(ctx, nil, workspace, bank.Ledger, day, latest)
				require.NoError(t, err)
				require.True(t, was.Equal(cash.Decimal), "%s, not %s", cash, was)
			},
			"close": func(t *rapid.T) {
				other, err := ledgercmd.OpenAccount(ctx, req, o.books, bank.Ledger, book.OpenAccount{Name: "HDFC"})
				require.NoError(t, err)
				date := day.Draw(t, "date")
				c := book.RowInput{Date: &date, Out: book.Entries(entry.Draw(t, "out"))}
				_, err = ledgercmd.AddRow(ctx, req, o.books, bank.Ledger, number(t, other.ID), c)
				require.NoError(t, err)
				out, err := ledgercmd.DeleteAccount(ctx, req, o.books, bank.Ledger, number(t, other.ID))
				require.NoError(t, err)
				done(out.Position)
			},
			"read": func(t *rapid.T) {
				sel := ledgerview.Selection{Page: 1}
				from, to := unit.Date(-1<<20), unit.Date(1<<20)
				want := lines
				if rapid.Bool().Draw(t, "from") {
					from = day.Draw(t, "from")
					sel.From = &from
				}
				if rapid.Bool().Draw(t, "to") {
					to = day.Draw(t, "to")
					sel.To = &to
				}
				if rapid.Bool().Draw(t, "as of") {
					of := day.Draw(t, "as of")
					to, sel.Of = min(to, of), &of
				}
				if rapid.Bool().Draw(t, "known at") {
					at := rapid.SampledFrom(known).Draw(t, "known at")
					want, sel.KnownAt = states[at], &at
				}
				shown, balances := ledgerModel(want, from, to)
				if rapid.Bool().Draw(t, "paged") {
					sel.PageSize = rapid.SampledFrom([]int{1, 2, 50, 1000}).Draw(t, "page size")
					sel.Page = rapid.IntRange(1, len(shown)/sel.PageSize+2).Draw(t, "page")
				}
				rows, total, err := o.views.Rows(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, sel)
				require.NoError(t, err)
				require.EqualValues(t, len(shown), total)
				first, last := 0, len(shown)
				if sel.PageSize > 0 {
					first = min((sel.Page-1)*sel.PageSize, len(shown))
					last = min(first+sel.PageSize, len(shown))
				}
				require.Len(t, rows, last-first)
				for i, r := range rows {
					l := shown[first+i]
					require.Equal(t, []any{l.id, l.date, l.void, l.back, l.by}, []any{r.ID, r.Date, r.Void, r.Reverses, r.ReversedBy})
					require.True(t, balances[first+i].Decimal().Equal(r.Cash.Decimal), "row %d: %s, not %s", r.ID, r.Cash, balances[first+i])
				}
				if len(rows) > 0 {
					r := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")]
					one, err := o.views.Row(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, r.ID, sel.As)
					require.NoError(t, err)
					require.Equal(t, r.Cash.String(), one.Cash.String())
					require.Equal(t, r.Row, one.Row)
				}
				extent, err := o.views.Extent(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, sel)
				require.NoError(t, err)
				var (
					greatest int64
					before   unit.Money
				)
				for i, l := range shown {
					if i == 0 {
						before = balances[0] - l.sum
					}
					greatest = max(greatest, l.id)
					after := (balances[i] - before).Decimal()
					require.True(t, extent.Lowest.Cash.LessThanOrEqual(after) && extent.Highest.Cash.GreaterThanOrEqual(after), "%s of row %d, not in %v",
						after, l.id, extent)
				}
				require.Equal(t, greatest, extent.Last)
				if n := len(shown); n > 0 {
					require.True(t, extent.CashIn.Sub(extent.CashOut.Decimal).Equal((balances[n-1] - before).Decimal()), "%v", extent)
				}
				if sel.Of != nil {
					_, balances = ledgerModel(want, -1<<20, *sel.Of)
				} else {
					_, balances = ledgerModel(want, -1<<20, 1<<20)
				}
				acc, err := o.views.Account(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, sel.As)
				require.NoError(t, err)
				var balance unit.Money
				if len(balances) > 0 {
					balance = balances[len(balances)-1]
				}
				require.True(t, balance.Decimal().Equal(acc.Cash.Decimal), "%s, not %s", acc.Cash, balance)
			},
		})
	})
	build := projections.Build{Store: o.store, Config: o.pool.Config().ConnConfig.Copy(), Projection: ledgerproj.Books, Log: o.log}
	for parts, size := range []int{1, 37, 1 << 30} {
		build.How.Partitions = 1 + parts
		differences, err := build.Fold(o.ctx, size, parts)
		require.NoError(t, err)
		require.Empty(t, differences, "folded in batches of %d, and built in %d parts", size, 1+parts)
	}
	found, err := build.Examine(o.ctx)
	require.NoError(t, err)
	require.Empty(t, found.Differences)
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
