package ledgerproj_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
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
	"bahi/internal/test/draws"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/projectiontest"
	"bahi/projections"
	"bahi/projections/ledgerproj"
)

var (
	home  = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	away  = uuid.MustParse("22222222-2222-4222-8222-222222222222")
	day   = unit.Date(20000) // 2024-10-04
	clerk = event.Meta{Workspace: home, Actor: "user:7", Reason: "tab\there \\ and\nthere ₹"}
)

type happened = projectiontest.Event

func opened(id int64, name string) happened {
	return projectiontest.Happened(bank.Ledger.Accounts, text(id), book.AccountOpened{Name: name}, clerk)
}

func deleted(id int64, earliest *unit.Date) happened {
	return projectiontest.Happened(bank.Ledger.Accounts, text(id), book.AccountDeleted{EarliestRow: earliest}, clerk)
}

func added(row int64, date unit.Date, paise int64) happened {
	return projectiontest.Happened(bank.Ledger.Rows, text(row), book.RowAdded{Account: 1, Date: date, In: entries(paise)}, clerk)
}

func edited(row int64, e book.RowEdited) happened {
	return projectiontest.Happened(bank.Ledger.Rows, text(row), e, clerk)
}

func ended(row int64) happened {
	return projectiontest.Happened(bank.Ledger.Rows, text(row), book.RowDeleted{}, clerk)
}

func locked(through *unit.Date) happened {
	return projectiontest.Happened(bookslock.Kind, home.String(), bookslock.Moved{To: through}, clerk)
}

func of(row int64, e event.Event[book.Row]) happened {
	return projectiontest.Happened(bank.Ledger.Rows, text(row), e, clerk)
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func entries(paise int64) book.Side { return book.SideOf([]bank.Entry{{Amount: unit.Money(paise)}}) }

// Queries of the stored rows and totals.
const (
	rows = `select row_id, from_position, case when to_position < 1e18 then to_position end as to_position, account_id, date, in_cash,
		out_cash, revision, deleted from row_version order by row_id, from_position`
	totals = `select account_id, level, node, row_count, cash from total where level = 0 or level = 2 and row_count <> 0 order by 1, 2, 3`
)

func TestARowsVersionsFollowOneAnother(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Books,
		opened(1, "SBI"), added(7, day, 1050), edited(7, book.RowEdited{Out: new(entries(50))}),
		edited(7, book.RowEdited{Date: new(day + 300)}), added(8, day, 1), ended(7),
	)
	require.Equal(t, []string{
		"(7,2,3,1,2024-10-04,10.50,0.00,0,f)",
		"(7,3,4,1,2024-10-04,10.50,0.50,1,f)",
		"(7,4,6,1,2025-07-31,10.50,0.50,2,f)",
		"(7,6,,1,2025-07-31,10.50,0.50,3,t)",
		"(8,5,,1,2024-10-04,0.01,0.00,0,f)",
	}, tables.Rows(rows))
	require.Equal(t, []string{"(1,0,0,1,0.01)", "(1,2,20000,1,0.01)"}, tables.Rows(totals))
	require.Equal(t, []string{"(5)"}, tables.Rows(`select count(*) from row_version where reason = E'tab\there \\ and\nthere ₹'
		and actor = 'user:7'`))
	require.Equal(t, []string{"(1,2,1,10.50)", "(1,3,1,10.00)", "(1,4,1,10.00)", "(1,5,2,10.01)", "(1,6,1,0.01)"}, tables.Rows(`
		select distinct on (position) account_id, position, account_rows, account_cash from balance_history order by position, ordinal desc`))
}

func TestARowAndTheOneThatReversesItKnowOfEachOther(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Books, opened(1, "SBI"), added(7, day, 100), added(8, day, 100),
		of(20, book.RowAdded{Account: 1, Date: day + 5, Out: entries(100), Reverses: 7}), of(7, book.RowReversed{By: 20}))
	require.Equal(t, []string{
		"(7,2,5,2024-10-04,1.00,0.00,0,,)", "(7,5,,2024-10-04,1.00,0.00,1,,20)", "(8,3,,2024-10-04,1.00,0.00,0,,)",
		"(20,4,,2024-10-09,0.00,1.00,0,7,)",
	}, tables.Rows(`select row_id, from_position, case when to_position < 1e18 then to_position end as to_position, date, in_cash, out_cash,
		revision,
		reverses, reversed_by from row_version order by row_id, from_position`))
	require.Equal(t, []string{"(1,0,0,3,1.00)", "(1,2,20000,2,2.00)", "(1,2,20005,1,-1.00)"}, tables.Rows(totals))
	require.Equal(t, []string{"(5,3,1.00)"},
		tables.Rows(`select position, account_rows, account_cash from balance_history where position = 5`),
		"a list of an account's changes finds it by its posting")
}

func TestAVoidRowStaysAndCountsNothing(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Books, opened(1, "SBI"), added(7, day, 100), added(8, day, 1), of(7, book.RowVoided{}))
	require.Equal(t, []string{"(7,2,4,1,2024-10-04,1.00,0.00,0,f)", "(7,4,,1,2024-10-04,0.00,0.00,1,f)", "(8,3,,1,2024-10-04,0.01,0.00,0,f)"},
		tables.Rows(rows))
	require.Equal(t, []string{`(7,"[{""amount"":1}]")`}, tables.Rows(`select row_id, in_entries from row_version where void`))
	require.Equal(t, []string{"(1,0,0,2,0.01)", "(1,2,20000,2,0.01)"}, tables.Rows(totals))
}

func TestAnAccountEndsWithItsRows(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Books, opened(1, "SBI"), opened(2, "HDFC"), added(7, day, 100), deleted(1, &day))
	require.Equal(t, []string{"(1,1,1,4)", "(2,0,2,9223372036854775807)"},
		tables.Rows(`select id, revision, opened_position, deleted_position from account order by id`))
	require.Equal(t, []string{"(1)"}, tables.Rows(`select accounts from ledger_total`))
	require.Empty(t, tables.Rows(`select from ledger_day`))
}

func TestNamesAndLocksAreKept(t *testing.T) {
	t.Parallel()
	renamed := func(to string) happened {
		return projectiontest.Happened(bank.Ledger.Accounts, "1", book.AccountRenamed{To: to}, clerk)
	}
	tables := projectiontest.Run(t, ledgerproj.Books,
		opened(1, "a"), renamed("b"), opened(2, "x"), locked(&day), renamed("c"), locked(nil), locked(new(day+1)))
	require.Equal(t, []string{"(1,1,a)", "(1,2,b)", "(1,5,c)", "(2,3,x)"},
		tables.Rows(`select account_id, from_position, name from account_name order by 1, 2`))
	require.Equal(t, []string{"(1,c,2)", "(2,x,0)"}, tables.Rows(`select id, name, revision from account order by 1`))
	require.Equal(t, []string{"(2024-10-05,2)"}, tables.Rows(`select locked_through, revision from books_lock`))
	require.Equal(t, []string{"(1,0,0,0,0.00)", "(2,0,0,0,0.00)"}, tables.Rows(totals))
}

// A date gets many rows, keeps them for a while, and loses them again. Some rows move away and back.
func TestACrowdedDayHasTotalsOfItsParts(t *testing.T) {
	t.Parallel()
	events := []happened{opened(1, "SBI")}
	for row := range int64(100) {
		events = append(events, added(row*1000+1, day, 100))
	}
	for row := range int64(10) {
		events = append(events, edited(row*1000+1, book.RowEdited{In: new(entries(7))}))
	}
	full := projectiontest.Run(t, ledgerproj.Books, events...)
	require.Equal(t, []string{"(4,100,90.70)"}, full.Rows(`
		select level, sum(row_count), sum(cash) from total where level > 2 group by level order by level`))

	for row := range int64(90) {
		if row%10 != 1 {
			events = append(events, ended(row*1000+1))
			continue
		}
		events = append(events, edited(row*1000+1, book.RowEdited{Date: new(day + 1)}))
	}
	events = append(events, edited(1001, book.RowEdited{Date: &day}))
	emptied := projectiontest.Run(t, ledgerproj.Books, events...)
	require.Equal(t, []string{"(2,20000,11)", "(2,20001,8)"},
		emptied.Rows(`select level, node, row_count from total where level >= 2 order by 1, 2`))
}

func TestMoneyIsExactInTheTables(t *testing.T) {
	t.Parallel()
	const most = 999_999_999_999_999 // 13 digits before the point
	side := book.SideOf(slices.Repeat([]bank.Entry{{Amount: most}}, 500))
	tables := projectiontest.Run(t, ledgerproj.Books, opened(1, "SBI"),
		projectiontest.Happened(bank.Ledger.Rows, "7", book.RowAdded{Account: 1, Date: day, In: side}, clerk),
		projectiontest.Happened(bank.Ledger.Rows, "8", book.RowAdded{Account: 1, Date: day, In: side, Out: entries(1)}, clerk),
	)
	require.Equal(t, []string{"(4999999999999995.00,9999999999999989.99)"}, tables.Rows(`
		select r.in_cash, p.account_cash from row_version r, balance_history p where r.row_id = 7 and p.position = 3`))
}

func TestTheDoctorFindsADifferenceInEachTable(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Books,
		opened(1, "SBI"), added(7, day, 100), added(8, day, 100), added(9, day, 1), locked(new(day-1)), opened(2, "HDFC"))
	for _, table := range []string{
		"account", "account_name", "books_lock", "row_version", "total", "balance_history", "ledger_total", "ledger_day",
	} {
		tables.Exec(fmt.Sprintf(`create table public.kept_%[1]s as select * from %[1]s`, table))
		for what, change := range map[string]string{
			"lost":    fmt.Sprintf(`delete from %[1]s where ctid = (select min(ctid) from %[1]s)`, table),
			"changed": changes[table],
		} {
			tables.Exec(change)
			found := tables.Examine()
			require.Len(t, found, 1, "%s in %s", what, table)
			require.Equal(t, table, found[0].Table)
			require.NotEmpty(t, found[0].Rows)
			tables.Exec(fmt.Sprintf(`truncate %[1]s; insert into %[1]s select * from public.kept_%[1]s`, table))
		}
	}
	require.Empty(t, tables.Examine())
	tables.Exec(`create table extra (n int)`)
	require.Equal(t, "extra", tables.Examine()[0].Table)
	tables.Exec(`drop table extra; alter table account_name rename to gone`)
	found := tables.Examine()
	require.Len(t, found, 2)
	require.Equal(t, []string{"account_name", "log", "gone", "live tables"},
		[]string{found[0].Table, found[0].OnlyIn, found[1].Table, found[1].OnlyIn})
}

// changes has a small change of each table that a comparison must find.
var changes = map[string]string{
	"account":         `update account set name = 'sBI' where id = 1`,
	"account_name":    `update account_name set from_position = from_position + 1 where account_id = 1`,
	"books_lock":      `update books_lock set locked_through = locked_through + 1`,
	"ledger_total":    `update ledger_total set accounts = accounts + 1`,
	"ledger_day":      `update ledger_day set row_count = row_count + 1 where date = (select min(date) from ledger_day)`,
	"row_version":     `update row_version set recorded_at = recorded_at + interval '1 microsecond' where row_id = 7`,
	"total":           `update total set cash = cash + 0.01 where level = 0 and account_id = 1`,
	"balance_history": `update balance_history set day_rows = day_rows + 1 where position = 2`,
}

// unlikeTheRows finds parts whose totals are not those of their rows.
const unlikeTheRows = `
	select * from (
		select account_id, level, node, row_count, cash, lead(node, 1, (node >> 40) + 1 << 40) over (partition by account_id, level, node >> 40
			order by node) as next
		from total where level > 2
	) t where (row_count, cash) <> (
		select count(*), coalesce(sum(in_cash - out_cash), 0) from row_version v
		where v.account_id = t.account_id and to_position = 9223372036854775807 and not deleted
			and (v.date - date '1970-01-01')::bigint << 40 | row_id >= t.node and (v.date - date '1970-01-01')::bigint << 40 | row_id < t.next)`

func TestADayOfVeryManyRowsHasPartsOfBothSizes(t *testing.T) {
	t.Parallel()
	const bulk, bulks = 700, 6
	events := []happened{opened(1, "SBI")}
	for n := range int64(bulks) {
		for i := range int64(bulk) {
			events = append(events, added(1+(bulks-n)*bulk*2+i, day, 100))
		}
	}
	first := int64(1)
	for ; !ledgerproj.Begins(first, 1<<12) || (first-1)%(2*bulk) < bulk; first++ { // between the bulks' ids
	}
	events = append(events, added(first, day, 100))
	for row := range int64(100) {
		events = append(events, added(100_000_000+row, day, 3))
	}
	tables := projectiontest.Run(t, ledgerproj.Books, events...)
	require.Equal(t, []string{"(3,4301)", "(4,4301)"},
		tables.Rows(`select level, sum(row_count) from total where level > 2 group by level order by level`))
	require.Equal(t, []string{"(t)"}, tables.Rows(`select count(*) > 1 from total where level = 3`))
	require.Equal(t, []string{"(t)"}, tables.Rows(`select count(*) > 100 from total where level = 4`))
	require.Empty(t, tables.Rows(unlikeTheRows))

	for _, size := range []int64{1 << 5, 1 << 12} {
		mine := []string{}
		for n := int64(1); n <= 30_000; n++ {
			if ledgerproj.Begins(n*n*1000, size) {
				mine = append(mine, fmt.Sprintf("(%d)", n))
			}
		}
		require.InDelta(t, 30_000/size, len(mine), 100)
		require.Equal(t, mine, tables.Rows(fmt.Sprintf(`select n from generate_series(1, 30000) n where begins(n::bigint*n*1000, %d) order by n`,
			size)))
	}
}

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

// TestMain reduces the number of rapid's runs, because each run creates a database.
func TestMain(m *testing.M) {
	draws.Default(4)
	os.Exit(m.Run())
}
