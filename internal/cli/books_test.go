package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/eventstore/archive"
	"bahi/internal/cli/bookscli"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// corrected is an account with rows of three financial years and each kind of correction.
type corrected struct {
	account, gone, dealer int64
	rows                  []int64
}

// correct posts and corrects rows of a new account.
func correct(t *testing.T, c *apitest.Client) (k corrected) {
	t.Helper()
	k.account, k.gone = apptest.Open(c, "HDFC"), apptest.Open(c, "Closed")
	for _, body := range []string{
		apptest.Deposit("2024-03-31", "1000.05"), apptest.Withdrawal("2024-04-01", "400"), apptest.Deposit("2025-03-31", "12.5"),
		apptest.Deposit("2025-04-01", "7"), apptest.Deposit("2025-04-01", "8"), apptest.Withdrawal("2025-04-01", "3.33"),
		apptest.Deposit("2025-04-02", "90"), apptest.Deposit("2025-04-03", "5"), apptest.Deposit("2025-05-01", "44"),
		apptest.Deposit("2025-06-01", "66"),
	} {
		k.rows = append(k.rows, apptest.Post(c, k.account, body).ID)
	}
	apptest.Post(c, k.gone, apptest.Deposit("2025-04-01", "1"))
	edit := func(row int, body string) {
		c.PUT(apptest.Ledger(k.account), fmt.Sprintf(`{"id":%d,%s}`, k.rows[row], body)).Status(200)
	}
	edit(3, `"in_entries":`+apptest.Entry("70")+`,"out_entries":`+apptest.Entry("0.07"))
	edit(6, `"date":"2025-03-30"`)
	edit(5, `"out_entries":[{"amount":3.34,"description":"चाय \u0026 <tea>"}]`)
	c.POST(apptest.At(k.account, k.rows[4], "/void"), `{"reason":"bounced"}`).Status(200)
	c.With("Bahi-Reason", "typed twice").DELETE(apptest.At(k.account, k.rows[7])).Status(204)
	var by, again apptest.BankRow
	c.POST(apptest.At(k.account, k.rows[8], "/reverse"), `{"reason":"wrong account","date":"2025-05-02"}`).Status(201).JSON(&by)
	c.POST(apptest.At(k.account, by.ID, "/reverse"), `{"reason":"it was right","date":"2025-05-03"}`).Status(201).JSON(&again)
	k.rows = append(k.rows, by.ID, again.ID)
	c.DELETE(fmt.Sprintf("/bank-account/%d", k.gone)).Status(204)
	c.POST("/books/transfers", fmt.Sprintf(`{"from":%d,"to":%d,"amount":50,"date":"2025-07-01"}`, k.account,
		apptest.Open(c, "Till"))).Status(201)
	c.POST("/books/periods", `{"through":"2024-04-30"}`).Status(201)
	k.dealer = apptest.IdOf(t, []byte(c.POST("/bullion", `{"name":"Zaveri","metal":"gold"}`).Status(201).Text))
	for _, entry := range []string{`{"fine_weight":10}`, `{"fine_weight":20,"metal":"platinum"}`} {
		c.POST(fmt.Sprintf("/bullion-ledger/%d", k.dealer), `{"date":"2025-07-02","in_entries":[`+entry+`]}`).Status(201)
	}
	return k
}

// replayed replays a server's log from an archive up to a position; 0: all of it.
func replayed(t *testing.T, o *apptest.Server, until event.Position) *replay.Books {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	apptest.Done(t, o.Database, "events", "export", dir)
	a, err := archive.Open(dir)
	require.NoError(t, err)
	b := replay.New(until)
	for e, err := range a.Events(t.Context()) {
		require.NoError(t, err)
		if !b.Add(e) {
			break
		}
	}
	require.Empty(t, b.Findings())
	return b
}

func textOf(t *testing.T, text string) *replay.Text {
	t.Helper()
	read, err := replay.ReadText(strings.NewReader(text))
	require.NoError(t, err)
	return read
}

func TestTheTablesHaveTheBooksOfTheLog(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	filled(t, o, 7, "demo@example.com")
	before := event.Position(o.Head())
	k := correct(t, o.Clerk(apptest.Home))
	other := o.Clerk(apptest.OtherWorkspace)
	correct(t, other)
	other.POST("/books/periods", `{"through":"2024-05-31"}`).Status(201)
	o.Operator().With("Bahi-Workspace", apptest.OtherWorkspace).POST("/books/periods/2024-05-31/reopen", `{"reason":"late bill"}`).Status(200)
	other.PUT("/books/metal", `{"metal":"palladium"}`).Status(200)
	all := replayed(t, o, 0)
	now, _ := apptest.Done(t, o.Database, "books", "export")
	difference, err := all.Compare(textOf(t, now))
	require.NoError(t, err)
	require.Nil(t, difference)
	for _, line := range []string{
		"seal 1900-01-01 2024-04-30 ", "metal bullion 0 10000 gold\n", "metal bullion 0 20000 platinum\n", "order ", "takada ",
		fmt.Sprintf("closing bank %d 82914 0 12\n", k.account),
	} {
		require.True(t, strings.Contains(now, "\n"+line), line) //nolint:testifylint // the text is long
	}

	var shown struct {
		Unpaired struct{ Debit, Credit unit.Money }
	}
	require.NoError(t, json.Unmarshal([]byte(o.Clerk(apptest.Home).GET("/books/trial-balance").Status(200).Text), &shown))
	require.Contains(t, now, fmt.Sprintf("\ntrial unpaired %d %d\n", shown.Unpaired.Debit, shown.Unpaired.Credit), "as in the interface")

	for _, args := range [][]string{
		{"--as-of", "2025-04-01"}, {"--known-at", fmt.Sprint(before)}, {"--known-at", fmt.Sprint(before + 30), "--as-of", "2025-04-01"},
	} {
		text, _ := apptest.Done(t, o.Database, append([]string{"books", "export"}, args...)...)
		require.NotEqual(t, now, text)
		read := textOf(t, text)
		difference, err := replayed(t, o, read.Position).Compare(read)
		require.NoError(t, err)
		require.Nil(t, difference, args)
	}
	apptest.Denied(t, o.Database, "--known-at: the tables end at position", "books", "export", "--known-at", fmt.Sprint(o.Head()+1))
	apptest.Denied(t, o.Database, "--as-of", "books", "export", "--as-of", "yesterday")

	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			sql := f.sql
			if !strings.HasPrefix(sql, "update ") {
				sql = fmt.Sprintf(`update books.row_version set %s where row_id = @row%d and to_position = 9223372036854775807`, sql, f.row)
			}
			d, err := all.Compare(textOf(t, exported(t, o, sql, k)))
			require.NoError(t, err)
			require.NotNil(t, d)
			require.True(t, d.Account != 0 || d.Row != 0 || d.Position != 0 || strings.HasPrefix(d.Text, "workspace "+apptest.Home+": "), d)
			if f.row >= 0 {
				require.Equal(t, k.rows[f.row], d.Row, d)
				require.Equal(t, k.account, d.Account, d)
				require.NotZero(t, d.Position, d)
			}
			require.Contains(t, d.String(), f.text)
		})
	}
	d, err := all.Compare(textOf(t, exported(t, o, "", k)))
	require.NoError(t, err)
	require.Nil(t, d)
}

// exported returns the books after a change of the tables that is undone.
func exported(t *testing.T, o *apptest.Server, sql string, k corrected) string {
	t.Helper()
	tx, err := o.Sys.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	var names []string
	for _, name := range []string{"books", "orders", "periods"} {
		schema := pgtest.Value[string](t, tx, `select format('%s_g%s.', name, generation) from projection.generation
			where status = 'live' and name = $1`, name)
		names = append(names, name+".", schema)
	}
	args := pgx.NamedArgs{"account": k.account, "gone": k.gone, "dealer": k.dealer}
	for i, row := range k.rows {
		args[fmt.Sprint("row", i)] = row
	}
	if sql != "" {
		sql = strings.NewReplacer(names...).Replace(sql)
		done, err := tx.Exec(t.Context(), sql, args)
		require.NoError(t, err)
		require.NotZero(t, done.RowsAffected())
	}
	var text bytes.Buffer
	require.Eventually(t, func() bool {
		text.Reset()
		err = bookscli.Write(t.Context(), tx, replay.Header{}, func(l replay.Line) error { return l.Print(&text, true) })
		return !errors.Is(err, bookscli.ErrApart) // jobs of the demo may still write
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, err)
	return text.String()
}

// faults are changes that a faulty fold could leave in the tables, with the texts of the comparison.
var faults = []struct {
	name string
	row  int // of the corrected account; -1: none
	text string
	sql  string // what is set in the newest version of the row, or an update
}{
	{"the sign of a row is wrong", 0, "IN paise is 100005, and 0 in the file", `in_cash = out_cash, out_cash = in_cash`},
	{"the amount of an OUT entry is added", 1, "OUT paise is 40000, and -40000 in the file", `out_cash = -out_cash`},
	{"an amount is off by a paisa", 5, "OUT paise is 334, and 333 in the file", `out_cash = out_cash - 0.01`},
	{"money is counted as metal", 2, "IN milligrams is 0, and 12500 in the file", `in_fine = in_cash, in_cash = 0`},
	{"a void row counts", 4, "IN paise is 0, and 800 in the file", `in_cash = 8`},
	{"a row is not void", 4, "state is void, and - in the file", `void = false`},
	{"a void row is deleted", 4, "the row is missing in the file", `deleted = true`},
	{"a deletion is ignored", 7, "the row was deleted, and the file has it", `deleted = false`},
	{"an edit changes the sum and not the entries", 3, "IN entries is", `in_entries = '[{"amount":7}]'`},
	{"an edit leaves the former version", 3, "IN paise is 7000, and 700 in the file",
		`update books.row_version v set to_position = case when to_position = 9223372036854775807 then from_position else 9223372036854775807 end
			where row_id = @row3`},
	{"a move to another date is ignored", 6, "date is 2025-03-30, and 2025-04-02 in the file", `date = '2025-04-02'`},
	{"rows of a day change places", 3, "the row is missing in the file", `row_id = row_id + 1000000`},
	{"a row is on another account", 5, "the row is missing in the file", `account_id = @gone`},
	{"an escape is read and written again", 5, "OUT entries is", `out_entries = replace(out_entries, chr(92) || 'u003c', '<')`},
	{"the sides of entries change places", 2, "IN entries is", `in_entries = out_entries, out_entries = in_entries`},
	{"a reversal is ignored", 8, "reversed by is", `reversed_by = null`},
	{"a reversing row does not name the reversed one", 10, "reverses is", `reverses = null`},
	{"a balance is off by a paisa", -1, "closing: paise is 82914, and 82915 in the file",
		`update books.total set cash = cash + 0.01 where account_id = @account and level = 0`},
	{"a balance counts a row twice", -1, "closing: rows is 12, and 13 in the file",
		`update books.total set row_count = row_count + 1 where account_id = @account and level = 0`},
	{"a balance has metal", -1, "closing: milligrams is 0, and 1 in the file",
		`update books.total set fine = 0.001 where account_id = @account and level = 0`},
	{"a lock is ignored", -1, ": locked through is 2024-04-30, and - in the file",
		`update books.books_lock set locked_through = null where workspace_id = (select workspace_id from books.account where id = @account)`},
	{"a deleted account is open", -1, "in the file",
		`update books.account set deleted_position = 9223372036854775807 where id = @gone`},
	{"an account is deleted", -1, "account: account is", `update books.account set deleted_position = 1 where id = @account`},
	{"an account is of another ledger", -1, "ledger is bank, and client in", `update books.account set ledger = 'client' where id = @account`},
	{"an order is delivered by half", -1, "delivered milligrams",
		`update orders.client_order set delivered_mg = delivered_mg - 1 where takadas > 0`},
	{"a deleted takada counts", -1, "takadas is", `update orders.client_order set takadas = takadas + 1 where takadas > 0`},
	{"a takada is of another order", -1, "takada: order is", `update orders.takada set order_id = order_id + 1 where not deleted`},
	{"a metal of an account is ignored", -1, "metal: credit milligrams is 10000, and 20000 in the file",
		`update books.account_name set metal = null where account_id = @dealer`},
	{"a metal of an entry is ignored", -1, "metal: credit milligrams is 10000, and 30000 in the file",
		`update books.row_version set metal = null where account_id = @dealer`},
	{"a pairing is ignored", -1, "paired with is",
		`update books.row_version set paired_with = null where account_id = @account and paired_with is not null`},
	{"a closed period is open", -1, "seal 1900-01-01 2024-04-30",
		`update periods.period set reopened_position = position where through = '2024-04-30'`},
	{"a closed period has another digest", -1, "seal: digest is", `update periods.period set digest = 'ab'`},
}
