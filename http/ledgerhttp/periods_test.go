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
	clerk.POST(apptest.Ledger(bank), apptest.Deposit("2025-04-02", "1")).Status(201)
	require.Eventually(t, o.Parked, time.Minute, 5*time.Millisecond)
	clerk.POST(seals, closeIt).Problem(409, "The period through 2025-03-31 has open items", "projections", "projection books is parked")
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
