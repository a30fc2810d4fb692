package pages_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

// curlOf returns the command of an operation's page.
func curlOf(t *testing.T, page apptest.Page) string {
	t.Helper()
	command := regexp.MustCompile(`(?s)<code id="curl">(.*?)</code>`).FindStringSubmatch(page.Text)
	require.NotNil(t, command)
	return html.UnescapeString(command[1])
}

var inputOf = regexp.MustCompile(`<(?:input|select|textarea) [^>]*id="(f-[^"]+)"`)

func TestDocsOfTheInterface(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b, member := visitor(o), byKey(o, o.Home, write)
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(o.Anonymous().GET("/openapi.json").Status(200).Text), &document))
	all := b.get("/docs").Is(200).Says("Documentation", "Guides", "Keep the books in a browser")
	require.Contains(t, all.Header.Get("Content-Security-Policy"), "script-src 'self'; style-src 'self'")
	for path, methods := range document.Paths {
		for _, operation := range methods {
			require.Contains(t, all.Text, `href="/docs/`+operation.ID+`"`)
			page := b.get("/docs/"+operation.ID).Is(200).Says(path, "Answers", "BAHI=")
			require.Contains(t, curlOf(t, page), `"$BAHI/`)
			names := map[string]bool{}
			for _, input := range inputOf.FindAllStringSubmatch(member.get("/docs/"+operation.ID).Is(200).Text, -1) {
				require.False(t, names[input[1]], "%s has two inputs %s", operation.ID, input[1])
				names[input[1]] = true
			}
		}
	}
	size := len(all.Text)
	for _, asset := range regexp.MustCompile(`(?:src|href)="(/app/assets/[^"]+)"`).FindAllStringSubmatch(all.Text, -1) {
		size += len(b.get(html.UnescapeString(asset[1])).Is(200).Text)
	}
	require.Less(t, size, 300_000, "bytes of the first view; with Swagger UI they were 2,791,449")
	require.NotContains(t, all.Text, `src="http`)

	b.get("/docs/add-karigar-row").Is(200).Says("It needs the permission ledger:write.", "in_entries[].fine_percent",
		"Idempotency-Key", "If-Match", "Bahi-Dry-Run", "not_authenticated", "sign in again", "the record has changed since you read it")
	found := b.get("/docs?q=fine_percent").Is(200)
	require.Contains(t, found.Text, `href="/docs/add-karigar-row"`)
	require.NotContains(t, found.Text, `href="/docs/open-bank"`)
	require.Contains(t, b.get("/docs?q=restore+drill").Is(200).Text, `href="/docs/guides/backup#`)
	require.Contains(t, b.get("/docs?q=STATEMENT.PDF+bank").Is(200).Text, `href="/docs/get-bank-statement"`)
	b.get("/docs?q=" + url.QueryEscape(`<b>"nothing`)).Is(200).Says("Nothing was found.")

	guide := b.get("/docs/guides/client").Is(200).Says("Guide for clients", "Idempotency-Key")
	require.Contains(t, guide.Text, `<a href="/docs/guides/books">`)
	require.Contains(t, guide.Text, "<table>")
	for _, missing := range []string{"/docs/nothing", "/docs/guides/nothing", "/docs/guides", "/docs/guides/client.md"} {
		b.get(missing).Is(404)
	}
	b.submit("/docs", "/app/look", "language", "gu").Leads("/docs")
	b.get("/docs").Is(200).Says("દસ્તાવેજ")
}

func TestCommandsOfTheDocsWorkWhenPasted(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := visitor(o)
	key := o.Key(apptest.Home, write).Key
	for _, c := range []struct{ operation, says string }{
		{"open-bank", `"id":1`}, {"add-bank-row", `"revision":0`}, {"edit-bank-row", `"revision":1`},
		{"list-banks", `"id":1`}, {"get-bank-row", `"id":1`},
	} {
		command := exec.CommandContext(t.Context(), "bash", "-c", curlOf(t, b.get("/docs/"+c.operation).Is(200)))
		command.Env = append(command.Environ(), "BAHI="+o.URL, "KEY="+key)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", c.operation, out)
		require.Contains(t, string(out), c.says, c.operation)
		require.NotContains(t, string(out), "request_id", c.operation)
	}
}

func TestOperationsAreTriedInTheDocs(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	require.EqualValues(t, 1, account)
	const add = "/docs/add-bank-row"
	try := func(pairs ...string) apptest.Page {
		filled := with(form(b.get(add).Is(200), add+"#try", ""), "of-address.bank_account_id", "1", "date", "2025-03-01")
		filled = with(filled, pairs...)
		return b.site.Ask(http.MethodPost, add, filled)
	}
	try("in_entries[0].amount", "5", "dry", "yes").Is(200).Says("200 OK", "Nothing was saved.", `"amount": 5`)
	clerk.GET("/bank-ledger/1").Status(200).Body(`[]`)
	faulty := try("in_entries[0].amount", "much", "dry", "yes").Is(200).Says("422")
	require.Contains(t, faulty.Text, `aria-invalid="true"`)
	require.Contains(t, faulty.Text, `value="much"`)
	try("of-address.bank_account_id", "77", "in_entries[0].amount", "5").Is(200).Says("404 Not Found")
	filled := with(form(b.get(add), add+"#try", ""), "of-address.bank_account_id", "1", "date", "2025-03-01", "in_entries[0].amount", "7")
	for range 2 { // the same form twice
		b.site.Ask(http.MethodPost, add, filled).Is(200).Says("201 Created", `"amount": 7`)
	}

	call := func(operation string) apptest.Page {
		page := "/docs/" + operation
		return b.site.Ask(http.MethodPost, page, form(b.get(page).Is(200), page+"#try", ""))
	}
	call("list-banks").Is(200).Says("200 OK", `"name": "HDFC"`)
	edit := "/docs/edit-bank-row"
	stale := with(form(b.get(edit), edit+"#try", ""), "of-address.bank_account_id", "1", "id", "1", "of-address.revision", "8",
		"in_entries[0].amount", "9")
	b.site.Ask(http.MethodPost, edit, stale).Is(200).Says("412 Precondition Failed")
	call("list-projections").Is(200).Says("403 Forbidden")
	statement := with(form(b.get("/docs/get-bank-statement"), "/docs/get-bank-statement#try", ""), "of-address.bank_account_id", "1")
	b.site.Ask(http.MethodPost, "/docs/get-bank-statement", statement).Leads("/bank-ledger/1/statement.pdf")

	b.site.Ask(http.MethodPost, add, with(filled, "token", "x")).Is(403)
	visitor(o).get(add).Is(200).Says("Sign in")
	visitor(o).submit(add, "/app/look").Leads(add)
	stranger := byKey(o, apptest.OtherWorkspace, write)
	elsewhere := with(form(stranger.get(add), add+"#try", ""), "of-address.bank_account_id", "1", "date", "2025-03-01",
		"in_entries[0].amount", "7")
	stranger.site.Ask(http.MethodPost, add, elsewhere).Is(200).Says("404 Not Found")
}

func TestWithoutPagesTheDocsLeadToTheDocument(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.Console = "false"
	o := apptest.StartAs(t, s)
	visitor(o).get("/docs").Leads("/openapi.json")
	o.Anonymous().GET("/openapi.json").Status(200)
	for _, path := range []string{"/docs/open-bank", "/verify", "/app/"} {
		o.Anonymous().GET(path).Problem(404, "Not found")
	}
}

func TestTheDocsAreSearchedWhileTyping(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	p := browsertest.Open(t, o.URL)
	p.Go("/docs")
	p.Type("#docs-q", "fine_percent")
	p.Until(`document.querySelector('#docs-found a[href="/docs/add-karigar-row"]') &&
		!document.querySelector('#docs-found a[href="/docs/open-bank"]')`)
	p.Until(`location.search === "?q=fine_percent"`)
	require.True(t, p.Is(`document.activeElement.id === "docs-q"`))
	p.Submit(`#docs-found a[href="/docs/add-karigar-row"]`)
	require.Contains(t, p.Text("#curl"), "$BAHI/karigar-ledger/1")
	look(p, 280, false) // as narrow as 320 pixels with a longer address of the server
	var found []string
	p.Evaluate(misfits, &found)
	require.Empty(t, found)
	require.Equal(t, "Copy", p.Text("[data-copy=curl]"))
	p.Evaluate(`navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }`, nil)
	p.Click("[data-copy=curl]")
	p.Until(`document.querySelector("[data-copy=curl]").textContent === "Copied"`)
	require.True(t, p.Is(`window.copied.startsWith("curl -sS -X POST") && !window.copied.includes("Copy")`))
}
