package pages_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// browser is a browser without scripts, which submits the forms that pages have.
type browser struct {
	t    testing.TB
	site interface {
		Ask(method, path string, form url.Values) apptest.Page
	}
}

func visitor(o *apptest.Server) browser { return browser{o.T, o.Visitor()} }

func (b browser) get(path string) apptest.Page {
	b.t.Helper()
	return b.site.Ask(http.MethodGet, path, nil)
}

// ids returns what a pattern finds in a page.
func (b browser) ids(path, pattern string) (found []string) {
	b.t.Helper()
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(b.get(path).Is(200).Text, -1) {
		found = append(found, m[1])
	}
	return found
}

// rows returns the addresses of the rows of an account's page, the newest first.
func (b browser) rows(account string) []string {
	return b.ids(account, `href="(/app/accounts/\w+/\d+/rows/\d+)">`)
}

// signedIn returns the browser of a member.
func signedIn(o *apptest.Server, email string) browser {
	o.T.Helper()
	b := visitor(o)
	b.submit("/app/sign-in", "/app/sign-in", "email", email, "password", apptest.GoodPassword).Leads("/app/")
	return b
}

// byKey returns the browser of the owner of an API key.
func byKey(o *apptest.Server, workspace, permissions string) browser {
	o.T.Helper()
	b := visitor(o)
	b.submit("/app/sign-in", "/app/sign-in", "key", o.Key(workspace, permissions).Key).Leads("/app/")
	return b
}

var (
	formOf   = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	hiddenOf = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// form returns the hidden values of a page's form that has a text and posts to an address; "" is any address.
func form(s apptest.Page, action, has string) url.Values {
	values := url.Values{}
	for _, text := range formOf.FindAllString(s.Text, -1) {
		if action != "" && !strings.Contains(text, `action="`+action+`"`) || !strings.Contains(text, has) {
			continue
		}
		for _, m := range hiddenOf.FindAllStringSubmatch(text, -1) {
			values.Set(m[1], m[2])
		}
		break
	}
	return values
}

// filled returns the values that a browser sends for the form of a page with an attribute.
func filled(s apptest.Page, attribute string) url.Values {
	_, inside, _ := strings.Cut(s.Text, attribute)
	inside, _, _ = strings.Cut(inside, "</form>")
	return apitest.Filled(inside)
}

// submit fills the form of a page, and submits it.
func (b browser) submit(page, action string, pairs ...string) apptest.Page {
	b.t.Helper()
	return b.submitOf(page, action, "", pairs...)
}

func (b browser) submitOf(page, action, has string, pairs ...string) apptest.Page {
	b.t.Helper()
	values := form(b.get(page).Is(200), action, has)
	require.NotEmpty(b.t, values, "%s has no form for %s", page, action)
	return b.site.Ask(http.MethodPost, action, with(values, pairs...))
}

// follow opens the page to which a response redirects.
func (b browser) follow(s apptest.Page) apptest.Page {
	b.t.Helper()
	s.Is(http.StatusSeeOther)
	return b.get(s.Header.Get("Location")).Is(200)
}

const write = `{"ledger":"write"}`

// entries has a row of each ledger, and the texts of the account's page after it.
var entries = []struct {
	kind, open string
	row        []string
	says       []string
}{
	{"bank", "", []string{"in_entries[0].amount", "1,20,000", "in_entries[0].description", "rent"}, []string{"₹1,20,000.00", "rent"}},
	{"bullion", "", []string{"out_entries[0].item_name", "bar", "out_entries[0].weight", "100", "out_entries[0].touch", "99.5"},
		[]string{"99.500 g", "owes you", "ƒ", "worked out"}},
	{"client", "", []string{"out_entries[0].item_name", "payal", "out_entries[0].weight", "520", "out_entries[0].touch", "92"},
		[]string{"478.400 g", "owes you"}},
	{"karigar", "", []string{
		"in_entries[0].item_name", "payal", "in_entries[0].pure_weight", "520", "in_entries[0].fine_percent", "92",
		"in_entries[0].wastage_percent", "2", "in_entries[0].other", "1500",
	}, []string{"478.400 g", "10.400 g", "₹1,500.00", "you owe"}},
	{"polisher", "1", []string{"out_entries[0].item_name", "kada", "out_entries[0].weight", "12.5"}, []string{"12.500 g", "owes you"}},
}

func TestBooksAreKeptInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	var kept []string
	for _, e := range entries {
		opened := b.submitOf("/app/accounts", "/app/accounts", `name="token"`, "kind", e.kind, "name", "Party of "+e.kind, "type", e.open)
		b.follow(opened).Says("The account is open.", "Party of "+e.kind, "There are no rows yet.")
		account, _, _ := strings.Cut(opened.Header.Get("Location"), "?")
		preview := b.submit(account, account+"/rows", append([]string{"date", "2025-03-01", "preview", "part"}, e.row...)...).Is(200)
		preview.Says("After it:")
		require.NotContains(t, preview.Text, "<main", "only a part is sent")
		b.get(account).Is(200).Says("There are no rows yet.")
		added := b.submit(account, account+"/rows", append([]string{"date", "2025-03-01"}, e.row...)...)
		b.follow(added).Says(append([]string{"Saved.", "01 Mar 2025"}, e.says...)...)
		deletion := regexp.MustCompile(`(?s)<summary>Delete the account</summary>.*?</details>`).FindString(b.get(account).Text)
		require.Contains(t, deletion, "go with it. Balance now:")
		require.Contains(t, deletion, regexp.MustCompile(`<b>([^<]+)`).FindStringSubmatch(b.get(account).Text)[1])
		require.Equal(t, e.kind == "client", strings.Contains(deletion, "orders and takadas"))
		row := account + "/rows/" + regexp.MustCompile(`row=(\d+)`).FindStringSubmatch(added.Header.Get("Location"))[1]
		b.get(row).Is(200).Says("History", "added the row")
		b.get(account + "/statement?from=2025-03-01").Is(200).Says("from 01 Mar 2025")
		for _, kind := range []string{"pdf", "csv", "xlsx"} { // the files open by the cookie
			link := regexp.MustCompile(`href="([^"]+\.` + kind + `\?[^"]*)"`).FindStringSubmatch(b.get(account + "/statement?from=2025-03-01").Text)
			require.NotNil(t, link, kind)
			require.NotEmpty(t, b.get(strings.ReplaceAll(link[1], "&amp;", "&")).Is(200).Text)
		}
		voided := b.submitOf(row, row, `value="void"`, "reason", "typed twice")
		b.follow(voided).Says("The row is void.", "made the row void", "typed twice")
		rename := "rename-" + e.kind
		b.follow(b.submitOf(account, account, `value="`+rename+`"`, "name", "New party of "+e.kind)).
			Says("The change is saved.", "New party of "+e.kind)
		kept = append(kept, account)
	}
	b.get("/app/").Is(200).Says("Who owes what", "Karigar", "Bank")
	b.get("/app/accounts?q=karigar&go=1").Is(http.StatusSeeOther)
	b.get("/app/accounts?kind=bank").Is(200).Says("New party of bank")
	require.NotContains(t, b.get("/app/accounts?kind=bank").Words(), "party of client")
	for i, account := range kept {
		remove := `value="delete-` + entries[i].kind + `"`
		require.NotContains(t, b.get(account+"?as_of=2025-03-01").Text, remove, "earlier books have another balance")
		b.submitOf(account, account, remove).Is(422).Says("Say why.")
		b.follow(b.submitOf(account, account, remove, "reason", "opened twice")).Says("Deleted.")
		b.get(account).Is(404)
	}
}

// book is an account of a bank with rows.
func book(_ *apptest.Server, clerk *apitest.Client, rows int) (address string) {
	account := apptest.Open(clerk, "HDFC")
	for i := range rows {
		apptest.Post(clerk, account, apptest.Deposit(fmt.Sprintf("2025-03-%02d", i%28+1), fmt.Sprint(i+1)))
	}
	return fmt.Sprintf("/app/accounts/bank/%d", account)
}

func TestRowsAreCorrectedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 3)
	rows := b.rows(account)
	first, second, third := rows[2], rows[1], rows[0]
	edited := b.submitOf(first, first, `value="edit"`, "date", "2025-03-01", "in_entries[0].amount", "₹ 7.50", "reason", "a slip")
	b.follow(edited).Says("The row was changed.", "edited the row", "a slip", "Received, line 1 · Amount", "₹1.00", "₹7.50")
	require.NotContains(t, b.get(first).Words(), "in_entries")

	stale := form(b.get(first), first, `value="edit"`)
	b.follow(b.submitOf(first, first, `value="edit"`, "date", "2025-03-01", "in_entries[0].amount", "8", "reason", "read"))
	b.site.Ask(http.MethodPost, first, with(stale, "reason", "read again", "date", "2025-03-01", "in_entries[0].amount", "9")).Is(412).
		Says("Another person has changed this", "Before is what is saved now, After is what you wrote.", "What Before After", "₹8.00", "₹9.00")

	b.submitOf(first, first, `value="edit"`, "date", "2025-03-01", "in_entries[0].amount", "much", "reason", "x").Is(422).Says("Amount")
	silent := b.submitOf(first, first, `value="edit"`, "date", "2025-03-01", "in_entries[0].amount", "6").Is(422).Says("Say why.")
	require.Contains(t, silent.Text, `value="6"`)
	b.submitOf(first, first, `value="void"`).Is(422).Says("Say why.")
	b.submitOf(first, first, `value="void"`, "preview", "page").Is(200).Says("After it:")
	reversed := b.submitOf(second, second, `value="reverse"`, "date", "2025-03-05", "reason", "wrong account")
	b.follow(reversed).Says("The row was reversed.", "reverses row "+path.Base(second))
	deleted := b.submitOf(third, third, `value="delete"`, "reason", "never was")
	b.follow(deleted).Says("Deleted.")
	b.get(third).Is(200).Says("It was deleted.", "never was")
	b.get(account + "/rows/999999").Is(404)
}

// TestTheHiddenSideIsNotBooked sends values of both sides, since a page only hides those of the side that is not chosen.
func TestTheHiddenSideIsNotBooked(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 0)
	empty := with(form(b.get(account), account+"/rows", ""), "side", "out", "date", "2025-03-01")
	nothing := b.site.Ask(http.MethodPost, account+"/rows", with(empty, "preview", "part"))
	require.Equal(t, "Not complete yet.", strings.TrimSpace(nothing.Words()))
	require.Regexp(t, `id="f-out_entries-error"`, b.site.Ask(http.MethodPost, account+"/rows", empty).Is(422).Text)
	for _, c := range []struct{ side, balance string }{{"in", "₹5,000.00"}, {"out", "−₹300.00"}, {"both", "₹4,700.00"}} {
		both := with(form(b.get(account), account+"/rows", ""), "side", c.side, "date", "2025-03-01",
			"in_entries[0].amount", "5000", "out_entries[0].amount", "300")
		for _, preview := range []string{"part", "page"} {
			b.site.Ask(http.MethodPost, account+"/rows", with(both, "preview", preview)).Is(200).Says("After it: " + c.balance)
		}
		added := b.site.Ask(http.MethodPost, account+"/rows", both)
		row := b.follow(added).Says("Saved.").Words()
		require.Equal(t, c.side != "out", strings.Contains(row, "Amount ₹5,000.00"), c.side)
		require.Equal(t, c.side != "in", strings.Contains(row, "Amount ₹300.00"), c.side)
		b.follow(b.submitOf(added.Header.Get("Location"), b.rows(account)[0], `value="undone"`))
	}
}

func TestAFormThatIsSentTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 0)
	filled := with(form(b.get(account), account+"/rows", ""), "date", "2025-03-01", "in_entries[0].amount", "5")
	first := b.site.Ask(http.MethodPost, account+"/rows", filled)
	require.Equal(t, first.Header.Get("Location"), b.site.Ask(http.MethodPost, account+"/rows", filled).Is(303).Header.Get("Location"))
	undone := b.submitOf(first.Header.Get("Location"), b.rows(account)[0], `value="undone"`)
	b.follow(undone).Says("The last entry was taken back.", "There are no rows yet.")

	again := with(form(b.get(account), account+"/rows", ""), "date", "2025-13-01", "in_entries[0].amount", "many")
	refused := b.site.Ask(http.MethodPost, account+"/rows", again).Is(422)
	require.Contains(t, refused.Text, `aria-invalid="true"`)
	require.Contains(t, refused.Text, `value="many"`)
	require.Equal(t, again.Get("key"), form(refused, account+"/rows", "").Get("key"), "the mended form is the same entry")
}

func TestASecondAccountOfANameIsOpenedOnRequest(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	const path = "/app/accounts"
	drawn := with(form(b.get(path).Is(200), path, `id="new-kind"`), "kind", "client", "name", "Mehta Jewellers")
	first := b.site.Ask(http.MethodPost, path, drawn).Is(303).Header.Get("Location")
	require.Equal(t, first, b.site.Ask(http.MethodPost, path, drawn).Is(303).Header.Get("Location"), "the same form opens one")
	again := with(form(b.get(path), path, `id="new-kind"`), "kind", "client", "name", "mehta  jewellers")
	warned := b.site.Ask(http.MethodPost, path, again).Is(409).Says("There is an account Mehta Jewellers already.")
	require.Equal(t, 1, strings.Count(clerk.GET("/clients").Status(200).Text, "Jewellers"))
	confirmed := with(form(warned, path, `id="new-kind"`), "kind", "client", "name", "mehta  jewellers")
	require.Equal(t, again.Get("key"), confirmed.Get("key"))
	b.follow(b.site.Ask(http.MethodPost, path, confirmed)).Says("mehta jewellers")
	other := with(form(b.get(path), path, `id="new-kind"`), "kind", "bullion", "name", "Mehta Jewellers")
	b.follow(b.site.Ask(http.MethodPost, path, other)).Says("Bullion dealer") // another ledger of the same party
}

func TestNewestRowsComeFirst(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 63)
	newest, oldest := b.rows(account), b.rows(account+"?page=2")
	require.Len(t, newest, 33) // the rows of the last two pages of the interface
	require.Len(t, oldest, 30)
	b.get(oldest[29]).Is(200).Says("₹1.00")
	require.Contains(t, b.get(account).Text, `rel="next"`)
	b.get(account + "?as_of=2025-03-02").Is(200).Says("These are earlier books.")
	for _, at := range []string{"yesterday", "01/11/2026"} {
		for page, says := range map[string]string{account: "HDFC Bank", "/app/accounts": "Accounts"} {
			refused := b.get(page+"?known_at="+url.QueryEscape(at)).Is(422).Says(says, "Known at: write the day as year-month-day", "Earlier books")
			require.Contains(t, refused.Text, ` name="known_at" placeholder="2026-11-30 06:15" value="`+at+`"`)
			require.NotContains(t, refused.Words(), "₹")
		}
	}
	b.get("/app/accounts?as_of=01/11/2026").Is(422).Says("As of: expected", "Earlier books")
	b.get(account + "?known_at=2025-03-01+06:15").Is(404).Says("Not possible") // it was opened later
	b.get("/app/accounts?known_at=2025-03-01+06:15").Is(200).Says("These are earlier books.")
	refused := b.get(account+"/statement?from=2025-03-02&to=2025-03-01").Is(422).Says("HDFC Bank", "From: must not be after to", "₹")
	require.Contains(t, refused.Text, ` name="from" value="2025-03-02"`)
	b.get(account + "/statement?known_at=never").Is(422).Says("Known at: write the day as year-month-day")
	require.NotContains(t, b.get(account+"?as_of=2025-03-02").Text, `id="entry"`)

	now := time.Now().UTC().Format(time.RFC3339Nano)
	for query, says := range map[string]string{
		"":                                  "Balance now: ₹2,016.00",
		"?known_at=" + now:                  "Balance: ₹2,016.00",
		"?to=2099-01-01":                    "Balance on 01 Jan 2099: ₹2,016.00",
		"?to=2025-03-01":                    "Balance on 01 Mar 2025: ₹87.00",
		"?to=2025-03-01&as_of=2025-03-02":   "Balance on 01 Mar 2025: ₹87.00",
		"?to=2025-03-02&as_of=2025-03-01":   "Balance on 01 Mar 2025: ₹87.00",
		"?from=2025-03-01&as_of=2025-03-01": "Balance on 01 Mar 2025: ₹87.00",
	} {
		b.get(account + "/statement" + query).Is(200).Says(says)
	}
	b.get(account+"/statement?to=2025-03-01").Is(200).Says("Opening balance ₹0.00", "Closing balance ₹87.00", "Total Received ₹87.00")
	b.get(account+"/statement?from=2025-03-02").Is(200).Says("Opening balance ₹87.00", "Closing balance ₹2,016.00")
}

func TestAccountsAreShownInPages(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	for i := range 101 {
		clerk.POST("/client", fmt.Sprintf(`{"name":"Party %03d"}`, i)).Status(201)
	}
	apptest.Open(clerk, "Zaveri Bank")
	b := byKey(o, o.Home, write)
	first := b.get("/app/accounts").Is(200).Says("Party 000", "Party 099")
	require.NotContains(t, first.Words(), "Party 100")
	require.NotContains(t, first.Text, `rel="prev"`)
	next := strings.ReplaceAll(regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(first.Text)[1], "&amp;", "&")
	last := b.get(next).Is(200).Says("Party 100", "Zaveri Bank", "Previous names")
	require.NotContains(t, last.Text, `rel="next"`)
	require.NotContains(t, b.get("/app/accounts?kind=client&page=2").Is(200).Says("Party 100").Words(), "Zaveri")
	b.get("/app/find?q=party").Is(200).Says("All accounts that match")
	b.get("/app/accounts?q=PARTY+05").Is(200).Says("Party 050", "Party 059")
}

func TestTheMetalOfTheBooksAndOfAnAccountIsSet(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	const metal = settings + "/metal"
	b.get(metal).Is(200).Says("Metal silver")
	b.follow(b.submit(metal, metal, "metal", "gold")).Says("Metal gold")
	opened := b.submitOf("/app/accounts", "/app/accounts", `name="token"`, "kind", "client", "name", "Meena", "metal", "platinum")
	account, _, _ := strings.Cut(opened.Header.Get("Location"), "?")
	require.Contains(t, b.get(account).Text, `value="platinum"`)
	b.follow(b.submitOf(account, account, `name="name"`, "name", "Meena Shah", "metal", "gold")).Says("Meena Shah", "The change is saved.")
	require.Contains(t, o.Clerk(o.Home).GET(strings.TrimPrefix(account, "/app/accounts")).Status(200).Text, `"metal":"gold"`)
	b.follow(b.submitOf(account, account, `name="name"`, "name", "Meena Shah", "metal", ""))
	require.NotContains(t, b.get(account).Text, `value="gold"`)
	refused := b.submitOf("/app/accounts", "/app/accounts", `name="token"`, "kind", "client", "name", "", "metal", "pearl").Is(422)
	require.Contains(t, refused.Text, `value="pearl"`)
	refused = b.submitOf("/app/accounts", "/app/accounts", `name="token"`, "kind", "polisher", "name", strings.Repeat("x", 130),
		"type", "2").Is(422)
	again := filled(refused, `id="open"`)
	require.Equal(t, []string{"polisher", "2"}, []string{again.Get("kind"), again.Get("type")})
}

func TestAnEditIsTakenBack(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := karigar(o)
	row := b.rows(account)[0]
	try := with(form(b.get(account), account+"/rows", ""), "date", "2025-03-01", "preview", "part",
		"out_entries[0].weight", "500", "out_entries[0].touch", "99.5", "out_entries[0].fine_weight", "500")
	b.site.Ask(http.MethodPost, account+"/rows", try).Is(200).
		Says("line 1, Fine weight: 500.000 g is written, the other values give 497.500 g")
	b.submit(account, account+"/rows", "date", "2025-03-01", "in_entries[0].item_name", "payal").Is(422).
		Says("Received, line 1: a weight or an amount above 0 is needed")
	edit := func() apptest.Page {
		return b.submitOf(row, row, `value="edit"`, "date", "2025-03-01", "out_entries[0].weight", "400", "out_entries[0].touch", "99.5",
			"reason", "weighed again").Is(303)
	}
	edited := edit().Header.Get("Location")
	b.follow(b.submitOf(edited, row, `value="undo"`)).Says("The change was taken back.", "497.500 g", "undone")
	require.NotContains(t, b.get(row).Is(200).Text, "Take the change back")

	stale := form(b.get(edit().Header.Get("Location")), row, `value="undo"`)
	b.submitOf(row, row, `value="edit"`, "date", "2025-03-01", "out_entries[0].weight", "450", "out_entries[0].touch", "99.5",
		"reason", "weighed").Is(303)
	b.site.Ask(http.MethodPost, row, stale).Is(412).Says("Another person has changed this", "450.000 g")

	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	locked := b.get(row).Is(200).Says("This row can only be reversed.", "Reverse")
	require.NotContains(t, locked.Text, "Make void")
}

func TestARowThatStaysAsItIsOffersNoChange(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 2)
	rows := b.rows(account)
	first, second := rows[1], rows[0]
	b.submitOf(first, first, `value="reverse"`, "date", "2025-03-05", "reason", "wrong account").Is(303)
	b.submitOf(second, second, `value="void"`, "reason", "twice").Is(303)
	for _, row := range []string{first, second} {
		shown := b.get(row).Is(200)
		for _, act := range []string{"edit", "void", "reverse", "delete"} {
			require.NotContains(t, shown.Text, `name="do" value="`+act+`"`)
		}
	}
	reversal := b.get(b.rows(account)[0]).Is(200)
	require.Contains(t, reversal.Text, `name="do" value="reverse"`)
	require.NotContains(t, reversal.Text, `name="do" value="edit"`)
}

func TestTheFirstAccountIsOffered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	b.get("/app/").Is(200).Says("There are no accounts yet. Open the first one.")
	b.get("/app/accounts").Is(200).Says("There are no accounts yet. Open the first one.")
	o.Clerk(o.Home).POST("/bank", `{"name":"HDFC"}`).Status(201)
	require.NotContains(t, b.get("/app/").Is(200).Text, "There are no accounts yet")
	b.get("/app/accounts?q=x").Is(200).Says("There is no such account.")
}

// TestWhatAnotherChangedStays edits one row in two tabs.
func TestWhatAnotherChangedStays(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, clerk := byKey(o, o.Home, write), o.Clerk(o.Home)
	account := book(o, clerk, 1)
	added := b.submit(account, account+"/rows", "date", "2025-03-02", "in_entries[0].amount", "5").Is(303).Header.Get("Location")
	const word = `value="undone"`
	shown, row := b.get(added).Is(200), b.rows(account)[0]
	undo := form(shown, row, word)
	for i, do := range []string{"void", "reverse", "delete"} {
		stale := with(form(b.get(row), row, `value="`+do+`"`), "reason", "twice", "date", "2025-03-04")
		b.submitOf(row, row, `value="edit"`, "date", "2025-03-03", "in_entries[0].amount", []string{"6", "7", "8"}[i], "reason",
			"misread").Is(303)
		refused := b.site.Ask(http.MethodPost, row, stale).Is(412).Says("It was changed since you read it")
		require.Contains(t, refused.Text, `value="twice"`)
		require.NotContains(t, refused.Text, "Another person has changed this")
	}
	b.site.Ask(http.MethodPost, row, undo).Is(412).Says("It was changed since you read it")
	b.get(row).Is(200).Says("₹8.00")
}

// The name of the company is read when the body is drawn, after the figures.
func TestAStaleReadOfATemplateIsTold(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	b := byKey(o, apptest.Home, `{"ledger":"write","marketplace":"write"}`)
	statement := fmt.Sprintf("/app/accounts/bank/%d/statement", apptest.Open(clerk, "HDFC"))
	const told = "The figures are behind the log"
	require.NotContains(t, b.get(statement).Is(200).Text, told)
	o.Sql(`alter table companies_g1.company add constraint parked_for_a_test check (false) not valid`)
	o.Bearer(o.Key(apptest.Home, `{"marketplace":"write"}`).Key).POST("/api/v1/companies", `{"name":"Kundan"}`).Status(201)
	b.get(statement).Is(200).Says(told)
}
