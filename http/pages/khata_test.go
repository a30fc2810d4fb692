package pages_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/khatapages"
)

// uploader is a browser that can send files.
type uploader struct {
	browser
	http *http.Client
	base string
}

func uploaderOf(o *apptest.Server) uploader {
	o.T.Helper()
	site := o.Visitor()
	b := browser{o.T, site}
	b.submit("/app/sign-in", "/app/sign-in", "key", o.Key(o.Home, write).Key).Leads("/app/")
	return uploader{b, site.HTTP, o.URL}
}

// send uploads a page.
func (u uploader) send(fields url.Values, file []byte) apptest.Page {
	u.t.Helper()
	return upload(u.t, u.http, u.base+"/app/khata", fields, "page", string(file))
}

// read uploads a page and waits until it is read.
func (u uploader) read(file []byte) (address string) {
	u.t.Helper()
	location := u.send(form(u.get("/app/khata"), "/app/khata", ""), file).Is(303).Header.Get("Location")
	address, _, _ = strings.Cut(location, "?")
	isRead := func() bool { return !strings.Contains(u.get(location).Is(200).Text, `id="reading"`) }
	require.Eventually(u.t, isRead, 4*time.Minute, 50*time.Millisecond)
	return address
}

func with(values url.Values, pairs ...string) url.Values {
	other := url.Values{}
	for name := range values {
		other.Set(name, values.Get(name))
	}
	for i := 0; i < len(pairs); i += 2 {
		other.Set(pairs[i], pairs[i+1])
	}
	return other
}

func TestAKhataPageIsCheckedAndPosted(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	u := uploaderOf(o)
	account := karigar(o)
	u.get("/app/khata").Is(200).Says("No page was uploaded yet.")
	empty := form(u.get("/app/khata"), "/app/khata", "")
	u.submit("/app/khata", "/app/khata").Is(422).Says("Choose a picture or a PDF.")
	u.send(empty, []byte("hello")).Is(415).Says("File must be a JPEG")

	file := khatapages.Typed("Party: Imran", "IN", "1/3 payal 520 92 478.4", "Party: Zaveri", "2/3 cash 20,000")
	first := u.send(empty, file).Header.Get("Location")
	require.Equal(t, first, u.send(empty, file).Header.Get("Location"), "a form that is sent twice uploads once")
	at := u.read(file)
	u.get("/app/khata").Is(200).Says("to check", "An API key")
	page := u.get(at).Is(200).Says("Imran · Karigar", "Received", "478.400 g", "no such account", "Accepted: 1. Left out: 1.",
		"497.500 g fine → 19.100 g fine owes you", "A page is posted once. These rows stay out of the books",
		"Zaveri · Received · cash · Amount ₹20,000.00 Imran Karigar")
	require.Contains(t, page.Text, `href="/khata-uploads/`)

	check := filled(page, `id="check"`)
	require.Equal(t, []string{"yes", "", "Zaveri"},
		[]string{check.Get("entries[0].accepted"), check.Get("entries[1].accepted"), check.Get("entries[1].account")})
	ask := func(pairs ...string) apptest.Page { return u.site.Ask(http.MethodPost, at, with(check, pairs...)) }
	preview := ask("preview", "part", "entries[0].touch", "93", "entries[0].fine_weight", "").Is(200)
	preview.Says("497.500 g fine → 13.900 g fine owes you")
	require.NotContains(t, preview.Text, "<main")
	ask("preview", "page", "entries[1].accepted", "yes").Is(200).Says("Row 2: Account: No account has this name.")
	refused := ask("entries[1].accepted", "yes", "entries[0].weight", "much").Is(422).Says("No account has this name.")
	require.Contains(t, refused.Text, `id="f-entries-0-weight" name="entries[0].weight" aria-invalid="true"`)
	require.Contains(t, refused.Text, `value="much"`)
	none := with(check)
	none.Del("entries[0].accepted")
	u.site.Ask(http.MethodPost, at, none).Is(422).Says("Accept a row first.")

	opened := ask("open", "1", "entries[1].kind", "bank").Is(200)
	opened.Says("Zaveri · Bank", "Accepted: 2. Left out: 0.", "₹0.00 → ₹20,000.00")
	require.Equal(t, check.Get("key"), filled(opened, `id="check"`).Get("key"))
	check = with(filled(opened, `id="check"`), "entries[2].account", "Zaveri", "entries[2].side", "in", "entries[2].date", "2025-03-04",
		"entries[2].amount", "5", "entries[2].accepted", "yes") // the reading missed it
	missed := ask("preview", "page").Is(200).Says("Accepted: 3. Left out: 0.", "₹0.00 → ₹20,005.00", "A row that was missed")
	require.Equal(t, "5", filled(missed, `id="check"`).Get("entries[2].amount"))
	require.Contains(t, missed.Text, `name="entries[3].account"`)
	ask("entries[2].amount", "", "entries[2].date", "").Is(422)
	o.Clerk(o.Home).GET("/banks").Status(200).Contains("Zaveri")
	u.get(account).Is(200).Says("497.500 g")
	u.follow(ask()).Says("The rows are in the books.", "Imran · Karigar", "Zaveri · Bank", "A page is posted once.")
	require.Contains(t, u.get(at).Text, `href="`+account+`/rows/`)
	u.follow(ask()) // the same form has the same effect
	ask("key", "another-form").Is(409).Says("Khata upload was already submitted", "Zaveri · Bank")
	u.get(account).Is(200).Says("19.100 g")
	u.get("/app/khata").Says("posted")
}

func TestAKhataPageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	u := uploaderOf(apptest.Share(t))
	u.get("/app/khata/999999").Is(404)
	u.get("/app/khata/x").Is(422)
	bad := u.read([]byte("%PDF-1.4 nothing"))
	u.get(bad).Is(200).Says("The page cannot be read.", "Upload another picture")
}

// TestAKhataPageIsPostedByTheKeyboard is the fifth flow of PAGES.md.
func TestAKhataPageIsPostedByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	karigar(o)
	p := enter(o, write)
	scan, err := filepath.Abs("../../docs/khata-page.png")
	require.NoError(t, err)
	upload := func(file string) {
		p.Go("/app/khata")
		p.Until(`document.activeElement.id === "file"`)
		p.Choose("#file", file)
		p.Keystrokes = 0
		p.Keys(kb.Tab)
		p.Enter()
		p.Until(`document.getElementById("check")`)
		p.Until(`document.activeElement.matches(".accept input")`)
	}
	upload(scan)
	p.Until(`document.querySelector(".scan img").naturalWidth > 0`)
	at, _, _ := strings.Cut(p.URL(), "?")
	for _, lang := range []string{"en", "gu"} {
		fits(t, p, "/app/khata", lang)
		fits(t, p, at, lang)
	}
	p.Speak("en")
	p.Go(at)
	p.Until(`document.activeElement.matches(".accept input")`)
	p.Keys(kb.Enter) // all rows are sure
	p.Until(`document.activeElement.matches("#check .primary")`)
	p.Enter()
	tookKeys(t, p, "khata")
	require.Contains(t, p.Text("main"), "The rows are in the books.")
	fits(t, p, at, "en")

	page := filepath.Join(t.TempDir(), "page.pdf")
	content := khatapages.Typed("Party: Imran", "IN", "1/3 payal 520 92 478.4", "Party: Zaveri", "2/3 cash 20,000")
	require.NoError(t, os.WriteFile(page, content, 0o600))
	upload(page)
	at, _, _ = strings.Cut(p.URL(), "?")
	fits(t, p, at, "en")
	p.Go(at)
	p.Until(`document.activeElement.name === "entries[1].accepted"`)
	p.Keystrokes = 0
	p.Keys(kb.Enter)
	p.Until(`document.activeElement.name === "entries[1].kind"`)
	p.Keys("B") // Bank
	p.Enter()
	require.Contains(t, p.Text("#check .preview"), "→ ₹20,000.00")
	p.Keys(kb.Enter)
	p.Until(`document.activeElement.matches("#check .primary")`)
	p.Enter()
	tookKeys(t, p, "new account")
	require.Contains(t, p.Text(".posted"), "Zaveri · Bank")
}
