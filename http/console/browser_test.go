package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
	"bahi/http/pages/browsertest"
	"bahi/internal/app/apptest"
)

// fill posts rows to an account, two events each.
func fill(clerk *apitest.Client, account int64, rows int) {
	bodies := make([]string, rows)
	for i := range bodies {
		day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i%400)
		bodies[i] = apptest.Deposit(day.Format(time.DateOnly), fmt.Sprintf("%d.%02d", 100+i*37%900, i%100))
	}
	for some := range slices.Chunk(bodies, 20) { // a fill folds a transaction at once
		clerk.POST(apptest.Ledger(account, "/rows"), apptest.Bulk(some...)).Status(201)
	}
}

func TestRemarksOfTheBrowserAreNoErrors(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>x</title><input autofocus><input id="b"><script>
			document.getElementById("b").focus(); requestAnimationFrame(() => setTimeout(() => document.title = "drawn", 100))</script>`)
	}))
	t.Cleanup(server.Close)
	p := browsertest.Open(t, server.URL)
	p.Go("/")
	p.Until(`document.title === "drawn"`)
	require.Empty(t, p.Forgive())
}

func TestSignInOpensTheRequestedPage(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	p := browsertest.Open(t, o.URL)
	p.Go("/console/jobs?state=completed")
	p.Type("#key", "bahi_wrong")
	p.Submit("main button")
	require.Equal(t, "This key does not open the console.", p.Text("[role=alert]"))
	require.True(t, p.Is(`document.activeElement.id === "key"`))
	p.Type("#key", apptest.OperatorKey)
	p.Submit("main button")
	require.Equal(t, "/console/jobs?state=completed", p.URL())
	require.Equal(t, "Jobs", p.Text("h1"))

	p.Submit("button[value=dark]")
	require.Equal(t, "/console/jobs?state=completed", p.URL())
	require.True(t, p.Is(`getComputedStyle(document.documentElement).colorScheme === "dark"`))
	p.Submit("button[value=light]")
	require.True(t, p.Is(`getComputedStyle(document.documentElement).colorScheme === "light"`))
	p.Submit(".leave button")
	require.Equal(t, "Sign in", p.Text("h1"))
	p.Go("/console/events")
	require.Equal(t, "Sign in", p.Text("h1"))
}

func TestRebuildIsWatchedPausedCancelledAndRolledBack(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	fill(clerk, account, 1600)
	p := o.Browse()
	p.Go("/console/projections")
	p.Submit(`a[href$="/projections/books"]`)
	was := p.Text("#generation")

	// A slow rebuild is paused, throttled and cancelled on one page.
	p.Submit("#rebuild")
	require.Contains(t, p.Text(".facts"), "Events to fold")
	p.Type("#throttle", "40")
	p.Submit("main form button")
	require.Contains(t, p.Text(".done"), "The rebuild was requested.")
	p.Until(`document.querySelector(".build progress")?.value > 0`)
	first := p.Text(".build .facts")
	p.Until(`document.querySelector(".build .facts").innerText !== ` + quoted(t, first))
	require.Contains(t, p.Text(".build"), "filling")
	require.Regexp(t, `The rebuild of books: \d+ percent filled`, p.Text("#said"))
	p.Submit("#pause")
	p.Until(`document.querySelector(".build .chip")?.innerText === "paused"`)
	p.Submit("#resume")
	p.Until(`document.querySelector(".build .chip")?.innerText === "filling"`)
	p.Click("#cancel")
	p.Submit("details[open] .danger")
	require.Contains(t, p.Text(".done"), "The rebuild was cancelled.")
	p.Until(`!document.querySelector(".build") && document.querySelector("#rebuild")`)
	require.Equal(t, was, p.Text("#generation"))

	// A rebuild at full speed is watched until the same page shows the new generation.
	p.Submit("#rebuild")
	p.Submit("main form button")
	p.Until(`document.querySelector("#generation").innerText !== ` + quoted(t, was))
	p.Until(`document.querySelector("#rollback") && /is live/.test(document.querySelector("#said").innerText)`)
	require.Contains(t, p.Text(".facts"), "Kept for a rollback\ngeneration "+was+", until ")
	require.Equal(t, o.Projection("books").Generation, asNumber(t, p.Text("#generation")))

	p.Click("#rollback")
	p.Submit("details[open] .danger")
	p.Until(`document.querySelector("#generation").innerText === ` + quoted(t, was))
	require.Contains(t, p.Text(".done"), "The earlier generation is live again.")
	require.Equal(t, o.Projection("books").Generation, asNumber(t, was))
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	q, err := json.Marshal(text)
	require.NoError(t, err)
	return string(q)
}

func asNumber(t *testing.T, text string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(text, &n)
	require.NoError(t, err)
	return n
}

func TestLedgerIsShownAsOfADayAndAsKnown(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "125000.50"))
	apptest.Post(clerk, account, apptest.Withdrawal("2025-03-05", "4000"))
	known := o.Head()
	clerk.With("Bahi-Reason", "the slip said so").PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("152000.5"))).Status(200)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-03", "0.25"))

	p := o.Browse()
	p.Go("/console/ledger")
	p.Type("#q", "hdf")
	p.Submit("main form button")
	p.Submit("tbody th a")
	shown := func() []string {
		return append([]string{p.Text("#balance")}, p.Texts(".book tr:not(.carried) td.left")...)
	}
	require.Equal(t, []string{"1,48,000.75", "1,52,000.50", "1,52,000.75", "1,48,000.75"}, shown())
	require.Contains(t, p.Text("figcaption"), "highest 1,52,000.75 on 03 Mar 2025, lowest 1,48,000.75 on 05 Mar 2025")
	for query, fields := range map[string]map[string]string{
		"?as_of=2025-03-04":                                  {"#as_of": "2025-03-04"},
		fmt.Sprintf("?known_at=%d", known):                   {"#known_at": strconv.FormatInt(known, 10)},
		fmt.Sprintf("?known_at=%d&as_of=2025-03-04", known):  {"#known_at": strconv.FormatInt(known, 10), "#as_of": "2025-03-04"},
		"?known_at=1":                                        {"#known_at": "1"},
		"?known_at=" + time.Now().UTC().Format(time.RFC3339): {"#known_at": time.Now().UTC().Format(time.RFC3339)},
	} {
		p.Go(fmt.Sprintf("/console/ledger/bank/%d", account))
		for field, value := range fields {
			p.Evaluate(fmt.Sprintf(`void (document.querySelector(%q).value = %q)`, field, value), nil)
		}
		if query == "?known_at=1" { // before the account was opened
			clerk.GET(apptest.Ledger(account, query)).Problem(404, "Bank account not found")
			p.Submit("form.past button")
			require.Equal(t, "There is no such account in this state of the books.", p.Text("#missing"))
			continue
		}
		p.Submit("form.past button")
		var rows []apptest.BankRow
		clerk.GET(apptest.Ledger(account, query)).Status(200).JSON(&rows)
		texts := p.Texts(".book tr:not(.carried) td.left")
		require.Len(t, texts, len(rows), query)
		for i, r := range rows {
			require.Equal(t, plain(r.Balance.String()), plain(texts[i]), query)
		}
		require.Equal(t, texts[len(texts)-1], p.Text("#closing"))
		require.NotEmpty(t, p.Text("#then"))
	}
	p.Go(fmt.Sprintf("/console/ledger/bank/%d?known_at=999999", account))
	require.Equal(t, fmt.Sprintf("the log ends at %d", o.Head()), p.Text("#known_at-wrong"))

	p.Go(fmt.Sprintf("/console/ledger/bank/%d", account))
	p.Submit(fmt.Sprintf(".book a[href$='/rows/%d']", row.ID))
	require.Equal(t, []string{"date", "in_entries[0].amount", "in_entries[0].amount"}, p.Texts(".changes tbody th"))
	require.Equal(t, "the slip said so", p.Text("blockquote"))
	require.Equal(t, "125000.5", p.Text(".changes del"))
	p.Submit(".history li:first-child a:last-of-type")
	require.Equal(t, "1,25,000.50", p.Text("#balance"), "the ledger as known then")
}

// plain returns an amount without commas and trailing zeros.
func plain(amount string) string {
	amount = strings.NewReplacer(",", "", "−", "-").Replace(amount)
	if strings.Contains(amount, ".") {
		amount = strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
	}
	return amount
}

func TestReversedAndVoidRowsAreMarked(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	first, twice, wrong := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "5")), apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "5")), apptest.Post(clerk, account, apptest.Deposit("2025-03-02", "100"))
	because := clerk.With("Bahi-Reason", "typed twice")
	because.POST(apptest.At(account, twice.ID, "/void"), nil).Status(200)
	voided := o.Head()
	var back apptest.BankRow
	because.POST(apptest.At(account, wrong.ID, "/reverse"), nil).Status(201).JSON(&back)

	p := o.Browse()
	page := fmt.Sprintf("/console/ledger/bank/%d", account)
	p.Go(page)
	require.Equal(t, []string{"5.00", "5.00", "105.00", "5.00"}, p.Texts(".book tr:not(.carried) td.left"))
	require.Equal(t, []string{"0.00", "5.00"}, []string{p.Text("#opening"), p.Text("#closing")}, "void rows do not count")
	var struck []string
	p.Evaluate(`[...document.querySelectorAll(".book tr")].filter(r => getComputedStyle(r.querySelector(".in") || r).textDecorationLine === "line-through").map(r => r.querySelector(".id").innerText)`, &struck)
	require.Equal(t, []string{strconv.FormatInt(twice.ID, 10)}, struck)
	require.Equal(t, []string{"void"}, p.Texts(".book .chip"))
	require.Equal(t, []string{fmt.Sprintf("reversed by row %d", back.ID), fmt.Sprintf("reverses row %d", wrong.ID)}, p.Texts(".book .hint"))

	p.Submit(fmt.Sprintf(".book .id a[href$='/rows/%d']", wrong.ID))
	require.Equal(t, []string{"added", "reversed"}, p.Texts(".history .chip"))
	p.Submit(fmt.Sprintf(".history a[href$='/rows/%d']", back.ID))
	require.Equal(t, []string{"added"}, p.Texts(".history .chip"))
	require.Contains(t, p.Text(".history"), fmt.Sprintf("It reverses row %d.", wrong.ID))
	p.Go(fmt.Sprintf("%s/rows/%d", page, twice.ID))
	require.Equal(t, []string{"added", "voided"}, p.Texts(".history .chip"))
	p.Go(fmt.Sprintf("/console/events/%d", voided))
	require.Equal(t, fmt.Sprintf("Row %d was voided", twice.ID), p.Text("#c-title"))
	require.Equal(t, []string{"void"}, p.Texts(".changes tbody th"))
	p.Go(fmt.Sprintf("%s/rows/%d", page, first.ID))
	require.Equal(t, []string{"added"}, p.Texts(".history .chip"))
}

func TestLongLedgerIsShownInPages(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	fill(clerk, account, 520)
	p := o.Browse()
	p.Go(fmt.Sprintf("/console/ledger/bank/%d", account))
	var rows []apptest.BankRow
	clerk.GET(apptest.Ledger(account)).Status(200).JSON(&rows)
	shown, carried := 0, "0.00"
	for page := 1; ; page++ {
		require.Contains(t, p.Text(".pager"), fmt.Sprintf("Page %d of 11", page))
		require.Equal(t, carried, p.Text("#opening"))
		for _, text := range p.Texts(".book tr:not(.carried) td.left") {
			require.Equal(t, plain(rows[shown].Balance.String()), plain(text))
			shown++
		}
		carried = p.Text("#closing")
		if !p.Is(`document.querySelector(".pager [rel=next]")`) {
			break
		}
		p.Submit(".pager [rel=next]")
	}
	require.Equal(t, len(rows), shown)
	require.Equal(t, p.Text("#balance"), carried)
	require.True(t, p.Is(`document.querySelectorAll(".hit").length > 100`), "the chart has the days of all pages")
	p.Submit(".pager [rel=prev]")
	p.Go(fmt.Sprintf("/console/ledger/bank/%d?known_at=%d&page=11", account, o.Head()))
	require.Equal(t, carried, p.Text("#closing"))
	require.True(t, p.Is(`document.querySelectorAll(".hit").length > 30`))
}

func TestEventIsSkippedInTheBrowser(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	p := o.Browse()
	p.Go("/console/projections/books")
	o.Park()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	p.Until(`document.querySelector(".trouble details")`) // the page refreshes itself
	p.Until(`/is parked/.test(document.querySelector("#said").innerText)`)
	p.Click(".trouble summary")
	p.Click(".trouble .danger")
	require.True(t, p.Is(`document.querySelector("textarea:invalid")`), "the reason is required")
	p.Type("textarea", "written by a <b>broken</b> import")
	p.Submit(".trouble .danger")
	require.Equal(t, "The event is skipped, which the log records.", p.Text(".done"))
	p.Until(`/is live/.test(document.querySelector("#said").innerText)`)
	p.Go("/console/events?type=EventSkipped")
	p.Submit("td.n a")
	require.Contains(t, p.Text("pre"), `"reason": "written by a <b>broken</b> import"`)
}

func TestConsoleWorksByKeyboard(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	fill(o.Clerk(apptest.Home), apptest.Open(o.Clerk(apptest.Home), "HDFC"), 20)
	p := browsertest.Open(t, o.URL)
	p.Go("/console/")
	require.True(t, p.Is(`document.activeElement.id === "key"`))
	p.Keys(apptest.OperatorKey)
	p.Enter()
	p.Keys(kb.Tab)
	require.True(t, p.Is(`document.activeElement.matches(".skip")`), "the first Tab stop skips the navigation")
	p.Until(`document.activeElement.getBoundingClientRect().top >= 0`) // and is seen
	p.TabTo(`nav a[href$="/projections"]`)
	p.Enter()
	p.TabTo(`tbody a[href$="/books"]`)
	p.Enter()
	was := p.Text("#generation")
	p.TabTo("#rebuild")
	require.True(t, p.Is(`getComputedStyle(document.activeElement).outlineStyle !== "none"`), "the focus must be visible")
	p.Enter()
	p.TabTo("main form button")
	p.Enter()
	p.Until(`document.querySelector("#generation").innerText !== ` + quoted(t, was))
	p.Until(`document.querySelector("#rollback")`)
	p.TabTo("#rollback")
	p.Keys(kb.Enter)
	p.TabTo("details[open] .danger")
	p.Enter()
	p.Until(`document.querySelector("#generation").innerText === ` + quoted(t, was))
}

func TestFocusSurvivesUpdates(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	p := o.Browse()
	p.Go("/console/projections/books")
	p.TabTo("#pause")
	before := p.Text("#live")
	o.Sql(`update projection.generation set rate = 7654 where name = 'books' and live`)
	p.Until(`document.querySelector("#live").innerText !== ` + quoted(t, before))
	require.True(t, p.Is(`document.activeElement.id === "pause"`))
}

func TestEndOfASessionSendsThePageToSignIn(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	key := o.Key("", `{"operator":true}`)
	p := browsertest.Open(t, o.URL)
	p.Go("/console/projections")
	p.Type("#key", key.Key)
	p.Submit("main button")
	require.Equal(t, "Projections", p.Text("h1"))
	o.Operator().DELETE("/api/v1/api-keys/" + key.ID).Status(204)
	p.Until(`document.querySelector("h1").innerText === "Sign in"`)
}

func TestPagesAreAccessibleInEveryTheme(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	fill(clerk, account, 60)
	row := apptest.Post(clerk, account, `{"date":"2025-03-01","in_entries":[{"description":"sale","amount":1}]}`)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)).Status(200)
	edited := o.Head()
	because := clerk.With("Bahi-Reason", "typed twice")
	because.POST(apptest.At(account, apptest.Post(clerk, account, apptest.Deposit("2025-03-03", "5")).ID, "/void"), nil).Status(200)
	because.POST(apptest.At(account, apptest.Post(clerk, account, apptest.Deposit("2025-03-03", "5")).ID, "/reverse"), nil).Status(201)
	o.Person("asha@example.com")
	o.Worked("send_verification")
	// One projection differs, one is parked, one is being filled.
	o.Sql(`insert into projection.generation (name, generation, version, ddl_sha256, live, building, store_id, position, phase, total, paused, differences)
		select name, 70, version, ddl_sha256, false, false, store_id, position, 'differs', position, true, '[{"table":"member","count":1,"rows":[{"where":"log","row":{"id":1}}]}]'
		from projection.generation where name = 'workspaces' and live`)
	o.Sql(`update projection.generation set error = 'it does not fit', error_at = now(), error_position = 3 where name = 'api_keys' and live`)
	o.Sql(`update river.river_job set state = 'discarded', finalized_at = now(), errors = array['{"error":"no answer","at":"2025-03-01T00:00:00Z","attempt":1}'::jsonb] where kind = 'send_verification'`)
	p := browsertest.Open(t, o.URL)
	looks := func(path string) {
		t.Helper()
		p.Go(path)
		p.Look(1280, 800, false)
		p.Accessible()
		p.Look(1280, 800, true)
		p.Accessible("color-contrast") // the other rules were checked in the light theme
		p.Look(360, 740, false)
		require.True(t, p.Is(`document.documentElement.scrollWidth <= 360`), "%s is wider than a phone", path)
	}
	looks("/console/sign-in")
	p.Type("#key", "wrong")
	p.Submit("main button")
	p.Accessible()
	p.Type("#key", apptest.OperatorKey)
	p.Submit("main button")
	for _, path := range []string{
		"/", "/projections", "/projections/books", "/projections/workspaces", "/projections/api_keys", "/projections/books/rebuild",
		"/events", "/events?from_position=x", fmt.Sprintf("/events/%d", edited), "/events?type=None",
		"/ledger", "/ledger?q=none", "/ledger/summary/" + apptest.Home, "/ledger/summary/" + apptest.Home + "?known_at=x", "/ledger/orders/" + apptest.Home, fmt.Sprintf("/ledger/bank/%d", account), fmt.Sprintf("/ledger/bank/%d?known_at=%d&as_of=2025-03-01", account, edited),
		fmt.Sprintf("/ledger/bank/%d?known_at=x", account), fmt.Sprintf("/ledger/bank/%d/rows/%d", account, row.ID),
		"/parked", "/jobs", "/jobs?kind=none", "/webhooks", "/drafts", "/companies", "/companies?q=none", "/outbox", "/nothing",
	} {
		looks("/console" + path)
	}
}
