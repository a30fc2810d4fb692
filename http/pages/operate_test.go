package pages_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

const operatorRights = `{"operator":true}`

// until reads a page until it contains all texts.
func (b browser) until(path string, texts ...string) apptest.Page {
	b.t.Helper()
	var page apptest.Page
	require.Eventually(b.t, func() bool {
		page = b.get(path)
		for _, text := range texts {
			if !strings.Contains(page.Words(), text) {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "%s says %q", path, texts)
	return page
}

func TestOnlyOperatorsSeeThePagesOfOperators(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha")).User.Email
	b := signedIn(o, asha)
	require.NotContains(t, b.get("/app/").Text, "/app/operate")
	for _, path := range []string{
		"", "/projections", "/projections/books", "/projections/books/rebuild", "/events", "/events/1", "/jobs", "/parked", "/webhooks",
		"/outbox", "/workspaces",
	} {
		b.get("/app/operate" + path).Is(403)
	}
	token := form(b.get("/app/"), "/app/look", "")
	for path, do := range map[string]string{"projections/books": "pause", "jobs": "retry-job", "parked": "retry-parked"} {
		b.site.Ask(http.MethodPost, "/app/operate/"+path, with(token, "do", do, "id", "1")).Is(403)
	}
	visitor(o).get("/app/operate").Leads("/app/sign-in?next=%2Fapp%2Foperate")
	byKey(o, o.Home, write).get("/app/operate").Is(403)
}

func TestOperatorsSeeWhatNeedsThem(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	o.WaitJobs("send_verification")
	b := byKey(o, apptest.Home, operatorRights)
	require.Contains(t, b.get("/app/").Text, `href="/app/operate"`)
	b.get("/app/operate").Is(200).Says("All is well.", "1 not sent: no SMTP_URL", "books", "up to date", "Asha Soni")
	b.get("/app/operate/outbox").Is(200).Says("asha@example.com", "Not sent", apptest.VerifySubject)
	b.get("/app/operate/outbox?port=gateway").Is(200).Says("Nothing matches.")

	o.Sql(`insert into river.river_job (id, state, kind, args, attempt, max_attempts, scheduled_at, errors) values
		(900, 'retryable', 'send_verification', '{"user":"u"}', 1, 5, now() + interval '1 day',
		array['{"error":"the mail server is away"}'::jsonb])`)
	page := b.get("/app/operate").Is(200).Says("This needs you:", "Jobs that failed and are tried again: 1")
	require.NotContains(t, page.Words(), "All is well.")
	const jobs = "/app/operate/jobs?state=retryable"
	b.get(jobs).Is(200).Says("send verification 900", "the mail server is away", "1 of 5", "Run now")
	values := form(b.get(jobs), "", "cancel-job")
	b.site.Ask(http.MethodPost, jobs, values).Leads("/app/operate/jobs?done=done&state=retryable")
	b.get("/app/operate/jobs?state=cancelled").Is(200).Says("send verification 900")
	b.get("/app/operate").Is(200).Says("All is well.")
	values.Set("do", "retry-job")
	values.Set("id", "999999")
	b.site.Ask(http.MethodPost, jobs, values).Is(404).Says("Job not found")
	values.Set("do", "drop")
	b.site.Ask(http.MethodPost, jobs, values).Is(404)
	b.get("/app/operate/jobs?state=lost").Is(422)

	// An operator enters a workspace and comes back.
	b.get("/app/operate/workspaces?q=asha").Is(200).Says("asha@example.com", "Enter")
	b.submitOf("/app/operate/workspaces?q=asha", "/app/workspace", `value="`+asha.Workspace+`"`).Leads("/app/?done=workspace")
	asha.POST("/bank", `{"name":"HDFC"}`).Status(201)
	b.until("/app/accounts", "HDFC")
	b.get("/app/operate/workspaces?q=asha").Is(200).Says("you are here")
	b.submit("/app/operate", "/app/workspace", "workspace", "00000000-0000-0000-0000-000000000000").Is(303)
	require.NotContains(t, b.get("/app/accounts").Is(200).Words(), "HDFC")
}

func TestOperatorsMarkCompanies(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	asha.POST("/api/v1/companies", `{"name":"Asha's Silver","city":"Rajkot"}`).Status(201)
	b := byKey(o, apptest.Home, operatorRights)
	const companies = "/app/operate/companies?q=silver"
	values := with(form(b.get(companies).Is(200), "", "edit-company"), "reason", "papers seen")
	for range 2 { // the same form twice
		answer := b.site.Ask(http.MethodPost, companies, values).Is(303)
		b.follow(answer).Says("Done.", "Verified", "Take the mark back")
	}
	require.Equal(t, 1, strings.Count(o.Operator().GET("/audit/events?category=company").Text, "papers seen"))
	b.get("/app/operate/companies").Is(200).Says("Rajkot")
}

func TestOperatorsReadTheLog(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	for i := range 60 {
		clerk.POST("/bank", fmt.Sprintf(`{"name":"Bank %d"}`, i)).Status(201)
	}
	o.Signed()
	b := byKey(o, apptest.Home, operatorRights)
	b.get("/app/operate/events").Is(200).Says("Older")
	banks := b.get("/app/operate/events?category=bank").Is(200).Says("bank-60", "BankAccountOpened", "Older")
	require.NotContains(t, banks.Words(), "bank-10 ")
	older := linkOf(t, banks, `rel="next"`)
	require.Contains(t, older, "category=bank", "a filter holds on later pages")
	require.NotContains(t, b.get(older).Is(200).Says("bank-1 ").Words(), "bank-60")
	b.get("/app/operate/events?stream=bank-7").Is(200).Says("bank-7")
	b.get("/app/operate/events?from_time=2001-01-01T10:00&to_time=2001-01-02T10:00").Is(200).Says("Nothing matches.")
	b.get("/app/operate/events?workspace=x").Is(422)
	b.get("/app/operate/events?from_time=yesterday").Is(422).Says("expected an RFC 3339 moment")
	event := linkOf(t, b.get("/app/operate/events?stream=bank-7"), "/app/operate/events/")
	page := b.get(event).Is(200).Says("Payload", "Bank 6", "Metadata", "bank-7", "leaf")
	b.get(linkOf(t, page, "tlog-proof")).Is(200)
	b.get("/app/operate/events/99999").Is(404)
	b.get("/app/operate/events/x").Is(404)
}

// linkOf returns the address of the first link of a page that has a text in its tag.
func linkOf(t *testing.T, s apptest.Page, has string) string {
	t.Helper()
	for tag := range strings.SplitSeq(s.Text, "<a ") {
		tag, _, _ = strings.Cut(tag, ">")
		if strings.Contains(tag, has) {
			_, rest, _ := strings.Cut(tag, `href="`)
			address, _, _ := strings.Cut(rest, `"`)
			return strings.ReplaceAll(address, "&amp;", "&")
		}
	}
	require.Fail(t, "no link", has)
	return ""
}

func TestOperatorsSteerProjections(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Fill(clerk, account, 50)
	b := byKey(o, apptest.Home, operatorRights)
	const books, rebuild = "/app/operate/projections/books", "/app/operate/projections/books/rebuild"
	do := func(what string, pairs ...string) apptest.Page {
		t.Helper()
		values := form(b.get(books).Is(200), "", `name="do" value="`+what+`"`)
		require.NotEmpty(t, values, "%s is offered", what)
		values = with(values, pairs...)
		return b.site.Ask(http.MethodPost, books, values)
	}
	b.get("/app/operate/projections").Is(200).Says("books", "Live", "up to date")
	b.get("/app/operate/projections/nothing").Is(404)

	b.follow(do("pause-projection")).Says("Done.", "Paused", "Resume")
	b.get("/app/operate").Says("Paused projections and rebuilds: 1")
	b.follow(do("resume-projection")).Says("Live")

	b.until(rebuild, "Events to read", "It takes about", "Disk until it is over", "MB more")
	b.submit(rebuild, rebuild, "throttle", "0").Is(422).Says("Most events a second")
	begun := b.submit(rebuild, rebuild, "throttle", "1", "keep_seconds", "3600").Is(303)
	going := begun.Header.Get("Location")
	require.True(t, strings.HasPrefix(going, books+"?rebuild="), going)
	page := b.get(going).Is(200).Says("A rebuild goes on:", "1 events a second", "Cancel the rebuild", "Pause the rebuild")
	require.Contains(t, page.Text, `data-stream="/ops/projections/books/progress"`)
	require.NotContains(t, page.Words(), "Go back to the tables")
	b.get(rebuild).Leads(books)
	b.follow(do("pause-projection")).Says("Resume the rebuild")
	b.follow(do("resume-projection")).Says("Pause the rebuild")
	do("throttle-rebuild", "events_per_second", "many").Is(422)
	b.follow(do("cancel-rebuild"))
	b.until(going, "The rebuild was cancelled.")

	going = b.submit(rebuild, rebuild, "throttle", "", "keep_seconds", "3600").Is(303).Header.Get("Location")
	page = b.until(going, "The rebuild is over. Its tables are live.", "Go back to the tables before the rebuild")
	require.NotContains(t, page.Words(), "A rebuild goes on")
	require.NotContains(t, page.Text, "data-stream")
	b.follow(do("rollback-projection"))
	do("pause-projection").Is(303)
	values := with(form(b.get(books), "", `value="resume-projection"`), "do", "accept-rebuild")
	b.site.Ask(http.MethodPost, books, values).Is(409).Says("The rebuild does not wait for its differences")
	values.Set("do", "drop")
	b.site.Ask(http.MethodPost, books, values).Is(404)
}

func TestOperatorsAcceptARebuildThatDiffers(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	apptest.Fill(clerk, apptest.Open(clerk, "HDFC"), 10)
	clerk.GET("/banks").Status(200)
	o.Sql(`update books_g1.row_version set actor = 'nobody'`)
	b := byKey(o, apptest.Home, operatorRights)
	const books, rebuild = "/app/operate/projections/books", "/app/operate/projections/books/rebuild"
	going := b.submit(rebuild, rebuild, "keep_seconds", "3600").Is(303).Header.Get("Location")
	page := b.until(going, "The new tables differ from the live ones.", "row_version", "nobody", "Accept the new tables", "Cancel the rebuild")
	require.NotContains(t, page.Words(), "Pause")
	b.get("/app/operate").Says("Rebuilds that differ and wait for you: 1")
	values := form(page, "", `value="accept-rebuild"`)
	b.site.Ask(http.MethodPost, books, values).Is(303)
	b.until(going, "The rebuild is over. Its tables are live.")
}

func TestOperatorsLetParkedProjectionsGoOn(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	clerk.GET("/banks").Status(200)
	o.Park()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	b := byKey(o, apptest.Home, operatorRights)
	b.until("/app/operate", "This needs you:", "Stopped at an event: 1")
	const parked = "/app/operate/parked"
	b.get(parked).Is(200).Says("books", "BankRowAdded", "parked_for_a_test", "Skip the event")
	b.get("/app/operate/projections/books").Is(200).Says("Stopped at an event", "parked_for_a_test")
	skip := form(b.get(parked), "", "skip-parked")
	require.NotEmpty(t, skip.Get("position"))
	skip.Set("reason", " ")
	b.site.Ask(http.MethodPost, parked, skip).Is(422).Says("Reason")
	skip.Set("reason", "posted by hand")
	right := skip.Get("position")
	skip.Set("position", "1")
	b.site.Ask(http.MethodPost, parked, skip).Is(409)
	skip.Set("position", right)
	b.follow(b.site.Ask(http.MethodPost, parked, skip)).Says("Done.")
	b.until(parked, "There are none yet.")
	b.get("/app/operate/projections/books").Is(200).Says("Skipped events")
	b.get("/app/operate/events?type=EventSkipped").Is(200).Says("posted by hand")
	retry := url.Values{"token": skip["token"], "do": {"retry-parked"}, "id": {"books"}}
	b.site.Ask(http.MethodPost, parked, retry).Is(409).Says("The projection is not parked")
}

func TestOperatorsReplayWebhooks(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.AllowedPhones = []string{"+91 98123 45678"}
	o := apptest.StartAs(t, with)
	gateway := o.Anonymous().With("X-Gateway-Token", o.Token("gateway"), "Content-Type", "application/json")
	gateway.POST("/gateway_incoming_webhook", `{"nonsense": <script>`).Status(200)
	gateway.POST("/gateway_incoming_webhook", fmt.Sprintf(
		`{"type":"message","timestamp":%d,"payload":{"id":"m1","source":"919812345678","type":"text","payload":{"text":"payal 250 gm"}}}`,
		time.Now().UnixMilli())).Status(200)
	b := byKey(o, apptest.Home, operatorRights)
	const webhooks = "/app/operate/webhooks"
	b.until("/app/operate", "Calls of providers that could not be handled: 1")
	b.until("/app/operate/outbox?port=gateway", "Our staff will confirm it.", "Not sent")
	parked := b.get(webhooks+"?verdict=parked").Is(200).Says("gateway", "the body is in no known dialect", "Handle again")
	call := linkOf(t, parked, webhooks+"/")
	page := b.get(call).Is(200).Says("the body is in no known dialect", `{"nonsense":`)
	require.NotContains(t, page.Text, "<script>")
	b.follow(b.site.Ask(http.MethodPost, webhooks, form(page, "", "replay-webhook"))).Says("Done.")
	var handled apptest.Page
	require.Eventually(t, func() bool {
		handled = b.get(webhooks + "?verdict=handled").Is(200)
		return strings.Contains(handled.Text, `href="`+webhooks+"/")
	}, time.Minute, 20*time.Millisecond)
	require.NotContains(t, handled.Words(), "Handle again")
	values := form(page, "", "replay-webhook")
	values.Set("id", strings.TrimPrefix(linkOf(t, handled, webhooks+"/"), webhooks+"/"))
	b.site.Ask(http.MethodPost, webhooks, values).Is(409)
	b.get(webhooks + "/x").Is(404)
	b.get(webhooks + "/11111111-1111-4111-8111-111111111111").Is(404)
}

// TestARebuildIsWatched begins a rebuild that is slow, lets it go on without a limit, and sees its end without opening the page again.
func TestARebuildIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	apptest.Fill(clerk, apptest.Open(clerk, "HDFC"), 50)
	p := enter(o, operatorRights)
	p.Go("/app/operate/projections/books")
	p.Submit(`#acts a[href$="/rebuild"]`)
	require.Equal(t, "/app/operate/projections/books/rebuild", p.URL())
	require.Contains(t, p.Text("main"), "It takes about")
	p.Type(`[name="throttle"]`, "1")
	p.Submit("main form.stack button.primary")
	p.Until(`document.querySelector("#live").innerText.includes("Filling")`)
	p.Until(`document.querySelector("progress").value > 0`)
	p.Click(`#acts details:has([name="events_per_second"]) summary`)
	p.Type(`[name="events_per_second"]`, "0")
	p.Submit(`#acts details:has([name="events_per_second"]) button`)
	require.Contains(t, p.Text(`#acts details[open] .error`), "must be at least 1")
	p.Evaluate(`document.querySelector('[name="events_per_second"]').value = ""`, nil)
	p.Submit(`#acts details:has([name="events_per_second"]) button`)
	p.Until(`!document.querySelector("progress, [data-stream]") && document.querySelector('#acts a[href$="/rebuild"]') &&
		document.querySelector("#live").innerText.includes("Live generation\n2")`)
	require.NotContains(t, p.Text("main"), "A rebuild goes on")
}
