package ledgerhttp_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/draws"
)

func TestAnEditNamesItsRowByIdRowIdOrQuery(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	path := apptest.Ledger(account)
	clerk.PUT(path, fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("2"))).Status(200)
	clerk.PUT(path, fmt.Sprintf(`{"row_id":%d,"in_entries":%s}`, row.ID, apptest.Entry("3"))).Status(200)
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID), `{"in_entries":`+apptest.Entry("4")+`}`).Status(200)
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID),
		fmt.Sprintf(`{"id":%d,"row_id":%d,"in_entries":%s}`, row.ID, row.ID, apptest.Entry("5"))).Status(200)
	require.Equal(t, "03-01 5", apptest.Balances(clerk, path))

	clerk.PUT(path, fmt.Sprintf(`{"id":%d,"row_id":%d}`, row.ID, row.ID+1)).Problem(422, "Validation error", "id",
		"differs from row_id")
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID), fmt.Sprintf(`{"id":%d}`, row.ID+1)).Problem(422, "Validation error", "id",
		"differs from row_id")
	clerk.PUT(path, `{"id":0}`).Status(422)
	clerk.PUT(path, `{"date":"2199-01-01","in_entries":[{"amount":-1}],"out_entries":`+apptest.Entry("1")+`}`).Problem(422, "Validation error",
		"id", "is required: the id of the row", "date", "must not be after tomorrow", "in_entries[0].amount", "must be more than 0")
	clerk.PUT(path, `{"id":"x","in_entries":[{"amount":-1}]}`).Problem(422, "Validation error",
		"id", "expected a whole number", "in_entries[0].amount", "must be more than 0")
	clerk.PUT(path, `{"in_entries":[]}`).Problem(422, "Validation error", "id", "is required: the id of the row")
	clerk.PUT(path, `{"id":-1}`).Problem(404, "Bank ledger row not found")
	clerk.PUT(path+"?row_id=-1", `{}`).Status(422)
	require.Equal(t, "03-01 5", apptest.Balances(clerk, path))
}

func TestHistoryTellsWhoChangedWhatFromWhatToWhatAndWhy(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	auditor := o.Key(o.Home, `{"ledger":"write"}`)
	account := apptest.Open(clerk, "HDFC")
	added := clerk.With("Bahi-Reason", "opening balance").POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "10")).Status(201)
	row := apitest.Read[apptest.BankRow](added)
	other := clerk.With("Authorization", "Bearer "+auditor.Key)
	other.With("Bahi-Reason", "%E0%A4%97%E0%A4%B2%E0%A4%A4%20100%25").PUT(apptest.Ledger(account),
		fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("11"))).Status(200)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)).Status(200)
	clerk.With("Bahi-Reason", "posted twice").DELETE(apptest.At(account, row.ID)).Status(204)

	h := apitest.Read[[]apptest.Change](clerk.GET(apptest.At(account, row.ID, "/history")).Status(200))
	require.Len(t, h, 4)
	require.Equal(t, []string{"added", "edited", "edited", "deleted"}, []string{h[0].Change, h[1].Change, h[2].Change, h[3].Change})
	require.Equal(t, []string{"opening balance", "गलत 100%", "", "posted twice"},
		[]string{h[0].Reason, h[1].Reason, h[2].Reason, h[3].Reason})
	require.Equal(t, "api_key:"+auditor.ID, h[1].Actor)
	require.NotEqual(t, h[0].Actor, h[1].Actor)
	require.Equal(t, h[0].Actor, h[2].Actor)
	require.Equal(t, added.Header("Bahi-Position"), strconv.FormatInt(h[0].Position, 10))
	require.Nil(t, h[0].Before)
	require.Nil(t, h[3].After)
	for i := 1; i < 4; i++ {
		require.Greater(t, h[i].Position, h[i-1].Position)
		require.Equal(t, h[i-1].After, h[i].Before)
		require.GreaterOrEqual(t, h[i].At, h[i-1].At)
	}
	require.Equal(t, "10", h[0].After.In[0].Amount.String())
	require.Equal(t, "11", h[1].After.In[0].Amount.String())
	require.Equal(t, "2025-03-01", h[2].Before.Date)
	require.Equal(t, "2025-03-02", h[2].After.Date)
	clerk.GET(apptest.At(account, row.ID, "/history?as_of=2025-03-01")).Status(422)
}

func TestARowIsTakenBackByOneThatMirrorsIt(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	today, clerk := apptest.TodayIn(t, o), o.Clerk(o.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, `{"date":"2025-03-01","in_entries":[{"description":"sale","amount":12.5}],`+
		`"out_entries":[{"amount":2},{"amount":0.25}]}`)
	because := clerk.With("Bahi-Reason", "%E0%A4%97%E0%A4%B2%E0%A4%A4")
	because.POST(apptest.At(account, row.ID, "/reverse"), `{"date":"2025-02-01"}`).Status(422)
	require.Equal(t, `"0"`, clerk.GET(apptest.At(account, row.ID)).Header("ETag"), "a refused reversal changes no row")
	a := because.With("If-Match", `"0"`).POST(apptest.At(account, row.ID, "/reverse"), nil).Status(201)
	back := apitest.Read[apptest.BankRow](a)
	a.Body(fmt.Sprintf(`{"id":%d,"date":%q,"in_entries":[{"amount":2},{"amount":0.25}],"out_entries":[{"description":"sale",`+
		`"amount":12.5}],"revision":0,"reverses":%d}`,
		back.ID, today, row.ID))
	require.Equal(t, `"0"`, a.Header("ETag"))

	require.Equal(t, `"1"`, clerk.GET(apptest.At(account, row.ID)).Contains(`"reversed_by"`).Header("ETag"))
	clerk.GET(apptest.At(account, back.ID)).Status(200).JSON(&back)
	require.Equal(t, "0", back.Balance.String())
	require.Equal(t, row.ID, back.Reverses)
	rows := apitest.Read[[]apptest.BankRow](clerk.GET(apptest.Ledger(account)).Status(200))
	require.Len(t, rows, 2)
	require.Equal(t, back.ID, rows[0].ReversedBy)
	require.Equal(t, "10.25", rows[0].Balance.String(), "its own day stays as it was")

	h := apitest.Read[[]apptest.Change](clerk.GET(apptest.At(account, row.ID, "/history")).Status(200))
	require.Equal(t, []string{"added", "reversed"}, []string{h[0].Change, h[1].Change})
	require.Equal(t, "गलत", h[1].Reason)
	require.Equal(t, back.ID, h[1].After.ReversedBy)
	require.Zero(t, h[1].Before.ReversedBy)
	require.Equal(t, a.Header("Bahi-Position"), strconv.FormatInt(h[1].Position, 10))
	position := h[1].Position
	h = nil
	clerk.GET(apptest.At(account, back.ID, "/history")).Status(200).JSON(&h)
	require.Len(t, h, 1)
	require.Equal(t, apptest.Change{Position: position - 1, At: h[0].At, Actor: h[0].Actor, Reason: "गलत", Change: "added",
		After: h[0].After}, h[0])
	require.Equal(t, row.ID, h[0].After.Reverses)

	already := fmt.Sprintf("The row is reversed by row %d already", back.ID)
	refused := because.POST(apptest.At(account, row.ID, "/reverse"), nil).Problem(409, already, "reversed_by", already)
	require.Contains(t, refused.Text, fmt.Sprintf(`"id":%d}]`, back.ID), "the other row's id")
}

func TestACorrectionWantsAReasonADateThatMayBeAndARow(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-10", "1"))
	reverse, void := apptest.At(account, row.ID, "/reverse"), apptest.At(account, row.ID, "/void")
	many := apptest.Ledger(account, "/rows/reverse")
	for _, c := range []struct{ path, body, field, why string }{
		{reverse, ``, "reason", "is required, here or in the header Bahi-Reason"},
		{void, ``, "reason", "is required, here or in the header Bahi-Reason"},
		{reverse, `{"reason":"  "}`, "reason", "is required, here or in the header Bahi-Reason"},
		{reverse, `{"reason":"a\u0007"}`, "reason", "control characters are not allowed"},
		{many, `{"reason":"x","rows":[]}`, "rows", "at least one row is needed"},
		{many, fmt.Sprintf(`{"reason":"x","rows":[%d,%d]}`, row.ID, row.ID), "rows[1]", "is named twice"},
	} {
		clerk.POST(c.path, c.body).Problem(422, "Validation error", c.field, c.why)
	}
	clerk.With("Bahi-Reason", "y").POST(reverse, `{"reason":"x"}`).Problem(422, "Validation error", "reason",
		"differs from the header Bahi-Reason")
}

// editedAccount is an account with four rows, one of them edited and one deleted, and the positions between.
type editedAccount struct {
	clerk   *apitest.Client
	account int64
	posted  string // position after the four were posted
	edited  string // position after one was edited
	deleted string // position after one was deleted
}

func tell(t *testing.T, o *apptest.Server) (s editedAccount) {
	t.Helper()
	s.clerk = o.Clerk(o.Home)
	s.account = apptest.Open(s.clerk, "HDFC")
	apptest.Post(s.clerk, s.account, apptest.Deposit("2025-01-10", "10"))
	february := apptest.Post(s.clerk, s.account, apptest.Deposit("2025-02-10", "20"))
	march := apptest.Post(s.clerk, s.account, apptest.Withdrawal("2025-03-10", "5"))
	s.posted = s.clerk.POST(apptest.Ledger(s.account), apptest.Deposit("2025-04-10", "40")).Status(201).Header("Bahi-Position")
	s.edited = s.clerk.PUT(apptest.Ledger(s.account),
		fmt.Sprintf(`{"id":%d,"in_entries":%s}`, february.ID, apptest.Entry("25"))).Status(200).Header("Bahi-Position")
	s.deleted = s.clerk.DELETE(apptest.At(s.account, march.ID)).Status(204).Header("Bahi-Position")
	s.clerk.With("Bahi-Min-Position", s.deleted).GET(apptest.Ledger(s.account)).Status(200)
	return s
}

func TestAccountsAndRowsAreReadAsOfADateAndAsTheyWereKnown(t *testing.T) {
	t.Parallel()
	s := tell(t, apptest.Share(t))
	for query, want := range map[string]string{
		"": "75", "?as_of=2025-01-09": "0", "?as_of=2025-02-09": "10", "?as_of=2025-02-10": "35", "?known_at=" + s.posted: "65",
		"?as_of=2025-03-09&known_at=" + s.edited: "35", "?as_of=2025-03-10&known_at=" + s.edited: "30",
	} {
		banks := apptest.ClerkBanks(s.clerk.GET("/banks" + query).Status(200))
		require.Len(t, banks, 1)
		require.Equal(t, want, banks[0].Balance.String(), query)
		one := apitest.Read[apptest.BankAccount](s.clerk.GET(fmt.Sprintf("/bank/%d%s", s.account, query)).Status(200))
		require.Equal(t, want, one.Balance.String(), query)
	}
	for _, name := range []string{"Sharad", "Sharad Sons"} { // the accounts in the list
		for range 2 {
			s.clerk.PUT(fmt.Sprintf("/bank/%d", s.account), fmt.Sprintf(`{"name":%q}`, name)).Status(200)
			require.Equal(t, name, apptest.ClerkBanks(s.clerk.GET("/banks").Status(200))[0].Name)
			require.Equal(t, "10", apptest.ClerkBanks(s.clerk.GET("/banks?as_of=2025-01-31").Status(200))[0].Balance.String())
		}
	}
	s.clerk.GET("/banks?known_at=0").Status(200).Body(`[]`)
	s.clerk.GET("/banks?known_at=2001-01-01T00:00:00Z").Status(200).Body(`[]`)
	s.clerk.GET(fmt.Sprintf("/bank/%d?known_at=0", s.account)).Problem(404, "Bank account not found")
	s.clerk.GET(apptest.Ledger(s.account, "?known_at=0")).Problem(404, "Bank account not found")

	rows := apitest.Read[[]apptest.BankRow](s.clerk.GET(apptest.Ledger(s.account, "?known_at=", s.posted)).Status(200))
	for _, want := range rows { // a single row equals the row in the list
		row := apitest.Read[apptest.BankRow](s.clerk.GET(apptest.At(s.account, want.ID, "?known_at=", s.posted)).Status(200))
		require.Equal(t, want, row)
	}
	s.clerk.GET(apptest.At(s.account, rows[2].ID, "?known_at=", s.deleted)).Problem(404, "Bank ledger row not found")
	s.clerk.GET(apptest.At(s.account, rows[3].ID, "?as_of=2025-04-10")).Status(200)
	s.clerk.GET(apptest.At(s.account, rows[3].ID, "?as_of=2025-04-09")).Problem(404, "Bank ledger row not found")
}

func TestAPastThatNobodyCanKnowIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	account := apptest.Open(clerk, "HDFC")
	ledger, statement := apptest.Ledger(account), apptest.Ledger(account, "/statement.pdf")
	const form = "expected an RFC 3339 time, with its + as %2B in a URL, or a log position"
	const date = "expected a date such as 2025-03-31, from 1900 to 2199"
	for query, wrong := range map[string][2]string{
		"known_at=2025-02-30T00:00:00Z":      {"known_at", form},
		"known_at=2025-02-03":                {"known_at", form},
		"known_at=2025-02-03T09:00:00+05:30": {"known_at", form},
		"known_at=-1":                        {"known_at", form},
		"known_at=1.5":                       {"known_at", form},
		"known_at=9223372036854775808":       {"known_at", form},
		"known_at=2199-01-01T00:00:00Z":      {"known_at", "must not be in the future"},
		"as_of=2025-13-01":                   {"as_of", date},
		"from=2025-03-02&to=2025-03-01":      {"from", "must not be after to"},
		"from=2025-03-02&as_of=2025-03-01":   {"from", "must not be after as_of"},
		"from=x":                             {"from", date},
		"page=2":                             {"page", "requires page_size"},
		"page=0&page_size=1":                 {"page", "expected number >= 1"},
		"page_size=1001":                     {"page_size", "expected number <= 1000"},
	} {
		clerk.GET(ledger+"?"+query).Problem(422, "Validation error", wrong[0], wrong[1])
		if wrong[0] == "from" {
			clerk.GET(statement+"?"+query).Problem(422, "Validation error", wrong[0], wrong[1])
		}
	}
	for _, path := range []string{"/banks", fmt.Sprintf("/bank/%d", account), ledger, apptest.At(account, 1), statement} {
		clerk.GET(path+"?known_at=yesterday").Problem(422, "Validation error", "known_at", form)
		clerk.GET(path+"?as_of=tomorrow").Problem(422, "Validation error", "as_of", date)
		clerk.GET(fmt.Sprintf("%s?known_at=%d", path, o.Head()+1_000_000)).Problem(422, "The log does not reach that position yet")
	}
	clerk.GET(statement+"?page=1").Problem(422, "Validation error", "page", "unknown parameter")
	clerk.GET("/banks?as_of=%ff").Problem(400, "Malformed URL")
}

// Events of one transaction become visible together.
func TestAPositionInsideATransactionIsTheEndOfTheOneBefore(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(o.Home)
	first := apptest.Open(clerk, "First")
	var x eventstore.Transaction
	for i, name := range []string{"Second", "Third", "Fourth"} {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name},
			event.Meta{Workspace: uuid.MustParse(o.Home), OccurredAt: time.Now(), More: 2 - i})
		require.NoError(t, err)
		x.Writes = append(x.Writes, eventstore.Write{Stream: fmt.Sprintf("bank-%d", 900+i), Expected: eventstore.NoStream,
			Events: []event.Proposed{e}})
	}
	done, err := o.Sys.Store.Append(t.Context(), x)
	require.NoError(t, err)
	before, after := int64(done.First-1), int64(done.Position)
	last := apptest.Open(clerk, "Last")
	for at, want := range map[int64][]int64{
		before: {first}, before + 1: {first}, before + 2: {first}, after: {first, 900, 901, 902}, o.Head(): {first, 900, 901, 902, last},
	} {
		for range 2 {
			var listed []struct{ ID int64 }
			apptest.Lenient(t, clerk.GET(fmt.Sprintf("/banks?known_at=%d", at)), &listed)
			var got []int64
			for _, l := range listed {
				got = append(got, l.ID)
			}
			require.ElementsMatch(t, want, got, "known at %d, after %d", at, before)
		}
	}
}

// The example of CONTRACT.md 6.3.
func TestAKarigarIsOwedAndOwesMetalAndCash(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var imran, given, back shown
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201).JSON(&imran)
	ledger := fmt.Sprint("/karigar-ledger/", imran.ID)
	clerk.POST(ledger, `{"date":"2025-03-01","in_entries":[],"out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5,`+
		`"amount":null}]}`).Status(201).JSON(&given)
	clerk.POST(ledger, `{"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,`+
		`"wastage_weight":11,"other":1500}]}`).Status(201).JSON(&back)
	require.JSONEq(t, `[{"field":"in_entries[0].wastage_weight","message":"differs from what the other values say","given":11,`+
		`"computed":10.4}]`, string(back.Warnings))
	clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,`+
		`"other":1500}]}`, back.ID)).Status(200)

	clerk.GET(ledger).Status(200).Body(fmt.Sprintf(`[
		{"id":%d,"date":"2025-03-01","in_entries":[],"out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5,"fine_weight":497.5,`+
		`"computed":["fine_weight"]}],
			"cash_balance":0,"crystal_balance":-497.5,"cash_position":"settled","crystal_position":"they_owe","revision":0},
		{"id":%d,"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"fine_weight":478.4,
			"wastage_percent":2,"wastage_weight":10.4,"other":1500,"computed":["fine_weight","wastage_weight"]}],"out_entries":[],
			"cash_balance":1500,"crystal_balance":-8.7,"cash_position":"we_owe","crystal_position":"they_owe","revision":1}]`, given.ID, back.ID))
	clerk.GET("/karigars").Status(200).Body(fmt.Sprintf(`[{"id":%d,"name":"Imran","cash_balance":1500,"crystal_balance":-8.7,
		"cash_position":"we_owe","crystal_position":"they_owe","revision":0}]`, imran.ID))

	clerk.DELETE(fmt.Sprint("/karigar-ledger-row/", apptest.Post(clerk, apptest.Open(clerk, "HDFC"), apptest.Deposit("2025-03-01", "1")).ID)).
		Problem(404, "Karigar ledger row not found")
}

func TestPolishersAreListedByTheirType(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var salim, noor shown
	clerk.POST("/polisher", `{"name":"Salim","type":0}`).Status(201).JSON(&salim)
	clerk.POST("/polisher", `{"name":"Noor","type":2}`).Status(201).JSON(&noor)
	listed := func(path string, want ...int64) {
		t.Helper()
		var got []shown
		var ids []int64
		clerk.GET(path).Status(200).JSON(&got)
		for _, a := range got {
			ids = append(ids, a.ID)
		}
		require.Equal(t, want, ids, path)
	}
	listed("/polishers", salim.ID, noor.ID)
	listed("/regular-polishers", salim.ID)
	listed("/meena-polishers")
	listed("/rodium-polishers", noor.ID)

	known := "?known_at=" + clerk.GET("/polishers").Status(200).Header("Bahi-Position")
	one := fmt.Sprint("/polisher/", salim.ID)
	clerk.PUT(one, `{"type":1}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"Salim","type":1,"cash_balance":0,"crystal_balance":0,
		"cash_position":"settled","crystal_position":"settled","revision":1}`, salim.ID))
	clerk.PUT(one, clerk.GET(one).Status(200).Text).Status(200)
	listed("/regular-polishers")
	listed("/meena-polishers", salim.ID)
	listed("/regular-polishers"+known, salim.ID)
	listed("/meena-polishers" + known)
}

func TestAccountsOfAllLedgersAreListedByName(t *testing.T) {
	t.Parallel()
	s := openBooks(t)
	type named struct {
		Kind, Name string
		Balance    decimal.Decimal
		Cash       decimal.Decimal `json:"cash_balance"`
	}
	list := func(query string) (found []named, total string) {
		a := s.GET("/books/accounts" + query).Status(200)
		apptest.Lenient(t, a, &found)
		return found, a.Header("X-Total-Count")
	}
	names := func(query string) (names []string) {
		found, total := list(query)
		for _, a := range found {
			names = append(names, a.Name)
		}
		return append(names, total)
	}
	all := names("")
	require.Len(t, all, 7)
	require.IsNonDecreasing(t, all[:6])
	require.Equal(t, []string{all[2], all[3], "6"}, names("?page=2&page_size=2"))
	require.Equal(t, []string{"6"}, names("?page=9&page_size=2"))
	require.Equal(t, []string{"HDFC", "1"}, names("?search=%20hdf"))
	require.Equal(t, []string{"मीना शाह", "1"}, names("?search=शाह&kind=client"))
	require.Equal(t, []string{"0"}, names("?search=hdfc&kind=client"))
	require.Equal(t, "2", names("?kind=client")[2])
	bank, _ := list("?kind=bank")
	require.Equal(t, []string{"bank", "749.5"}, []string{bank[0].Kind, bank[0].Balance.String()})
	bank, _ = list("?kind=bank&as_of=2025-03-01")
	require.Equal(t, "1000", bank[0].Balance.String())
	known := s.GET("/books/summary").Status(200).Header("Bahi-Position")
	s.PUT(fmt.Sprintf("/bank/%d", s.hdfc), `{"name":"ÉTOILE Bank"}`).Status(200)
	require.Equal(t, []string{"ÉTOILE Bank", "1"}, names("?search=étoile"))
	require.Equal(t, append(all[:6:6], "6"), names("?known_at="+known))
	require.Equal(t, []string{"HDFC", "1"}, names("?search=hdfc&known_at="+known))
	require.Equal(t, []string{"0"}, names("?search=hdfc"))
	s.DELETE(fmt.Sprintf("/bank-account/%d", s.hdfc)).Status(204)
	require.Equal(t, []string{"0"}, names("?kind=bank"))
	s.GET("/books/accounts?kind=cash").Status(422)
	s.GET("/books/accounts?q=hdfc").Problem(422, "Validation error", "q", "unknown parameter")
}

func TestMain(m *testing.M) {
	draws.Default(15) // each makes about a hundred HTTP requests
	apptest.Main(m)
}
