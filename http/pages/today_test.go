package pages_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/commands/messagingcmd"
	"bahi/domain/unit"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// waiting creates open tasks: a draft of an order, an enquiry and a message.
func waiting(o *apptest.Server) {
	o.T.Helper()
	_, _, err := ledgercmd.ReceiveDraft(o.T.Context(), commands.Request{Workspace: uuid.MustParse(o.Home)}, o.Sys.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: "919812345678", Text: "party: ramesh\npayal 250 gm 4 pcs", At: time.Now()})
	require.NoError(o.T, err)
	agent := o.Bearer(o.Key(o.Home, `{"messaging":"write","marketplace":"write"}`).Key)
	var company map[string]any
	var channel struct{ ID int64 }
	agent.POST("/api/v1/companies", `{"name":"Mill"}`).Status(201).JSON(&company)
	for range 2 {
		o.Anonymous().POST("/api/v1/enquiries",
			fmt.Sprintf(`{"to_company_id":%q,"user_name":"Asha","user_email":"asha@example.com"}`, company["id"])).Status(201)
	}
	made := agent.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	require.NoError(o.T, json.Unmarshal([]byte(made.Text), &channel))
	ravi := messagingcmd.Sender{From: "919812345001", Name: "Ravi"}
	o.Receives(messagingcmd.InboundMessage{Channel: channel.ID, Sender: ravi, Text: "Hello?"})
}

func TestTodaySaysWhatWaits(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := book(o, o.Clerk(o.Home), 2)
	all := byKey(o, o.Home, `{"ledger":"read","messaging":"read","marketplace":"read"}`)
	require.NotContains(t, all.get("/app/").Is(200).Words(), "To do")
	waiting(o)
	all.get("/app/").Is(200).Says("To do", "Drafts to check 1", "Unread conversations 1", "New enquiries 2", "Who owes what")
	clerk := byKey(o, o.Home, write).get("/app/").Is(200).Says("Drafts to check 1")
	require.NotContains(t, clerk.Words(), "New enquiries")
	require.NotContains(t, clerk.Words(), "Unread")
	agent := byKey(o, o.Home, `{"messaging":"read"}`).get("/app/").Is(200).Says("Unread conversations 1", "You may not read the books")
	require.NotContains(t, agent.Words(), "Drafts to check")
	require.NotContains(t, byKey(o, o.Abroad, write).get("/app/").Is(200).Words(), "To do")

	past := all.get("/app/?as_of=2025-03-01").Is(200).Says("Earlier books 01 Mar 2025", "These are earlier books.", "₹1.00")
	require.Contains(t, past.Text, `href="/app/accounts?kind=bank&amp;as_of=2025-03-01&amp;known_at="`)
	then := all.get("/app/accounts?kind=bank&as_of=2025-03-01&known_at=").Is(200).Says("These are earlier books.", "₹1.00")
	require.Contains(t, then.Text, `?as_of=2025-03-01"`)
	require.NotContains(t, past.Words(), "Rows of today")
	require.NotContains(t, past.Words(), "To do")
	all.get("/app/").Is(200).Says("₹3.00", "Earlier books")
	all.get("/app/?known_at=never").Is(422).Says("Known at", "Earlier books")

	writer := byKey(o, o.Home, write)
	entry := with(form(writer.get(account), account+"/rows", ""), "date", time.Now().In(o.Sys.Zone).Format(time.DateOnly))
	for amount := 101; amount <= 116; amount++ {
		writer.site.Ask(http.MethodPost, account+"/rows",
			with(entry, "key", uuid.NewString(), "in_entries[0].amount", strconv.Itoa(amount))).Is(303)
	}
	rows := all.get("/app/").Is(200).Says("₹116.00", "₹102.00")
	require.NotContains(t, rows.Words(), "₹101.00", "the daybook has the first row of today")
	all.get(regexp.MustCompile(`href="(/app/daybook\?[^"]*)"`).FindStringSubmatch(html.UnescapeString(rows.Text))[1]).Is(200).
		Says("₹101.00", "₹116.00")
}

func TestFindLeadsToAccountsPeopleAndPages(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := karigar(o)
	o.Clerk(o.Home).POST("/client", `{"name":"Ravi Traders"}`).Status(201)
	waiting(o)
	b := byKey(o, o.Home, `{"ledger":"read","messaging":"read","marketplace":"read"}`)
	b.get("/app/find").Is(200).Says("Name, phone, slip number or page")
	require.Equal(t, account, b.get("/app/find?q=IMRAN").Is(http.StatusSeeOther).Header.Get("Location"), "it is the only hit")
	both := b.get("/app/find?q=ravi").Is(200).Says("Ravi Traders", "Client", "Conversations", "+91 98123 45001")
	require.Contains(t, both.Text, `href="/app/inbox/`)
	b.get("/app/find?q=98123450").Is(200).Says("Ravi")
	require.Contains(t, b.get("/app/find?q=daybook").Is(200).Text, `<a href="/app/daybook">Daybook</a></th>`)
	b.get("/app/find?q=nobody+at+all").Is(200).Says("Nothing has this in its name.")
	clerk := byKey(o, o.Home, write)
	clerk.get("/app/find?q=ravi").Is(http.StatusSeeOther) // without the permission to read messages, one account is found
	require.NotContains(t, clerk.get("/app/find?q=inbox").Is(200).Text, `href="/app/inbox"`)
	byKey(o, o.Abroad, write).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	byKey(o, o.Home, `{"messaging":"read"}`).get("/app/find?q=imran").Is(200).Says("Nothing has this in its name.")
	visitor(o).get("/app/find?q=imran").Leads("/app/sign-in?next=%2Fapp%2Ffind%3Fq%3Dimran")
}

func TestASlipNumberIsFound(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	client := apptest.IdOf(t, []byte(clerk.POST("/client", `{"name":"Ravi Traders"}`).Status(201).Text))
	made := clerk.POST("/client-order", fmt.Sprintf(`{"client_id":%d,"date":"2025-03-01","slip_number":"A-214",
		"items":[{"item_name":"kada","weight":10}]}`, client)).Status(201)
	received(o, "slip 215\nparty: ramesh\npayal 250 gm")
	b := byKey(o, o.Home, write)
	order := b.get("/app/find?q=a-214").Is(200).Says("Orders with this slip number", "Ravi Traders", "01 Mar 2025")
	require.Contains(t, order.Text, fmt.Sprintf(`href="/app/orders/%d"`, apptest.IdOf(t, []byte(made.Text))))
	draft := b.get("/app/find?q=215").Is(200).Says("Drafts with this slip number", "payal 250 gm")
	require.NotContains(t, draft.Words(), "Orders with this slip number")
	require.Regexp(t, `href="/app/drafts/\d+"`, draft.Text)
	byKey(o, o.Home, `{"messaging":"read"}`).get("/app/find?q=215").Is(200).Says("Nothing has this in its name.")
	byKey(o, o.Abroad, write).get("/app/find?q=a-214").Is(200).Says("Nothing has this in its name.")
}

func TestTheDaybookHasAllLedgersByDay(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := karigar(o)
	book(o, clerk, 2)
	b.get("/app/daybook").Is(200).Says("There are no rows of these days.", "The books are not locked.")
	shown := b.get("/app/daybook?from=2025-03-01&to=2025-03-02").Is(200).Says("01 Mar 2025", "HDFC",
		"Imran", "fine silver", "Bank, in all", "₹3.00", "497.500 g")
	require.Contains(t, shown.Text, `href="`+account+`"`)
	require.Contains(t, shown.Text, `href="`+account+`/rows/`)
	for _, link := range regexp.MustCompile(`href="(/books/daybook[^"]*)"`).FindAllStringSubmatch(shown.Text, -1) {
		require.NotEmpty(t, b.get(strings.ReplaceAll(link[1], "&amp;", "&")).Is(200).Text)
	}
	b.get("/app/daybook?from=2024-01-01&to=2025-03-02").Is(200).Says("This page has not all rows of the period.", "Imran")
	swapped := b.get("/app/daybook?from=2025-03-02&to=2025-03-01").Is(422).Says("From: must not be after to")
	require.NotContains(t, swapped.Words(), "Validation error")
	b.get("/app/daybook?from=x").Is(422)
	byKey(o, o.Abroad, write).get("/app/daybook?from=2025-03-01&to=2025-03-02").Is(200).Says("There are no rows of these days.")
	byKey(o, o.Home, `{"messaging":"read"}`).get("/app/daybook").Is(403)
}

func TestTheLockIsMovedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	const path = "/app/settings/books"
	b.get(path).Is(200).Says("Nothing is locked.")
	require.Contains(t, b.submit(path, path, "locked_through", "2025-13-01").Is(422).Text, `id="f-locked_through-set-books-lock-error"`)
	b.follow(b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2025-03-31")).
		Says("The lock is changed.", "The books are locked through 31 Mar 2025.")
	b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2198-01-01").Is(422).Says("Locked through must be before today")
	b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "").Is(422).Says("reason")
	stale := form(b.get(path), path, `value="set-books-lock"`)
	b.follow(b.submitOf(path, path, `value="set-books-lock"`, "locked_through", "2025-03-01", "reason", "a late bill"))
	refused := b.site.Ask(http.MethodPost, path, with(stale, "locked_through", "2025-04-30")).Is(412).
		Says("Another person has changed this", "locked through 01 Mar 2025")
	require.Contains(t, refused.Text, `value="2025-04-30"`)
	mended := with(form(refused, path, `value="set-books-lock"`), "locked_through", "2025-04-30")
	b.follow(b.site.Ask(http.MethodPost, path, mended)).Says("locked through 30 Apr 2025")
	b.follow(b.submit(path, path, "locked_through", "", "reason", "a late bill")).Says("Nothing is locked.")
}

func TestTheTrailIsInWords(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	clerk := o.Clerk(apptest.Home)
	b := byKey(o, apptest.Home, `{"audit":"read","ledger":"read"}`)
	clerk.With("Bahi-Reason", "a slip").PUT("/karigar-ledger/1",
		`{"id":1,"date":"2025-03-02","out_entries":[{"item_name":"fine silver","weight":500,"touch":99}]}`).Status(200)
	clerk.PUT("/karigar/1", `{"name":"Imran Khan"}`).Status(200)
	clerk.POST("/polisher", `{"name":"Raju","type":1}`).Status(201)
	var client map[string]any
	clerk.POST("/client", `{"name":"Patel"}`).Status(201).JSON(&client)
	clerk.POST("/client-order", fmt.Sprintf(`{"client_id":%v,"date":"2025-03-01","slip_number":"12",
		"items":[{"item_name":"payal","weight":250,"quantity":4}]}`, client["id"])).Status(201)
	clerk.POST("/takada", `{"client_order_id":1,"date":"2025-03-05","items":[{"item_name":"payal","weight":60}]}`).Status(201)
	clerk.PUT("/books/lock", `{"locked_through":"2025-01-31"}`).Status(200)
	openedWith(clerk, "karigar", `{"name":"Salim"}`, `{
		"date":"2025-03-06","in_entries":[{"pure_weight":100,"fine_percent":92,"fine_weight":80}]}`)
	shown := b.get("/app/audit").Is(200).Says(
		"An API key opened the account · Imran", "An API key added the row", "Given, line 1: fine silver · Weight 500.000 g",
		"An API key edited the row", "a slip", "01 Mar 2025 02 Mar 2025", "99.5 % 99 %", "An API key renamed the account", "Imran Khan",
		"Meena", "An API key added the order",
		"An API key added the takada of 05 Mar 2025", "payal", "250.000 g", "An API key moved the lock of the books",
		"Locked through 31 Jan 2025", "Slip number: 12", "Items, line 1: payal",
		"Warnings: line 1, Fine weight: 80.000 g is written, the other values give 92.000 g",
	)
	require.Contains(t, shown.Text, `href="`+account+`/rows/1"`)
	require.NotContains(t, shown.Words(), "in_entries")
	links := regexp.MustCompile(`href="(/audit/trail[^"]*)"`).FindAllStringSubmatch(shown.Text, -1)
	require.Len(t, links, 2)
	for _, link := range links {
		require.NotEmpty(t, b.get(strings.ReplaceAll(link[1], "&amp;", "&")).Is(200).Text)
	}
	b.get("/app/audit?from=2025-01-01&to=2025-01-02").Is(200).Says("Nothing was changed in these days.")
	b.get("/app/audit?user=user:0190a0a0-0000-7000-8000-000000000000").Is(200).Says("Nothing was changed in these days.")
	b.get("/app/audit?from=2020-01-01&to=" + time.Now().Add(24*time.Hour).Format(time.DateOnly)).Is(200).
		Says("This page has the newest changes of the period.")
	b.get("/app/audit?user=asha@example.com").Is(http.StatusUnprocessableEntity).Says("expected an id")
	byKey(o, apptest.OtherWorkspace, `{"audit":"read"}`).get("/app/audit").Is(200).Says("Nothing was changed in these days.")
	auditor := byKey(o, apptest.Home, `{"audit":"read"}`).get("/app/audit").Is(200)
	require.NotContains(t, auditor.Text, `href="`+account, "an auditor does not open accounts")
	byKey(o, apptest.Home, write).get("/app/audit").Is(403)

	o.Past(70) // the months between are over
	clerk.POST("/karigar-ledger/1/row/1/void", `{"reason":"typed twice"}`).Status(200)
	moved := b.get("/app/audit").Is(200).Says("An API key made the row void", "typed twice", "Closing balances that moved",
		"End of", "495.000 g owes you", "0.000 g settled")
	require.NotContains(t, moved.Words(), "opened the account")

	o.Person("asha@example.com")
	own := signedIn(o, "asha@example.com")
	require.Regexp(t, `<option value="user:[^"]+">`, own.get("/app/audit").Is(200).Text)
}

func TestPagesNameWhoDidSomething(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	ravi.PUT(apptest.Me, `{"first_name":"Ravi","last_name":"Shah"}`).Status(200)
	asha.Join(o, ravi, `{"ledger":"write"}`)
	account := book(o, asha.Client, 1)
	b := signedIn(o, o.Address("asha"))
	row := b.rows(account)[0]
	edit := func(c *apitest.Client, amount int) {
		c.PUT("/bank-ledger/"+path.Base(account),
			fmt.Sprintf(`{"id":%s,"date":"2025-03-01","in_entries":[{"amount":%d}]}`, path.Base(row), amount)).Status(200)
	}
	edit(ravi.With("Bahi-Workspace", asha.Workspace), 7)
	edit(o.Clerk(asha.Workspace), 8)
	b.get(row).Is(200).Says("You added the row", "Ravi Shah edited the row", "API key for a test edited the row")
	require.NotContains(t, b.get(row).Text, ravi.User.ID)

	his := signedIn(o, o.Address("ravi"))
	his.submit("/app/", "/app/workspace", "workspace", asha.Workspace).Leads("/app/?done=workspace")
	his.get(row).Is(200).Says("A member added the row", "You edited the row", "An API key edited the row")
	asha.DELETE("/api/v1/workspaces/" + asha.Workspace + "/members/" + ravi.User.ID).Status(204)
	b.get(row).Is(200).Says("former member edited the row")
}

func TestTheCompanyStandsOnPrints(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	seller := o.Bearer(o.Key(o.Home, `{"ledger":"write","marketplace":"write"}`).Key)
	account := book(o, seller, 1)
	b := byKey(o, o.Home, write)
	require.NotContains(t, b.get(account+"/statement").Is(200).Text, `class="company"`)
	o.Bearer(o.Key(o.Abroad, `{"marketplace":"write"}`).Key).POST("/api/v1/companies", `{"name":"Elsewhere"}`).Status(201)
	seller.POST("/api/v1/companies", `{"name":"Soni Jewellers"}`).Status(201)
	seller.POST("/api/v1/companies", `{"name":"Younger"}`).Status(201)
	require.Contains(t, b.get(account+"/statement").Is(200).Text, `<p class="company">Soni Jewellers</p>`)
}

// figure matches an amount or a weight of a page.
var figure = regexp.MustCompile(`₹[\d,]+\.\d\d|[\d,]+\.\d{3} g`)

// figuresOf adds the numbers of a JSON value as pages show them.
func figuresOf(value any, all map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, one := range value {
			figuresOf(one, all)
		}
	case []any:
		for _, one := range value {
			figuresOf(one, all)
		}
	case float64:
		n := decimal.NewFromFloat(value).Abs()
		all["₹"+unit.Indian(n.StringFixed(unit.MoneyPlaces))] = true
		all[unit.Indian(n.StringFixed(unit.GramsPlaces))+" g"] = true
	}
}

// TestPagesShowFiguresOfTheInterface shows for each right that a page shows only figures that the API returns to the same visitor, and that
// a page without them is refused as the API refuses.
func TestPagesShowFiguresOfTheInterface(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := keptBooks(o)
	ledger, totals := "/karigar-ledger/1", "/karigar-ledger/1/totals"
	operator := visitor(o)
	operator.submit("/app/sign-in", "/app/sign-in", "key", apptest.OperatorKey).Leads("/app/")
	const all = `{"ledger":"write","messaging":"write","marketplace":"write","audit":"read"}`
	visitors := map[string]browser{"operator": operator, "stranger": byKey(o, apptest.OtherWorkspace, all)}
	for _, rights := range []string{all, write, `{"ledger":"read"}`, `{"messaging":"write"}`, tradeRead, `{"audit":"read"}`} {
		visitors[rights] = byKey(o, o.Home, rights)
	}
	for who, b := range visitors {
		for page, reads := range map[string][]string{
			"/app/":                  {"/books/summary?newest=15"},
			"/app/?as_of=2025-03-01": {"/books/summary?as_of=2025-03-01"},
			"/app/accounts":          {"/books/accounts"},
			"/app/list/parties":      {"/books/accounts"},
			"/app/daybook?from=2025-03-01&to=2025-03-31": {"/books/daybook?from=2025-03-01&to=2025-03-31"},
			account:                                {"/karigar/1", ledger},
			account + "?as_of=2025-03-01":          {"/karigar/1?as_of=2025-03-01", ledger + "?as_of=2025-03-01"},
			account + "/statement?from=2025-03-02": {"/karigar/1", ledger + "?from=2025-03-02", totals + "?from=2025-03-02"},
			account + "/statement?as_of=2025-03-01&to=2025-03-31": {
				"/karigar/1?as_of=2025-03-01", ledger + "?as_of=2025-03-01", totals + "?as_of=2025-03-01",
			},
		} {
			status, known := http.StatusOK, map[string]bool{}
			for _, read := range reads {
				var value any
				got := b.get(read)
				require.NoError(t, json.Unmarshal([]byte(got.Text), &value))
				if status = max(status, got.Status); got.Status == http.StatusOK {
					figuresOf(value, known)
				}
			}
			shown := b.get(page)
			found := figure.FindAllString(shown.Words(), -1)
			for _, one := range found {
				require.True(t, known[one], "%s sees %s on %s", who, one, page)
			}
			if strings.HasPrefix(page, "/app/?") || page == "/app/" {
				status = http.StatusOK // without the books, it has the other tasks
			}
			shown.Is(status)
			require.True(t, len(found) > 0 || page == "/app/list/parties" || !strings.Contains(who, "ledger"), "%s on %s", who, page)
		}
	}
}
