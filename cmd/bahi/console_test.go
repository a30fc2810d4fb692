package main_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// visitor is a browser without scripts.
type visitor struct {
	t    testing.TB
	base string
	http *http.Client
}

// visitor comes to the console.
func (o *office) visitor() *visitor {
	o.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(o.t, err)
	return &visitor{o.t, o.url, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// sign comes in with the operator's key.
func (o *office) sign() *visitor {
	o.t.Helper()
	v := o.visitor()
	v.get("/sign-in").is(200)
	v.post("/sign-in", "key", testOperatorKey).leads("/console/")
	return v
}

// sheet is a page that was answered.
type sheet struct {
	t      testing.TB
	status int
	text   string
	header http.Header
}

func (v *visitor) ask(method, path string, form url.Values) sheet {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+"/console"+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.http.Do(r)
	require.NoError(v.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return sheet{v.t, response.StatusCode, string(body), response.Header}
}

func (v *visitor) get(path string) sheet {
	v.t.Helper()
	return v.ask(http.MethodGet, path, nil)
}

// post fills in a form: its token comes from the page that has it, as everything else does.
func (v *visitor) post(path string, pairs ...string) sheet {
	v.t.Helper()
	form := url.Values{"token": {v.token()}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.ask(http.MethodPost, path, form)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token is that of the session's forms.
func (v *visitor) token() string {
	v.t.Helper()
	for _, path := range []string{"/sign-in", "/"} {
		if m := tokenField.FindStringSubmatch(v.get(path).text); m != nil {
			return m[1]
		}
	}
	require.Fail(v.t, "no page has a form")
	return ""
}

func (s sheet) is(status int) sheet {
	s.t.Helper()
	require.Equal(s.t, status, s.status, s.words())
	return s
}

func (s sheet) leads(to string) {
	s.t.Helper()
	s.is(http.StatusSeeOther)
	require.Equal(s.t, to, s.header.Get("Location"))
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// words is what a person reads of the page.
func (s sheet) words() string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(s.text, " ")), " "))
}

func (s sheet) says(words ...string) sheet {
	s.t.Helper()
	for _, w := range words {
		require.Contains(s.t, s.words(), w)
	}
	return s
}

func TestOnlyAnOperatorsKeyOpensTheConsole(t *testing.T) {
	t.Parallel()
	o := start(t)
	v := o.visitor()
	v.get("/events?type=A").leads("/console/sign-in?next=%2Fconsole%2Fevents%3Ftype%3DA")
	require.Contains(t, v.get("/sign-in").is(200).text, `<a href="/console/verify">`, "the verifier is for auditors, who have no key")
	all := o.key(home, `{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}`).Key
	var answers []string
	for _, key := range []string{"", "x", "bahi_", testOperatorKey + "x", all, "bahi_" + uuid.NewString() + "_x", o.person("asha@example.com").Access} {
		answer := v.post("/sign-in", "key", key, "next", "/console/events?type=A").is(401).says("This key does not open the console.")
		answers = append(answers, tokenField.ReplaceAllString(answer.text, ""))
		v.get("/").leads("/console/sign-in")
	}
	for _, a := range answers {
		require.Equal(t, answers[0], a, "whatever is wrong with a key, the answer is the same")
	}
	v.post("/sign-in", "key", " "+testOperatorKey+"\n", "next", "/console/events?type=A").leads("/console/events?type=A")
	v.get("/sign-in").leads("/console/")
	v.get("/").is(200).says("All is well.", "signed in as api_key:admin")
	v.get("").leads("/console/")
	v.post("/sign-out").leads("/console/sign-in")
	v.get("/").leads("/console/sign-in")
}

func TestSigningOutEndsEveryCopyOfTheCookie(t *testing.T) {
	t.Parallel()
	o := start(t)
	v, thief, other := o.sign(), o.visitor(), o.sign()
	at, err := url.Parse(o.url + "/console/")
	require.NoError(t, err)
	thief.http.Jar.SetCookies(at, v.http.Jar.Cookies(at))
	thief.get("/jobs").is(200)
	token := v.token()
	v.post("/sign-out").leads("/console/sign-in")
	thief.get("/jobs").leads("/console/sign-in?next=%2Fconsole%2Fjobs")
	thief.ask(http.MethodPost, "/projections/books/pause", url.Values{"token": {token}}).is(403)
	require.Equal(t, "live", o.projection("books").State)
	other.get("/jobs").is(200)
}

func TestARevokedKeyEndsWhatWasSignedInWithIt(t *testing.T) {
	t.Parallel()
	o := start(t)
	key := o.key("", `{"operator":true}`)
	v := o.visitor()
	v.post("/sign-in", "key", key.Key).leads("/console/")
	v.get("/projections").is(200)
	token := v.token()
	o.operator().DELETE("/api/v1/api-keys/" + key.ID).Status(204)
	v.get("/projections").leads("/console/sign-in?next=%2Fconsole%2Fprojections")
	v.ask(http.MethodPost, "/projections/books/pause", url.Values{"token": {token}}).leads("/console/sign-in")
	require.Equal(t, "live", o.projection("books").State)
}

func TestGuessingKeysIsLimited(t *testing.T) {
	t.Parallel()
	v := startLimited(t).visitor()
	for range 20 {
		v.post("/sign-in", "key", "guess").is(401)
	}
	refused := v.post("/sign-in", "key", testOperatorKey).is(429).says("Too many tries")
	require.NotEmpty(t, refused.header.Get("Retry-After"))
}

func TestTheConsoleCanBeLeftOut(t *testing.T) {
	t.Parallel()
	s := testSettings(t, testDatabase(t))
	s.Outside.Console = "false"
	o := startAs(t, s)
	for _, path := range []string{"/console", "/console/", "/console/sign-in", "/console/assets/console.css"} {
		o.stranger().GET(path).Problem(404, "Not found")
	}
}

func TestWhatIsNotThereIsAPage(t *testing.T) {
	t.Parallel()
	v := start(t).sign()
	for path, words := range map[string]string{
		"/nothing": "There is no such page", "/projections/nobody": "Projection not found", "/projections/nobody/rebuild": "Projection not found",
		"/events/0": "Event not found", "/events/999999": "Event not found", "/events/x": "Event not found",
		"/ledger/bank/7777": "Bank account not found", "/ledger/bank/x": "Bank account not found", "/ledger/gold/1": "There is no such page", "/ledger/bank/7777/rows/1": "Bank account not found",
	} {
		v.get(path).is(404).says("404 "+words, "Go back")
	}
	v.post("/projections/nobody/pause").is(404).says("Projection not found")
	v.post("/jobs/12345/retry").is(404).says("Job not found")
	v.post("/jobs/x/cancel").is(404).says("Job not found")
	v.post("/parked/nobody/retry").is(404).says("Projection not found")
}

func TestNamesAreTextWhateverStandsInThem(t *testing.T) {
	t.Parallel()
	o := start(t)
	const name = `<script>alert(1)</script><img src=x onerror=alert(2)> "quoted" & 'more' {{.}}`
	clerk := o.clerk(home)
	account := open(clerk, name)
	row := fmt.Sprintf(`{"date":"2025-03-01","in_entries":[{"description":%q,"amount":1}]}`, name)
	added := clerk.With("Bahi-Reason", url.QueryEscape(name)).POST(ledger(account), row).Status(201)
	v := o.sign()
	for _, path := range []string{
		"/ledger", "/ledger?q=" + url.QueryEscape("<script>"), fmt.Sprintf("/ledger/bank/%d", account), fmt.Sprintf("/ledger/bank/%d/rows/1", account), "/events",
		"/events/" + added.Header("Bahi-Position"), "/events?stream=" + url.QueryEscape(name), "/events?from=" + url.QueryEscape(name), "/jobs?kind=" + url.QueryEscape(name), "/nothing/" + url.PathEscape(name),
	} {
		s := v.get(path)
		require.NotContains(t, s.text, "<script>alert", path)
		require.NotContains(t, s.text, "<img src=x", path)
		require.NotContains(t, s.text, `onerror=alert(2)> "`, path)
	}
	v.get("/ledger").says(name)
	v.get(fmt.Sprintf("/ledger/bank/%d", account)).says(name)
}

func TestEventsAreFoundByWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	first := post(clerk, account, deposit("2025-03-01", "10"))
	added := o.head()
	clerk.With("Bahi-Reason", "a slip of the pen").PUT(ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-04","in_entries":%s}`, first.ID, entry("12.50"))).Status(200)
	edited := o.head()
	for range 60 {
		post(clerk, account, deposit("2025-03-02", "1"))
	}
	o.person("asha@example.com")
	v := o.sign()

	stream := fmt.Sprintf("bankrow-%d", first.ID)
	v.get("/events?stream="+stream).is(200).says("BankRowEdited", "BankRowAdded", "a slip of the pen", "which is everything asked for")
	v.get("/events?category=bank&type=BankAccountOpened").is(200).says("BankAccountOpened", "which is everything asked for")
	v.get("/events?category=bank&type=BankRowAdded").is(200).says("No event is like that.")
	v.get("/events?actor=nobody").says("No event is like that.")
	v.get(fmt.Sprintf("/events?from_position=%d&to_position=%d", edited, edited)).says("BankRowEdited", fmt.Sprintf("Searched from position %d back to %d", edited, edited))
	v.get("/events?to=2001-01-01T00:00").says("No event is like that.")
	v.get("/events?from=2001-01-01T00:00&type=BankRowEdited").says("BankRowEdited")
	for _, wrong := range []string{"from=x", "to=2025-13-01T00:00", "from_position=-1", "to_position=x", "before=x"} {
		v.get("/events?" + wrong).is(422)
	}

	newest := v.get("/events?category=bankrow").is(200)
	m := regexp.MustCompile(`href="/console(/events\?before=[^"]+)"`).FindStringSubmatch(newest.text)
	require.NotNil(t, m, "more than a page")
	older := v.get(html.UnescapeString(m[1])).is(200).says("BankRowEdited")
	require.NotContains(t, newest.words(), "BankRowEdited")
	require.NotContains(t, older.text, `rel="next"`)

	one := v.get(fmt.Sprintf("/events/%d", edited)).is(200)
	one.says("Row 1 was edited", "date 2025-03-01 2025-03-04", "in_entries[0].amount 10 12.5", "a slip of the pen", "The row's whole history")
	require.Contains(t, one.text, fmt.Sprintf(`href="/console/events/%d"`, added), "the one before it in its stream")

	registered := v.get("/events?type=UserRegistered").is(200)
	m = regexp.MustCompile(`href="/console(/events/[0-9]+)"`).FindStringSubmatch(registered.text)
	sealed := v.get(m[1]).is(200).says("sealed: personal, of user-")
	require.NotContains(t, sealed.text, "asha@example.com")
	require.NotContains(t, sealed.words(), `"box"`)
}

func TestTheColoursAreThoseThatSomebodyChose(t *testing.T) {
	t.Parallel()
	v := start(t).sign()
	require.NotContains(t, v.get("/jobs").text, "data-theme")
	v.post("/theme", "theme", "dark", "next", "/console/jobs?state=completed").leads("/console/jobs?state=completed")
	require.Contains(t, v.get("/jobs").text, `data-theme="dark"`)
	v.post("/theme", "theme", "light", "next", "https://evil.example/").leads("/console/")
	require.Contains(t, v.get("/jobs").text, `data-theme="light"`)
	v.post("/theme", "theme", "auto").leads("/console/")
	require.NotContains(t, v.get("/jobs").text, "data-theme")
}

func TestJobsAndKeptMailsAreShown(t *testing.T) {
	t.Parallel()
	o := start(t)
	o.person("asha@example.com")
	o.worked("send_verification")
	v := o.sign()
	v.get("/jobs").is(200).says("send_verification", "completed")
	v.get("/jobs?state=discarded").says("No job is like that.")
	v.get("/jobs?state=nonsense&page=0").says("send_verification")
	v.get("/outbox").says("Confirm your email address for Bahi", "asha@example.com", "1 messages")
	v.get("/outbox?page=9").says("Nothing was kept on this page")

	id := o.jobs("kind=send_verification")[0].ID
	v.post(fmt.Sprintf("/jobs/%d/retry", id)).is(409).says("The job is done")
	o.sql(`update river.river_job set state = 'discarded', finalized_at = now(), attempt = max_attempts where id = $1`, id)
	v.get("/").says("1 job was given up.")
	v.post(fmt.Sprintf("/jobs/%d/retry", id)).leads("/console/jobs?done=job-retry")
	v.get("/jobs?done=job-retry").says("The job is done again, now.")
	v.get("/jobs?done=%3Cb%3Eforged").is(200)
	o.worked("send_verification")
	o.sql(`update river.river_job set state = 'scheduled', finalized_at = null, scheduled_at = now() + interval '1 day' where id = $1`, id)
	v.post(fmt.Sprintf("/jobs/%d/cancel", id)).leads("/console/jobs?done=job-cancel")
	v.get("/jobs?state=cancelled").says("send_verification")
}

func TestWithoutAScriptARebuildIsDoneByForms(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	fillOnce(clerk, account, 100)
	o.sys.Books.Wait() // for what follows on the answer
	v := o.sign()
	const books = "/console/projections/books"
	until := func(words string) sheet {
		t.Helper()
		var s sheet
		require.Eventually(t, func() bool { s = v.get("/projections/books"); return strings.Contains(s.words(), words) }, time.Minute, 20*time.Millisecond, words)
		return s
	}
	was := o.projection("books").Generation
	v.get("/projections/books/rebuild").is(200).says("Events to fold", strconv.FormatInt(o.head(), 10))
	require.Nil(t, o.projection("books").Build, "an estimate begins nothing")
	v.post("/projections/books/rebuild", "throttle", "fast").is(422).says("throttle : expected a number")
	v.post("/projections/books/rebuild", "throttle", "1").leads(books + "?done=rebuild")
	v.get("/projections/books?done=rebuild").says("The rebuild was asked for.")
	require.Contains(t, until("filling").text, `http-equiv="refresh"`, "a page without scripts loads itself again")
	v.post("/projections/books/rebuild").is(409).says("The projection is being rebuilt already")
	v.post("/projections/books/pause").leads(books + "?done=pause")
	until("Resume the rebuild")
	v.post("/projections/books/throttle", "throttle", "2,000").leads(books + "?done=throttle")
	require.Equal(t, 2000, *o.projection("books").Build.Throttle)
	v.post("/projections/books/cancel").leads(books + "?done=cancel")
	require.Nil(t, o.projection("books").Build)
	v.post("/projections/books/cancel").is(409).says("The projection is not being rebuilt")
	v.post("/projections/books/accept").is(409)
	v.post("/projections/books/resume").is(409).says("The projection is not paused")
	v.post("/projections/books/rollback").is(409).says("No earlier generation is kept to go back to")

	v.post("/projections/books/rebuild").leads(books + "?done=rebuild")
	until("Roll back…")
	now := o.projection("books")
	require.Greater(t, now.Generation, was)
	v.get("/projections").says("books live")
	v.post("/projections/books/rollback").leads(books + "?done=rollback")
	require.Equal(t, was, o.projection("books").Generation)
	require.Equal(t, "100", clerkBanks(clerk.GET("/banks"))[0].Balance.String())
	v.post("/projections/books/pause").leads(books + "?done=pause")
	until("paused")
	v.get("/").says("1 projection is paused.")
	v.post("/projections/books/resume").leads(books + "?done=resume")
	require.Equal(t, "live", o.projection("books").State)
}

// startKeeping serves a system that keeps what a rebuild replaces for an hour.
func startKeeping(t testing.TB) *office {
	t.Helper()
	s := testSettings(t, testDatabase(t))
	s.Keep = time.Hour
	return startAs(t, s)
}

func TestWithoutAScriptWhatIsParkedIsRetriedOrSkippedForAReason(t *testing.T) {
	t.Parallel()
	o := startKeeping(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	o.park()
	post(clerk, account, deposit("2025-03-01", "1"))
	require.Eventually(t, func() bool { return o.projection("books").State == "parked" }, time.Minute, 10*time.Millisecond)
	position := strconv.FormatInt(o.head(), 10)
	v := o.sign()
	v.get("/").says("1 follower of the log stands still")
	v.get("/parked").says("parked_for_a_test", "BankRowAdded", position)
	v.get("/projections/books").says("The projection stands still", "parked_for_a_test")
	v.post("/parked/books/retry").leads("/console/parked?done=retry")
	require.Eventually(t, func() bool { return o.projection("books").State == "parked" }, time.Minute, 10*time.Millisecond, "nothing has changed")

	v.post("/parked/books/skip", "position", position, "reason", "  ").is(422).says("reason : is required")
	v.post("/parked/books/skip", "position", "x", "reason", "why").is(422)
	v.post("/parked/books/skip", "position", position, "reason", strings.Repeat("x", 501)).is(422)
	v.post("/parked/books/skip", "position", "1", "reason", "not that one").is(409)
	require.Zero(t, o.projection("books").Skipped)
	v.post("/parked/books/skip", "position", position, "reason", "written by a broken import").leads("/console/parked?done=skip")
	require.Eventually(t, func() bool { return o.projection("books").State == "live" }, time.Minute, 10*time.Millisecond)
	v.get("/parked").says("Nothing stands still.")
	v.get("/projections/books").says("Skipped events 1")
	v.get("/events?type=EventSkipped").says("follower-books", "api_key:admin")
	clerk.GET(ledger(account)).Status(200).Body(`[]`)
}

func TestADeletedAccountIsStillThereAsItWasKnown(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "12"))
	known := o.head()
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204)
	v := o.sign()
	v.get("/ledger?q=hdfc").says("HDFC deleted")
	v.get(fmt.Sprintf("/ledger/bank/%d", account)).is(404).says("This account was deleted.", "As known at")
	v.get(fmt.Sprintf("/ledger/bank/%d?known_at=%d", account, known)).is(200).says("Balance 12.00", "01 Mar 2025 1")
}
