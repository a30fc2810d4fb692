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
