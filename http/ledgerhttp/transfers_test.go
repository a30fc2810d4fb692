package ledgerhttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// moved is a workspace with an account of each kind that can have transfers.
type moved struct {
	*testing.T

	clerk                       *apitest.Client
	bank, cash, karigar, dealer int64
}

func openMoved(t *testing.T) moved {
	t.Helper()
	clerk := apptest.Clerk(t)
	m := moved{T: t, clerk: clerk, bank: apptest.Open(clerk, "HDFC"), cash: apptest.Open(clerk, "Cash")}
	m.karigar, m.dealer = m.open("karigar", "Imran"), m.open("bullion", "Zaveri")
	return m
}

func (m moved) open(kind, name string) int64 { return made(m.clerk, "/"+kind, `{"name":%q}`, name) }

// pairedRow is a row of a pair in a response.
type pairedRow struct {
	Kind      string
	AccountID int64 `json:"account_id"`
	Row       struct {
		ID, Revision int64
		Date         string
		In           json.RawMessage `json:"in_entries"`
		Out          json.RawMessage `json:"out_entries"`
		Void         bool
		Reverses     int64
		ReversedBy   int64 `json:"reversed_by"`
		PairedWith   int64 `json:"paired_with"`
	}
}

func rowsOf(t *testing.T, a *apitest.Answer) []pairedRow {
	t.Helper()
	var body struct{ Rows []pairedRow }
	picked(a, &body)
	return body.Rows
}

func (m moved) transfer(from, to int64, value string) []pairedRow {
	body := fmt.Sprintf(`{"from":%d,"to":%d,"date":"2025-03-01",%s}`, from, to, value)
	return rowsOf(m.T, m.clerk.POST("/books/transfers", body).Status(201))
}

// row reads a row of a ledger.
func (m moved) row(kind string, account, row int64) (r pairedRow) {
	picked(m.clerk.GET(fmt.Sprintf("/%s-ledger/%d/row/%d", kind, account, row)).Status(200), &r.Row)
	return r
}

func TestATransferIsTwoRowsThatNameEachOther(t *testing.T) {
	t.Parallel()
	m := openMoved(t)
	body := fmt.Sprintf(`{"from":%d,"to":%d,"amount":5000.50,"date":"2025-03-01","description":"labour"}`, m.bank, m.karigar)
	tried := rowsOf(t, m.clerk.With("Bahi-Dry-Run", "true").POST("/books/transfers", body).Status(200))
	require.Zero(t, tried[0].Row.ID)
	require.JSONEq(t, `[{"description":"labour","amount":5000.5}]`, string(tried[0].Row.Out))
	rows := rowsOf(t, m.clerk.POST("/books/transfers", body).Status(201))
	require.Equal(t, []any{"bank", m.bank, "karigar", m.karigar}, []any{rows[0].Kind, rows[0].AccountID, rows[1].Kind, rows[1].AccountID})
	require.Equal(t, rows[1].Row.ID, rows[0].Row.PairedWith)
	require.Equal(t, rows[0].Row.ID, rows[1].Row.PairedWith)
	require.JSONEq(t, `[{"item_name":"labour","amount":5000.5}]`, string(rows[1].Row.Out), "what a bank gives, a karigar takes: OUT in both")
	require.Equal(t, rows[0].Row, m.row("bank", m.bank, rows[0].Row.ID).Row)
	var history []apptest.Change
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(m.clerk.GET(apptest.At(m.bank, rows[0].Row.ID, "/history")).Status(200).Text,
		"paired_with", "reverses")), &history))
	require.Equal(t, []string{"added", "paired"}, []string{history[0].Change, history[1].Change})

	metal := m.transfer(m.dealer, m.karigar, `"fine_weight":99.5,"metal":"Gold"`)
	require.JSONEq(t, `[{"kind":"metal","fine_weight":99.5,"metal":"gold"}]`, string(metal[0].Row.In))
	require.JSONEq(t, `[{"fine_weight":99.5,"metal":"gold"}]`, string(metal[1].Row.Out))
	both := m.transfer(m.bank, m.cash, `"amount":1`)
	require.JSONEq(t, `[{"amount":1}]`, string(both[0].Row.Out))
	require.JSONEq(t, `[{"amount":1}]`, string(both[1].Row.In))
}

func TestATransferThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	m := openMoved(t)
	for _, c := range []struct {
		from, to             int64
		value, field, reason string
	}{
		{m.bank, m.bank, `"amount":1`, "to", "must not be the account that gives"},
		{m.dealer, m.bank, `"fine_weight":1`, "fine_weight", "a bank account has no metal"},
		{m.bank, m.cash, `"description":"x"`, "amount", "amount or fine_weight is required"},
		{m.dealer, m.karigar, `"amount":1,"fine_weight":1`, "fine_weight", "is not possible with amount: post two transfers"},
		{m.bank, m.cash, `"amount":0`, "amount", "must be more than 0"},
		{m.bank, m.cash, `"amount":-1`, "amount", "must be more than 0"},
		{m.dealer, m.karigar, `"fine_weight":0`, "fine_weight", "must be more than 0"},
		{m.bank, m.cash, `"amount":1,"metal":"gold"`, "metal", "requires a weight"},
		{m.bank, 999999999, `"amount":1`, "to", "there is no open account with this id"},
	} {
		body := fmt.Sprintf(`{"from":%d,"to":%d,"date":"2025-03-01",%s}`, c.from, c.to, c.value)
		m.clerk.POST("/books/transfers", body).Problem(422, "Validation error", c.field, c.reason)
	}
	m.clerk.POST("/books/transfers", fmt.Sprintf(`{"from":%d,"to":%d,"date":"2199-03-01","amount":1}`, m.bank, m.cash)).
		Problem(422, "Validation error", "date", "must not be after tomorrow")
	o := apptest.Share(t)
	o.Clerk(o.Abroad).In(t).POST("/books/transfers", fmt.Sprintf(`{"from":%d,"to":%d,"date":"2025-03-01","amount":1}`, m.bank, m.cash)).
		Problem(422, "Validation error", "from", "there is no open account with this id", "to", "there is no open account with this id")
}

func TestAChangeOfAPairedRowChangesBoth(t *testing.T) {
	t.Parallel()
	m := openMoved(t)
	because := m.clerk.With("Bahi-Reason", "typo")
	rows := m.transfer(m.bank, m.karigar, `"amount":5000`)
	a, b := rows[0].Row.ID, rows[1].Row.ID
	ledger := fmt.Sprintf("/bank-ledger/%d", m.bank)
	paired := fmt.Sprintf("The row is paired with row %d, which has the same value: unpair them first", b)
	m.clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"out_entries":[{"amount":6000}]}`, a)).Problem(409, paired, "paired_with", paired)
	m.clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"out_entries":[{"amount":5000,"description":"cheque 7"}]}`, a)).Status(200)
	m.clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"date":"2025-03-04"}`, a)).Status(200)
	require.Equal(t, "2025-03-04", m.row("karigar", m.karigar, b).Row.Date)
	because.POST(fmt.Sprintf("/karigar-ledger/%d/row/%d/void", m.karigar, b), nil).Status(200)
	require.True(t, m.row("bank", m.bank, a).Row.Void)

	rows = m.transfer(m.bank, m.cash, `"amount":7`)
	m.clerk.DELETE(apptest.At(m.cash, rows[1].Row.ID)).Status(204)
	m.clerk.GET(apptest.At(m.bank, rows[0].Row.ID)).Status(404)

	rows = m.transfer(m.dealer, m.karigar, `"fine_weight":10`)
	var back struct {
		ID, Reverses int64
		PairedWith   int64 `json:"paired_with"`
		Revision     int64
	}
	var posted struct{ Rows []json.RawMessage }
	picked(because.POST(fmt.Sprintf("/karigar-ledger/%d/rows/reverse", m.karigar), fmt.Sprintf(`{"rows":[%d]}`, rows[1].Row.ID)).
		Status(201), &posted)
	require.NoError(t, json.Unmarshal(posted.Rows[0], &back))
	require.Equal(t, rows[1].Row.ID, back.Reverses)
	require.EqualValues(t, 1, back.Revision)
	other := m.row("bullion", m.dealer, back.PairedWith).Row
	require.Equal(t, []int64{rows[0].Row.ID, back.ID}, []int64{other.Reverses, other.PairedWith})
	require.Equal(t, back.PairedWith, m.row("bullion", m.dealer, rows[0].Row.ID).Row.ReversedBy)
}

func TestRowsThatExistArePaired(t *testing.T) {
	t.Parallel()
	m := openMoved(t)
	post := func(kind string, account int64, side, entry string) int64 {
		return made(m.clerk, fmt.Sprintf("/%s-ledger/%d", kind, account), `{"date":"2025-03-01","%s_entries":[%s]}`, side, entry)
	}
	pair := func(a, b int64) *apitest.Answer {
		return m.clerk.POST("/books/transfers/pair", fmt.Sprintf(`{"rows":[%d,%d]}`, a, b))
	}
	paid, got := post("bank", m.bank, "out", `{"amount":9}`), post("karigar", m.karigar, "out", `{"amount":9}`)
	came := post("bank", m.cash, "in", `{"amount":8}`)
	pair(paid, paid).Problem(422, "Validation error", "rows", "two different rows are needed")
	pair(paid, came).Problem(422, "Validation error", "rows", "the rows differ by 1 rupees: their values must be opposite")
	pair(999999998, 999999999).Problem(422, "Validation error", "rows[0]", "there is no row with this id",
		"rows[1]", "there is no row with this id")
	pair(paid, 999999999).Problem(422, "Validation error", "rows[1]", "there is no row with this id")
	pair(paid, post("bank", m.bank, "in", `{"amount":9}`)).Problem(422, "Validation error", "rows", "both rows are of the same account")
	silver := post("karigar", m.karigar, "in", `{"fine_weight":95,"wastage_weight":5}`)
	pair(silver, post("bullion", m.dealer, "out", `{"fine_weight":95,"metal":"gold"}`)).
		Problem(422, "Validation error", "rows", "one row is of silver, the other of gold")
	lossy := rowsOf(t, pair(silver, post("bullion", m.dealer, "out", `{"fine_weight":95}`)).Status(200))
	require.Equal(t, lossy[1].Row.ID, lossy[0].Row.PairedWith, "what was lost in work went nowhere")
	rows := rowsOf(t, pair(paid, got).Status(200))
	require.Equal(t, []int64{got, paid}, []int64{rows[0].Row.PairedWith, rows[1].Row.PairedWith})
	require.Equal(t, rows, rowsOf(t, pair(paid, got).Status(200)), "twice changes nothing")
	already := fmt.Sprintf("Row %d is paired with another row already", paid)
	pair(paid, came).Problem(409, already, "rows", already)
	require.Len(t, rowsOf(t, m.clerk.POST("/books/transfers/unpair", fmt.Sprintf(`{"row":%d}`, got)).Status(200)), 2)
	require.Zero(t, m.row("bank", m.bank, paid).Row.PairedWith)
	m.clerk.POST("/books/transfers/unpair", fmt.Sprintf(`{"row":%d}`, got)).Problem(409, "The row is not paired")
	m.clerk.With("Bahi-Reason", "x").POST(apptest.At(m.bank, paid, "/void"), nil).Status(200)
	pair(got, paid).Problem(409, fmt.Sprintf("Row %d is void, reversed, or reverses another row", paid))
}

func TestTheTrialBalanceComesToZero(t *testing.T) {
	t.Parallel()
	m := moved{T: t, clerk: apptest.Clerk(t)}
	m.bank, m.karigar, m.dealer = apptest.Open(m.clerk, "HDFC"), m.open("karigar", "Imran"), m.open("bullion", "Zaveri")
	m.clerk.PUT(fmt.Sprintf("/bullion/%d", m.dealer), `{"name":"Zaveri","metal":"Gold"}`).Status(200)
	m.clerk.PUT("/books/metal", `{"metal":"gold"}`).Status(200).Body(`{"metal":"gold"}`)
	m.clerk.GET("/books/metal").Status(200).Body(`{"metal":"gold"}`)
	m.transfer(m.dealer, m.karigar, `"fine_weight":100`)
	m.clerk.POST(fmt.Sprintf("/karigar-ledger/%d", m.karigar),
		`{"date":"2025-03-05","in_entries":[{"fine_weight":95,"wastage_weight":2},{"other":50}]}`).Status(201)
	m.clerk.POST(apptest.Ledger(m.bank), `{"date":"2025-03-05","out_entries":[{"amount":10}]}`).Status(201)
	var b struct {
		Position int64
		Unpaired struct{ Path string }
	}
	a := m.clerk.GET("/books/trial-balance").Status(200)
	picked(a, &b)
	path := fmt.Sprintf("/books/unpaired?known_at=%d", b.Position)
	require.JSONEq(t, fmt.Sprintf(`{"as_of":null,"position":%d,"accounts":[
		{"kind":"bank","id":%d,"name":"HDFC","debit":0,"credit":10,"metals":[]},
		{"kind":"bullion","id":%d,"name":"Zaveri","debit":0,"credit":0,"metals":[{"metal":"gold","debit":0,"credit":100}]},
		{"kind":"karigar","id":%d,"name":"Imran","debit":0,"credit":50,"metals":[{"metal":"gold","debit":3,"credit":0}]}],
		"unpaired":{"path":%q,"debit":60,"credit":0,"metals":[{"metal":"gold","debit":95,"credit":0}]},
		"loss":{"debit":0,"credit":0,"metals":[{"metal":"gold","debit":2,"credit":0}]},
		"total":{"debit":60,"credit":60,"metals":[{"metal":"gold","debit":100,"credit":100}]}}`,
		b.Position, m.bank, m.dealer, m.karigar, path), a.Text)
	require.Equal(t, path, b.Unpaired.Path)
	var rows []pairedRow
	picked(m.clerk.GET(path+"&page_size=1&page=2").Status(200), &rows)
	require.Len(t, rows, 1)
	require.Contains(t, m.clerk.GET("/books/trial-balance?as_of=2025-03-02").Status(200).Text, `"loss":{"debit":0,"credit":0,"metals":[]}`)
	sheet := cells(t, m.clerk.GET("/books/trial-balance?format=xlsx").Status(200), "Trial balance")
	require.Equal(t, "kind", sheet[0][0])
	require.Equal(t, []string{"total", "", "", "60", "60", "gold", "100", "100"}, sheet[len(sheet)-2])
	text := apptest.Words(t, m.clerk.GET("/books/trial-balance?format=pdf").Status(200))
	for _, words := range []string{"Trial balance", "Karigar", "Unpaired rows", "95.000", "Loss in work", "How to check this trial balance"} {
		require.Contains(t, text, words)
	}
}
