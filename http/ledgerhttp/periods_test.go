package ledgerhttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/period"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/khatapages"
	"bahi/internal/test/lawstest"
)

const (
	seals    = "/books/periods"
	year     = "/books/periods/2025-03-31"
	closeIt  = `{"through":"2025-03-31"}`
	notInUse = "No closed period ends on this day"
)

// sealed is a seal in the form of a response.
type sealed struct {
	period.Closed

	ClosedAt time.Time      `json:"closed_at"`
	ClosedBy string         `json:"closed_by"`
	Reopened map[string]any `json:"reopened"`

	Balances []struct {
		Kind    string      `json:"kind"`
		ID      int64       `json:"id"`
		Name    string      `json:"name"`
		Rows    int64       `json:"rows"`
		Cash    json.Number `json:"cash"`
		Crystal json.Number `json:"crystal"`
	} `json:"balances"`
	Total int64 `json:"total"`
}

func sealOf(a *apitest.Answer) sealed {
	return apitest.Read[sealed](a)
}

// digest computes the digest of a seal's closing balances.
func (s sealed) digest(t *testing.T) string {
	t.Helper()
	var all []closing.Balance
	for _, b := range s.Balances {
		cash, err := unit.ParseMoney(b.Cash.String())
		require.NoError(t, err)
		fine, err := unit.ParseGrams(b.Crystal.String())
		require.NoError(t, err)
		all = append(all, closing.Balance{Ledger: b.Kind, Account: b.ID, Cash: cash, Fine: fine, Rows: b.Rows})
	}
	return closing.Digest(all)
}

func TestAPeriodIsClosedReopenedAndClosedAgain(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	lawstest.Keep(t, o.Sys.Store)
	clerk, operator := o.Clerk(o.Home), o.Operator().With("Bahi-Workspace", o.Home)
	clerk.GET(seals).Status(200).Body(`{"items":[]}`)
	clerk.GET(year).Problem(404, notInUse)
	sbi := apptest.Open(clerk, "SBI")
	apptest.Post(clerk, sbi, apptest.Deposit("2025-03-31", "10.50"))
	apptest.Post(clerk, sbi, apptest.Deposit("2025-04-01", "7"))
	hdfc := apptest.Open(clerk, "HDFC")

	dry := sealOf(clerk.With("Bahi-Dry-Run", "true").POST(seals, closeIt).Status(200))
	clerk.GET("/books/lock").Status(200).Body(`{"locked_through":null}`)
	clerk.GET(seals).Status(200).Body(`{"items":[]}`)

	first := clerk.POST(seals, closeIt).Status(201)
	seal := sealOf(first)
	require.Nil(t, seal.From)
	require.Equal(t, dry.Digest, seal.Digest)
	require.Equal(t, uint64(seal.Position), seal.LogSize)
	require.Len(t, seal.LogRoot, 44)
	clerk.GET("/books/lock").Status(200).Body(`{"locked_through":"2025-03-31"}`)
	clerk.POST(apptest.Ledger(sbi), apptest.Deposit("2025-03-31", "1")).Problem(409, apptest.Locked)
	clerk.POST(apptest.Ledger(hdfc), apptest.Deposit("2025-04-01", "3")).Status(201)

	head := o.Head()
	require.Equal(t, first.Text, clerk.POST(seals, closeIt).Status(200).Text, "twice: the first")
	require.Equal(t, head, o.Head(), "a repetition writes nothing")

	shown := sealOf(clerk.GET(year).Status(200))
	require.Equal(t, seal.Closed, shown.Closed)
	require.Equal(t, seal.Digest, shown.digest(t))
	require.Equal(t, []any{"SBI", json.Number("10.5"), int64(1), int64(2)},
		[]any{shown.Balances[0].Name, shown.Balances[0].Cash, shown.Balances[0].Rows, shown.Total})
	paged := sealOf(clerk.GET(year + "?page=2&page_size=1").Status(200))
	require.Equal(t, "HDFC", paged.Balances[0].Name)
	clerk.GET(year+"?page=2").Problem(422, "Validation error", "page", "requires page_size")
	clerk.GET(fmt.Sprintf("%s?known_at=%d", year, seal.Position)).Problem(404, notInUse)

	const hint = "The period through 2025-03-31 is closed: an operator may reopen it"
	late := clerk.With("Bahi-Reason", "a late bill")
	late.PUT("/books/lock", `{"locked_through":"2025-03-30"}`).Problem(409, hint)
	clerk.PUT("/books/lock", `{"locked_through":"2025-04-30"}`).Status(200)
	late.PUT("/books/lock", closedThrough("2025-03-31")).Status(200)

	next := sealOf(clerk.POST(seals, `{"through":"2025-04-30"}`).Status(201))
	require.Equal(t, "2025-04-01", next.From.String())
	require.NotEqual(t, seal.Digest, next.Digest)
	clerk.POST(seals, closeIt).Status(200).Body(first.Text)

	late.POST(year+"/reopen", ``).Status(403)
	newest := seals + "/2025-04-30"
	operator.With("Bahi-Dry-Run", "true").POST(newest+"/reopen", `{"reason":"a late bill"}`).Status(200).Body(closedThrough("2025-03-31"))
	operator.POST(newest+"/reopen", `{"reason":"a late bill"}`).Status(200).Body(closedThrough("2025-03-31"))
	operator.POST(newest+"/reopen", `{"reason":"a late bill"}`).Problem(404, notInUse)
	clerk.GET("/books/lock").Status(200).Body(closedThrough("2025-03-31"))
	apptest.Post(clerk, sbi, apptest.Deposit("2025-04-02", "100"))
	again := sealOf(clerk.POST(seals, `{"through":"2025-04-30"}`).Status(201))
	require.NotEqual(t, next.Digest, again.Digest)

	var list struct{ Items []sealed }
	clerk.GET(seals).Status(200).JSON(&list)
	require.Len(t, list.Items, 3)
	require.Equal(t, []string{again.Digest, next.Digest, seal.Digest},
		[]string{list.Items[0].Digest, list.Items[1].Digest, list.Items[2].Digest})
	require.Equal(t, "a late bill", list.Items[1].Reopened["reason"])
	require.Nil(t, list.Items[0].Reopened)
	clerk.GET(fmt.Sprintf("%s?known_at=%d", seals, again.Position)).Status(200).JSON(&list)
	require.Len(t, list.Items, 2)

	operator.With("Bahi-Reason", "audit").POST(newest+"/reopen", ``).Status(200)
	operator.With("Bahi-Reason", "audit").POST(year+"/reopen", ``).Status(200).Body(closedThrough("null"))
}

func closedThrough(day string) string {
	if day != "null" {
		day = `"` + day + `"`
	}
	return `{"locked_through":` + day + `}`
}

func TestOpenItemsOfAPeriodAreListed(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Operator()
	req := commands.Request{Workspace: o.Sys.Home}
	draft := func(date unit.Date) int64 {
		text, _, err := ledgercmd.ReceiveDraft(t.Context(), req, o.Sys.Books, ledgercmd.Message{ID: uuid.NewString(), From: "919812345678",
			Text: "payal 250 gm"})
		require.NoError(t, err)
		var id int64
		_, err = fmt.Sscan(text, &id)
		require.NoError(t, err)
		_, err = ledgercmd.EditDraft(t.Context(), req, o.Sys.Books, id, orderdraft.Edit{Date: patch.Set(date)})
		require.NoError(t, err)
		return id
	}
	end, err := unit.ParseDate("2025-03-31")
	require.NoError(t, err)
	old := draft(end)
	draft(end + 1) // of the next period
	bank := apptest.Open(clerk, "SBI")
	upload := func(line string) (u scanned) {
		scan(t, clerk, "/khata-upload", khatapages.Typed("Party: SBI", "IN", line)).Status(200).JSON(&u)
		require.Len(t, u.Entries, 1)
		return u
	}
	inside := upload("31/3/2025 cash 20000")
	upload("1/4/2025 cash 20000") // of the next period

	var refused struct {
		Detail string
		Code   string
		Errors []struct {
			Field   string
			Message string
			ID      int64
		}
	}
	head := o.Head()
	clerk.With("Bahi-Dry-Run", "true").POST(seals, closeIt).Status(409)
	require.NoError(t, json.Unmarshal([]byte(clerk.POST(seals, closeIt).Status(409).Text), &refused))
	require.Equal(t, head, o.Head(), "a refusal writes nothing, and locks nothing")
	require.Equal(t, "The period through 2025-03-31 has open items", refused.Detail)
	require.Equal(t, "period_open", refused.Code)
	require.Len(t, refused.Errors, 2)
	require.Equal(t, []any{"order_drafts", fmt.Sprintf("order draft %d is not reviewed", old), old},
		[]any{refused.Errors[0].Field, refused.Errors[0].Message, refused.Errors[0].ID})
	require.Equal(t, []any{"khata_uploads", fmt.Sprintf("khata upload %d is not submitted", *inside.UploadID), *inside.UploadID},
		[]any{refused.Errors[1].Field, refused.Errors[1].Message, refused.Errors[1].ID})

	clerk.DELETE(fmt.Sprint("/order-drafts/", old)).Status(204)
	clerk.POST("/khata-submit", fmt.Sprintf(`{"upload_id":%d,"entries":[{"ledger":"bank","account_id":%d,"side":"in","date":"2025-03-31",`+
		`"item_name":"cash","amount":20000}]}`, *inside.UploadID, bank)).Status(201)
	o.Park()
	whole := clerk.With("Prefer", "return=representation")
	late := whole.POST(apptest.Ledger(bank), apptest.Deposit("2025-04-02", "1")).Status(201)
	require.NotContains(t, late.Text, "balance", "the books are parked")
	require.Eventually(t, o.Parked, time.Minute, 5*time.Millisecond)
	require.Contains(t, apptest.Readiness(t, o.Anonymous()).Text, `"parked"`, "its answers are marked, and the node stays")
	clerk.POST(seals, closeIt).Problem(409, "The period through 2025-03-31 has open items", "projections", "projection books is parked")
}

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

func TestALockedDateIsListedBesideOtherFaults(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	old := apptest.Post(clerk, account, apptest.Deposit("2025-03-31", "1")).ID
	row := apptest.Post(clerk, account, apptest.Deposit("2025-04-01", "1")).ID
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	const (
		zero, why, absent, unknown = "must be more than 0", apptest.Locked, "is required, here or in the header Bahi-Reason",
			"there is no open account with this id"
		long, number, text = "at most 500 characters", "expected a number", "expected a text"
	)
	ledger, transfers := apptest.Ledger(account), "/books/transfers"
	for _, c := range []struct {
		method, path, body string
		wrong              []string // the date is added
	}{
		{"POST", ledger, `"in_entries":[{"amount":0},{"amount":"x"}]`, []string{"in_entries[1].amount", number, "in_entries[0].amount", zero}},
		{"POST", ledger, `"in_entries":[{"amount":5,"description":5}]`, []string{"in_entries[0].description", text}},
		{"POST", ledger, `"in_entries":[{"amount":5}]`, nil},
		{"PUT", ledger, fmt.Sprintf(`"id":%d,"in_entries":[{"amount":0}]`, row), []string{"in_entries[0].amount", zero}},
		{"PUT", ledger, fmt.Sprintf(`"id":%d,"out_entries":[{"amount":"x"}]`, row), []string{"out_entries[0].amount", number}},
		{"PUT", ledger, `"in_entries":[{"amount":0}]`, []string{"id", "is required: the id of the row", "in_entries[0].amount", zero}},
		{"PUT", ledger, fmt.Sprintf(`"id":%d,"in_entries":[{"amount":5}]`, row), nil},
		{"POST", transfers, fmt.Sprintf(`"from":%d,"to":%d,"amount":0`, account, account),
			[]string{"to", "must not be the account that gives", "amount", zero}},
		{"POST", transfers, fmt.Sprintf(`"from":%d,"to":%d,"amount":5`, account, 1<<50), []string{"to", unknown}},
		{"POST", transfers, fmt.Sprintf(`"from":%d,"to":%d,"amount":0`, account, apptest.Open(clerk, "SBI")), []string{"amount", zero}},
		{"POST", transfers, fmt.Sprintf(`"from":%d,"to":%d,"amount":5`, account, apptest.Open(clerk, "Axis")), nil},
		{"POST", apptest.At(account, old, "/reverse"), `"reason":""`, []string{"reason", absent}},
		{"POST", apptest.At(account, old, "/reverse"), `"reason":"` + strings.Repeat("x", 501) + `"`, []string{"reason", long}},
		{"POST", apptest.At(account, old, "/reverse"), `"reason":"x"`, nil},
		{"POST", apptest.Ledger(account, "/rows/reverse"), `"rows":[]`, []string{"rows", "at least one row is needed", "reason", absent}},
	} {
		a := clerk.Do(c.method, c.path, `{"date":"2025-03-31",`+c.body+`}`)
		if c.wrong == nil {
			a.Problem(409, why, "date", why)
			continue
		}
		a.Problem(422, "Validation error", append(c.wrong, "date", why)...)
	}
	clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"in_entries":[{"amount":0}]}`, old)).Problem(422, "Validation error",
		"in_entries[0].amount", zero, "date", why)
	clerk.POST(apptest.Ledger(account, "/rows/reverse"), `{"date":"2199-03-01","rows":[]}`).Problem(422, "Validation error",
		"rows", "at least one row is needed", "date", "must not be after tomorrow", "reason", absent)
}
