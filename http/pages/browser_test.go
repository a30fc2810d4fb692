package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/http/pages/browsertest"
	"bahi/internal/app/apptest"
)

// enter opens a tab of the owner of a key.
func enter(o *apptest.Office, permissions string) *browsertest.Page {
	o.T.Helper()
	p := browsertest.Open(o.T, o.URL)
	p.Go("/app/sign-in")
	p.Click("summary")
	p.Type("#key", o.Key(apptest.Home, permissions).Key)
	p.Submit("details button")
	return p
}

// karigar opens an account with a row.
func karigar(o *apptest.Office) (address string) {
	clerk := o.Clerk(apptest.Home)
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201)
	clerk.POST("/karigar-ledger/1", `{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`).Status(201)
	return "/app/accounts/karigar/1"
}

// TestAKarigarsRowIsEnteredByTheKeyboard is the first flow of PAGES.md: 8 keys beyond the row's own values.
func TestAKarigarsRowIsEnteredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	p := enter(o, write)
	p.Until(`document.activeElement.id === "account"`)
	p.Keys("i", "m", "r", "a", "n")
	p.Enter()
	require.Equal(t, account, p.URL())
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.Enter)
	for _, value := range []string{"payal", "520", "92", "2", "1500"} {
		p.Keys(strings.Split(value, "")...)
		p.Keys(kb.Enter)
	}
	p.Until(`document.querySelector("#entry .preview").innerText.includes("you owe")`)
	require.Equal(t, "478.4", placeholder(p, "in_entries[0].fine_weight"))
	p.Keys(kb.Enter) // the new line is empty
	p.Until(`document.activeElement.matches("#entry button.primary")`)
	p.Enter()
	require.Contains(t, p.Text("main"), "Saved.")
	require.Contains(t, p.Text(".rows tbody tr"), "478.400 g")
	require.Contains(t, p.Text(".rows tbody tr"), "₹1,500.00")
	require.Equal(t, "", p.Text(`[name="in_entries[0].item_name"]`))
}

func placeholder(p *browsertest.Page, name string) (text string) {
	p.Evaluate(fmt.Sprintf(`document.querySelector('[name=%q]').placeholder`, name), &text)
	return text
}

func TestKeysOfAnAccount(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	p := enter(o, write)
	p.Go(account)
	p.Until(`document.activeElement.name === "date"`)
	p.Keys(kb.F4)
	p.Until(`document.activeElement.name === "out_entries[0].item_name"`)
	p.Click("h1")
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys("/")
	p.Until(`document.activeElement.id === "find"`)
	p.Evaluate(`document.activeElement.blur()`, nil)
	p.Keys(kb.ArrowDown)
	p.Enter()
	require.Contains(t, p.URL(), "/rows/1")
}

// controls are what a finger must hit. A link in a text is as high as the text.
const controls = `button, summary, select, input:not([type=hidden]), .button`

// fits checks a page in a window, a theme and a language.
func fits(t *testing.T, p *browsertest.Page, path string, width int64, dark bool, lang string) {
	t.Helper()
	where := fmt.Sprintf("%s at %d, dark %t, %s", path, width, dark, lang)
	p.Look(width, 800, dark)
	p.Go(path)
	p.Accessible()
	require.True(t, p.Is(`document.documentElement.scrollWidth <= `+fmt.Sprint(width)), "%s scrolls sideways", where)
	var small, crossing []string
	p.Evaluate(`[...document.querySelectorAll("`+controls+`")]
		.filter(e => e.offsetParent && (e.offsetHeight < 24 || e.offsetWidth < 24)).map(e => e.outerHTML)`, &small)
	require.Empty(t, small, "%s has controls that are too small", where)
	p.Evaluate(`(() => {
		const texts = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n; n = walk.nextNode();) {
			if (!n.data.trim() || !n.parentElement.checkVisibility()) continue;
			if (n.parentElement.closest(".unseen, .skip, .hint, thead, option, .foot")) continue;
			const range = document.createRange();
			range.selectNodeContents(n);
			let box = n.parentElement;
			while (box && getComputedStyle(box).overflow === "visible") box = box.parentElement;
			const clip = box?.getBoundingClientRect(), shown = r => clip ? new DOMRect(
				Math.max(r.x, clip.x), Math.max(r.y, clip.y), Math.min(r.right, clip.right) - Math.max(r.x, clip.x),
				Math.min(r.bottom, clip.bottom) - Math.max(r.y, clip.y)) : r;
			for (const r of [...range.getClientRects()].map(shown)) if (r.width > 1 && r.height > 1) texts.push([n, r]);
		}
		return texts.flatMap(([a, x], i) => texts.slice(i + 1).filter(([b, y]) => a !== b &&
			Math.min(x.right, y.right) - Math.max(x.left, y.left) > 1 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 4)
			.map(([b]) => a.data.trim() + " / " + b.data.trim()));
	})()`, &crossing)
	require.Empty(t, crossing, "%s prints texts over each other", where)
	if folder := os.Getenv("BAHI_PICTURES"); folder != "" && lang == "en" {
		pictures(p, filepath.Join(folder, strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(strings.Trim(path, "/"))))
		p.Look(width, 800, dark)
	}
}

// pictures takes the pictures of a page for `make pictures`, unless they are there.
func pictures(p *browsertest.Page, name string) {
	for _, width := range []int64{360, 1280} {
		for _, theme := range []string{"light", "dark"} {
			file := fmt.Sprintf("%s-%d-%s.png", name, width, theme)
			if _, err := os.Stat(file); err != nil {
				p.Look(width, 800, theme == "dark")
				p.Picture(file)
			}
		}
	}
}

func TestPagesFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	o.Clerk(apptest.Home).With("Bahi-Reason", "mended").PUT("/karigar-ledger/1",
		`{"id":1,"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99}],
		"in_entries":[{"item_name":"payal","pure_weight":20,"fine_percent":92,"other":1234567.5}]}`).
		Status(200)
	public := []string{"/app/sign-in", "/app/register", "/app/forgot", "/auth/reset-password?token=x", "/app/nothing"}
	member := []string{"/app/", "/app/accounts", account, account + "/rows/1", account + "/statement"}
	visit := func(p *browsertest.Page, paths []string) {
		for _, lang := range []string{"en", "gu"} {
			p.Speak(lang)
			for _, path := range paths {
				for _, width := range []int64{360, 1280} {
					for _, dark := range []bool{false, true} {
						fits(t, p, path, width, dark, lang)
					}
				}
			}
		}
	}
	visit(browsertest.Open(t, o.URL), public)
	visit(enter(o, write), member)
}
