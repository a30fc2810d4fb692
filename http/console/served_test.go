package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
)

func TestOnlyOperatorsKeysOpenTheConsole(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	v := o.Visitor()
	v.Get("/events?type=A").Leads("/console/sign-in?next=%2Fconsole%2Fevents%3Ftype%3DA")
	require.Contains(t, v.Get("/sign-in").Is(200).Text, `<a href="/verify">`, "the verifier is for auditors, who have no key")
	all := o.Key(apptest.Home, `{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}`).Key
	var answers []string
	for _, key := range []string{"", "x", "bahi_", apptest.OperatorKey + "x", all, "bahi_" + uuid.NewString() + "_x", o.Person("asha@example.com").Access} {
		answer := v.Post("/sign-in", "key", key, "next", "/console/events?type=A").Is(401).Says("This key does not open the console.")
		answers = append(answers, apptest.TokenField.ReplaceAllString(answer.Text, ""))
		v.Get("/").Leads("/console/sign-in")
	}
	for _, a := range answers {
		require.Equal(t, answers[0], a, "all invalid keys must get the same response")
	}
	v.Post("/sign-in", "key", " "+apptest.OperatorKey+"\n", "next", "/console/events?type=A").Leads("/console/events?type=A")
	v.Get("/sign-in").Leads("/console/")
	v.Get("/").Is(200).Says("All is well.", "signed in as api_key:admin")
	v.Get("").Leads("/console/")
	v.Post("/sign-out").Leads("/console/sign-in")
	v.Get("/").Leads("/console/sign-in")
}

func TestSigningOutEndsAllCopiesOfTheCookie(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	v, thief, other := o.Sign(), o.Visitor(), o.Sign()
	at, err := url.Parse(o.URL + "/console/")
	require.NoError(t, err)
	thief.HTTP.Jar.SetCookies(at, v.HTTP.Jar.Cookies(at))
	thief.Get("/jobs").Is(200)
	token := v.Token()
	v.Post("/sign-out").Leads("/console/sign-in")
	thief.Get("/jobs").Leads("/console/sign-in?next=%2Fconsole%2Fjobs")
	thief.Ask(http.MethodPost, "/projections/books/pause", url.Values{"token": {token}}).Is(403)
	require.Equal(t, "live", o.Projection("books").State)
	other.Get("/jobs").Is(200)
}

func TestRevokedKeyEndsItsSessions(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	key := o.Key("", `{"operator":true}`)
	v := o.Visitor()
	v.Post("/sign-in", "key", key.Key).Leads("/console/")
	v.Get("/projections").Is(200)
	token := v.Token()
	o.Operator().DELETE("/api/v1/api-keys/" + key.ID).Status(204)
	v.Get("/projections").Leads("/console/sign-in?next=%2Fconsole%2Fprojections")
	v.Ask(http.MethodPost, "/projections/books/pause", url.Values{"token": {token}}).Leads("/console/sign-in")
	require.Equal(t, "live", o.Projection("books").State)
}

func TestGuessingKeysIsLimited(t *testing.T) {
	t.Parallel()
	v := apptest.StartLimited(t).Visitor()
	for range 20 {
		v.Post("/sign-in", "key", "guess").Is(401)
	}
	refused := v.Post("/sign-in", "key", "guess").Is(429).Says("Too many tries")
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	v.Post("/sign-in", "key", apptest.OperatorKey).Leads("/console/")
}

func TestConsoleCanBeDisabled(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.Console = "false"
	o := apptest.StartAs(t, s)
	for _, path := range []string{"/console", "/console/", "/console/sign-in", "/console/assets/console.css"} {
		o.Stranger().GET(path).Problem(404, "Not found")
	}
}

func TestMissingThingsHaveAPage(t *testing.T) {
	t.Parallel()
	v := apptest.Start(t).Sign()
	for path, words := range map[string]string{
		"/nothing": "There is no such page", "/projections/nobody": "Projection not found", "/projections/nobody/rebuild": "Projection not found",
		"/events/0": "Event not found", "/events/999999": "Event not found", "/events/x": "Event not found",
		"/ledger/bank/7777": "Bank account not found", "/ledger/bank/x": "Bank account not found", "/ledger/gold/1": "There is no such page", "/ledger/bank/7777/rows/1": "Bank account not found",
	} {
		v.Get(path).Is(404).Says("404 "+words, "Go back")
	}
	v.Post("/projections/nobody/pause").Is(404).Says("Projection not found")
	v.Post("/jobs/12345/retry").Is(404).Says("Job not found")
	v.Post("/jobs/x/cancel").Is(404).Says("Job not found")
	v.Post("/parked/nobody/retry").Is(404).Says("Projection not found")
}

func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	const name = `<script>alert(1)</script><img src=x onerror=alert(2)> "quoted" & 'more' {{.}}`
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, name)
	row := fmt.Sprintf(`{"date":"2025-03-01","in_entries":[{"description":%q,"amount":1}]}`, name)
	added := clerk.With("Bahi-Reason", url.QueryEscape(name)).POST(apptest.Ledger(account), row).Status(201)
	v := o.Sign()
	for _, path := range []string{
		"/ledger", "/ledger?q=" + url.QueryEscape("<script>"), fmt.Sprintf("/ledger/bank/%d", account), fmt.Sprintf("/ledger/bank/%d/rows/1", account), "/events",
		"/events/" + added.Header("Bahi-Position"), "/events?stream=" + url.QueryEscape(name), "/events?from=" + url.QueryEscape(name), "/jobs?kind=" + url.QueryEscape(name), "/nothing/" + url.PathEscape(name),
	} {
		s := v.Get(path)
		require.NotContains(t, s.Text, "<script>alert", path)
		require.NotContains(t, s.Text, "<img src=x", path)
		require.NotContains(t, s.Text, `onerror=alert(2)> "`, path)
	}
	v.Get("/ledger").Says(name)
	v.Get(fmt.Sprintf("/ledger/bank/%d", account)).Says(name)
}

func TestEventsAreFoundByEachFilter(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	first := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "10"))
	added := o.Head()
	clerk.With("Bahi-Reason", "a slip of the pen").PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-04","in_entries":%s}`, first.ID, apptest.Entry("12.50"))).Status(200)
	edited := o.Head()
	for range 60 {
		apptest.Post(clerk, account, apptest.Deposit("2025-03-02", "1"))
	}
	o.Person("asha@example.com")
	v := o.Sign()

	stream := fmt.Sprintf("bankrow-%d", first.ID)
	v.Get("/events?stream="+stream).Is(200).Says("BankRowEdited", "BankRowAdded", "a slip of the pen", "which is everything that you selected")
	v.Get("/events?category=bank&type=BankAccountOpened").Is(200).Says("BankAccountOpened", "which is everything that you selected")
	v.Get("/events?category=bank&type=BankRowAdded").Is(200).Says("No event matches.")
	v.Get("/events?actor=nobody").Says("No event matches.")
	v.Get(fmt.Sprintf("/events?from_position=%d&to_position=%d", edited, edited)).Says("BankRowEdited", fmt.Sprintf("Searched from position %d back to %d", edited, edited))
	v.Get("/events?to=2001-01-01T00:00").Says("No event matches.")
	v.Get("/events?from=2001-01-01T00:00&type=BankRowEdited").Says("BankRowEdited")
	for _, wrong := range []string{"from=x", "to=2025-13-01T00:00", "from_position=-1", "to_position=x", "before=x"} {
		v.Get("/events?" + wrong).Is(422)
	}

	newest := v.Get("/events?category=bankrow").Is(200)
	m := regexp.MustCompile(`href="/console(/events\?before=[^"]+)"`).FindStringSubmatch(newest.Text)
	require.NotNil(t, m, "more than a page")
	older := v.Get(html.UnescapeString(m[1])).Is(200).Says("BankRowEdited")
	require.NotContains(t, newest.Words(), "BankRowEdited")
	require.NotContains(t, older.Text, `rel="next"`)

	one := v.Get(fmt.Sprintf("/events/%d", edited)).Is(200)
	one.Says("Row 1 was edited", "date 2025-03-01 2025-03-04", "in_entries[0].amount 10 12.5", "a slip of the pen", "The row's whole history")
	require.Contains(t, one.Text, fmt.Sprintf(`href="/console/events/%d"`, added), "the previous event of the stream")

	registered := v.Get("/events?type=UserRegistered").Is(200)
	m = regexp.MustCompile(`href="/console(/events/[0-9]+)"`).FindStringSubmatch(registered.Text)
	sealed := v.Get(m[1]).Is(200).Says("sealed: personal, of user-")
	require.NotContains(t, sealed.Text, "asha@example.com")
	require.NotContains(t, sealed.Words(), `"box"`)
}

func TestThemeIsRemembered(t *testing.T) {
	t.Parallel()
	v := apptest.Start(t).Sign()
	require.NotContains(t, v.Get("/jobs").Text, "data-theme")
	v.Post("/theme", "theme", "dark", "next", "/console/jobs?state=completed").Leads("/console/jobs?state=completed")
	require.Contains(t, v.Get("/jobs").Text, `data-theme="dark"`)
	v.Post("/theme", "theme", "light", "next", "https://evil.example/").Leads("/console/")
	require.Contains(t, v.Get("/jobs").Text, `data-theme="light"`)
	v.Post("/theme", "theme", "auto").Leads("/console/")
	require.NotContains(t, v.Get("/jobs").Text, "data-theme")
}

func TestJobsAndKeptMailsAreShown(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	o.Worked("send_verification")
	v := o.Sign()
	v.Get("/jobs").Is(200).Says("send_verification", "completed")
	v.Get("/jobs?state=discarded").Says("No job matches.")
	v.Get("/jobs?state=nonsense&page=0").Says("send_verification")
	v.Get("/outbox").Says("Confirm your email address for Bahi", "asha@example.com", "1 messages")
	v.Get("/outbox?page=9").Says("Nothing was kept on this page")

	id := o.Jobs("kind=send_verification")[0].ID
	v.Post(fmt.Sprintf("/jobs/%d/retry", id)).Is(409).Says("The job is done")
	o.Sql(`update river.river_job set state = 'discarded', finalized_at = now(), attempt = max_attempts where id = $1`, id)
	v.Get("/").Says("1 job was discarded.")
	v.Post(fmt.Sprintf("/jobs/%d/retry", id)).Leads("/console/jobs?done=job-retry")
	v.Get("/jobs?done=job-retry").Says("The job runs again now.")
	v.Get("/jobs?done=%3Cb%3Eforged").Is(200)
	o.Worked("send_verification")
	o.Sql(`update river.river_job set state = 'scheduled', finalized_at = null, scheduled_at = now() + interval '1 day' where id = $1`, id)
	v.Post(fmt.Sprintf("/jobs/%d/cancel", id)).Leads("/console/jobs?done=job-cancel")
	v.Get("/jobs?state=cancelled").Says("send_verification")
}

func TestRebuildWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Fill(clerk, account, 200)
	v := o.Sign()
	const books = "/console/projections/books"
	until := func(words string) apptest.Sheet {
		t.Helper()
		var s apptest.Sheet
		require.Eventually(t, func() bool { s = v.Get("/projections/books"); return strings.Contains(s.Words(), words) }, time.Minute, 20*time.Millisecond, words)
		return s
	}
	was := o.Projection("books").Generation
	v.Get("/projections/books/rebuild").Is(200).Says("Events to fold", strconv.FormatInt(o.Head(), 10))
	require.Nil(t, o.Projection("books").Build, "an estimate starts nothing")
	v.Post("/projections/books/rebuild", "throttle", "fast").Is(422).Says("throttle : expected a number")
	v.Post("/projections/books/rebuild", "throttle", "1").Leads(books + "?done=rebuild")
	v.Get("/projections/books?done=rebuild").Says("The rebuild was requested.")
	require.Contains(t, until("filling").Text, `http-equiv="refresh"`, "a page without scripts reloads itself")
	v.Post("/projections/books/rebuild").Is(409).Says("The projection is being rebuilt already")
	v.Post("/projections/books/pause").Leads(books + "?done=pause")
	until("Resume the rebuild")
	v.Post("/projections/books/throttle", "throttle", "2,000").Leads(books + "?done=throttle")
	require.Equal(t, 2000, *o.Projection("books").Build.Throttle)
	v.Post("/projections/books/cancel").Leads(books + "?done=cancel")
	require.Nil(t, o.Projection("books").Build)
	v.Post("/projections/books/cancel").Is(409).Says("The projection is not being rebuilt")
	v.Post("/projections/books/accept").Is(409)
	v.Post("/projections/books/resume").Is(409).Says("The projection is not paused")
	v.Post("/projections/books/rollback").Is(409).Says("No earlier generation is kept to go back to")

	v.Post("/projections/books/rebuild").Leads(books + "?done=rebuild")
	until("Roll back…")
	now := o.Projection("books")
	require.Greater(t, now.Generation, was)
	v.Get("/projections").Says("books live")
	v.Post("/projections/books/rollback").Leads(books + "?done=rollback")
	require.Equal(t, was, o.Projection("books").Generation)
	require.Equal(t, "200", apptest.ClerkBanks(clerk.GET("/banks"))[0].Balance.String())
	v.Post("/projections/books/pause").Leads(books + "?done=pause")
	until("paused")
	v.Get("/").Says("1 projection is paused.")
	v.Post("/projections/books/resume").Leads(books + "?done=resume")
	require.Equal(t, "live", o.Projection("books").State)
}

// startKeeping serves a system that keeps a replaced generation for an hour.
func startKeeping(t testing.TB) *apptest.Office {
	t.Helper()
	s := apptest.Settings(t, apptest.Database(t))
	s.Keep = time.Hour
	return apptest.StartAs(t, s)
}

func TestParkedFollowersWorkWithoutScripts(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	o.Park()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	require.Eventually(t, func() bool { return o.Projection("books").State == "parked" }, time.Minute, 10*time.Millisecond)
	position := strconv.FormatInt(o.Head(), 10)
	v := o.Sign()
	v.Get("/").Says("1 follower of the log has stopped")
	v.Get("/parked").Says("parked_for_a_test", "BankRowAdded", position)
	v.Get("/projections/books").Says("The projection has stopped", "parked_for_a_test")
	v.Post("/parked/books/retry").Leads("/console/parked?done=retry")
	require.Eventually(t, func() bool { return o.Projection("books").State == "parked" }, time.Minute, 10*time.Millisecond, "nothing has changed")

	v.Post("/parked/books/skip", "position", position, "reason", "  ").Is(422).Says("reason : is required")
	v.Post("/parked/books/skip", "position", "x", "reason", "why").Is(422)
	v.Post("/parked/books/skip", "position", position, "reason", strings.Repeat("x", 501)).Is(422)
	v.Post("/parked/books/skip", "position", "1", "reason", "not that one").Is(409)
	require.Zero(t, o.Projection("books").Skipped)
	v.Post("/parked/books/skip", "position", position, "reason", "written by a broken import").Leads("/console/parked?done=skip")
	require.Eventually(t, func() bool { return o.Projection("books").State == "live" }, time.Minute, 10*time.Millisecond)
	v.Get("/parked").Says("Nothing has stopped.")
	v.Get("/projections/books").Says("Skipped events 1")
	v.Get("/events?type=EventSkipped").Says("follower-books", "api_key:admin")
	clerk.GET(apptest.Ledger(account)).Status(200).Body(`[]`)
}

func TestDeletedAccountIsShownAsItWasKnown(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12"))
	known := o.Head()
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204)
	v := o.Sign()
	v.Get("/ledger?q=hdfc").Says("HDFC deleted")
	v.Get(fmt.Sprintf("/ledger/bank/%d", account)).Is(404).Says("This account was deleted.", "As known at")
	v.Get(fmt.Sprintf("/ledger/bank/%d?known_at=%d", account, known)).Is(200).Says("Balance 12.00", "01 Mar 2025 1")
}

func TestAllBooksOfAWorkspaceAreSummedUp(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1250.5"))
	clerk.POST("/polisher", `{"name":"Salim","type":0}`).Status(201)
	known := o.Head()
	var asha map[string]any
	clerk.POST("/client", `{"name":"Asha"}`).Status(201).JSON(&asha)
	clerk.POST(fmt.Sprint("/client-ledger/", asha["id"]), `{"date":"2025-03-02","out_entries":[{"fine_weight":92.5,"making_charge":500}]}`).Status(201)
	v := o.Sign()
	v.Get("/ledger").Says("Summary")
	v.Get(fmt.Sprint("/ledger/client/", asha["id"])).Says("Crystal Balance")
	v.Get("/ledger/summary/"+apptest.Home).Is(200).Says("Bank 1 1,250.50", "Client 1 0.00 500.00 −500.00 0.000 92.500 −92.500", "Polisher 1 0.00")
	v.Get("/ledger/summary/"+apptest.Home+"?as_of=2025-03-02").Says("02 Mar 2025", "Client 1 0.00 500.00 0.000 92.500")
	v.Get(fmt.Sprintf("/ledger/summary/%s?known_at=%d", apptest.Home, known)).Says("Client 0 0.00 0.00 0.00", "as they were known at position")
	v.Get("/ledger/summary/" + apptest.Home + "?as_of=x").Is(422).Says("expected a date")
	v.Get("/ledger/summary/x").Is(404).Says("There is no such page")
}

func TestAnOperatorVerifiesACompany(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	c := o.Bearer(o.Key(o.Home, `{"marketplace":"write"}`).Key)
	var mill struct {
		ID string `json:"id"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.POST("/api/v1/companies", `{"name":"Asha <b>Mills</b>"}`).Status(201).Text), &mill))
	v := o.Sign()
	v.Get("/companies").Says("Asha <b>Mills</b>", "not verified", "1 companies")
	v.Get("/companies?q=none").Says("No company matches.")
	v.Post("/companies/" + mill.ID + "/verify").Leads("/console/companies?done=company")
	v.Get("/companies?done=company&q=asha").Says("The company's mark was changed.", "Revoke")
	c.GET("/api/v1/companies/" + mill.ID).Status(200).Contains(`"verified":true`)
	v.Post("/companies/" + mill.ID + "/unverify").Leads("/console/companies?done=company")
	c.GET("/api/v1/companies/" + mill.ID).Status(200).Contains(`"verified":false`)
	v.Post("/companies/x/verify").Is(404).Says("Company not found")
	v.Post("/companies/" + o.Home + "/verify").Is(404).Says("Company not found")
}

func TestOrdersAreShownWithTheirTakadasAndHistory(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	made := func(path, form string, values ...any) int64 {
		return apptest.IdOf(t, []byte(clerk.POST(path, fmt.Sprintf(form, values...)).Status(201).Text))
	}
	client, karigar := made("/client", `{"name":"Meena <Shah>"}`), made("/karigar", `{"name":"Imran"}`)
	order := made("/client-order", `{"client_id":%d,"slip_number":"12","date":"2025-03-01","items":[{"item_name":"payal","weight":20.5,"making_charge":1250.5,"quantity":2}]}`, client)
	v, list := o.Sign(), "/ledger/orders/"+apptest.Home
	one := fmt.Sprint(list, "/", order)
	v.Get("/ledger/summary/" + apptest.Home).Says("client orders")
	v.Get(one).Is(200).Says("open", "Nothing was delivered yet.", "order added")
	made("/takada", `{"client_order_id":%d,"date":"2025-03-05","items":[{"item_name":"payal","weight":8,"karigar_id":%d}]}`, order, karigar)
	v.Get(list).Is(200).Says(fmt.Sprintf("%d Meena <Shah> 12 01 Mar 2025 partial 8.000 12.500", order))
	v.Get(one).Is(200).Says("payal 20.500 1,250.50 2", "05 Mar 2025 payal 8.000", "8.000 g delivered, 12.500 g pending", "takada")
	clerk.With("Bahi-Reason", "slip misread").PUT(fmt.Sprint("/client-order/", order), `{"slip_number":"13"}`).Status(200)
	v.Get(one).Says("order edited", "slip misread", "slip_number 12 13")
	other := made("/takada", `{"client_order_id":%d,"date":"2025-03-06","items":[{"item_name":"ring","weight":1}]}`, order)
	clerk.With("Bahi-Reason", "entered twice").DELETE(fmt.Sprint("/takada/", other)).Status(204)
	v.Get(one).Says("8.000 g delivered", fmt.Sprint(other, " deleted "), "06 Mar 2025 ring 1.000", fmt.Sprint("takada ", other, " deleted"), "entered twice", "api_key:")
	v.Get(list + "?page=2").Is(200).Says("There is nothing on this page.")
	v.Get("/ledger/orders/" + apptest.Abroad).Is(200).Says("There are no orders.")
	v.Get(fmt.Sprint("/ledger/orders/", apptest.Abroad, "/", order)).Is(404)
	for _, bad := range []string{"/ledger/orders/x", list + "/x", list + "/99999"} {
		v.Get(bad).Is(404)
	}
}
