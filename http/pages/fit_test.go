package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
	"bahi/readmodels/marketplaceview"
)

// misfits returns the faults of the layout in the window: sideways scrolling, controls that are too small for a finger, opened parts
// that touch their button, and texts that are printed over each other. A link in a text is as high as the text.
const misfits = `(() => {
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
	const small = [...document.querySelectorAll("button, summary, select, input:not([type=hidden]), .button")]
		.filter(e => e.offsetParent && (e.offsetHeight < 24 || e.offsetWidth < 24));
	const crossing = texts.flatMap(([a, x], i) => texts.slice(i + 1).filter(([b, y]) => a !== b &&
		Math.min(x.right, y.right) - Math.max(x.left, y.left) > 1 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 4)
		.map(([b]) => a.data.trim() + " / " + b.data.trim()));
	const near = [...document.querySelectorAll("details[open] > summary + *")].filter(e => e.checkVisibility() &&
		e.getBoundingClientRect().top < e.previousElementSibling.getBoundingClientRect().bottom + 6);
	const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
	return [...wide ? ["it scrolls sideways"] : [], ...small.map(e => "too small: " + e.outerHTML),
		...near.map(e => "too near to its button: " + e.outerHTML.slice(0, 80)), ...crossing.map(c => "over each other: " + c)];
})()`

// fits opens a page in a language, and checks it in each window and theme.
func fits(t *testing.T, p *browsertest.Page, path, lang string) {
	t.Helper()
	p.Speak(lang)
	p.Go(path)
	shownFits(t, p, path, lang)
}

// legible are the combinations of colours that a page has shown.
var legible sync.Map

// look gives a page's window a width and a theme, and waits for both.
func look(p *browsertest.Page, width int64, dark bool) {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.Look(width, 800, dark)
	p.Evaluate(fmt.Sprintf(`new Promise(done => {
		const seen = matchMedia("(width: %dpx) and (prefers-color-scheme: %s)");
		seen.onchange = () => done(0);
		if (seen.matches) done(0);
	})`, width, scheme), new(int))
}

// shownFits checks the page that a tab shows. A width changes no colours, so contrasts are checked in the wide window, which shows all
// columns. A theme changes only colours, and each has one counterpart in the other theme, so a page without a new combination in the light
// has none in the dark. A language changes only texts, so in another language only the fit is checked. A narrow window only hides or moves
// parts, so only the rules of names, sizes and scrolling are checked there again.
func shownFits(t *testing.T, p *browsertest.Page, name, lang string) {
	t.Helper()
	if lang == "en" {
		look(p, 1280, false)
		if p.Legible(&legible) {
			look(p, 1280, true)
			p.Legible(&legible)
		}
	}
	for _, width := range []int64{1280, 360} {
		look(p, width, false)
		switch {
		case lang == "en" && width == 1280:
			p.Structured()
		case lang == "en":
			p.Reachable()
		}
		var found []string
		p.Evaluate(misfits, &found)
		for _, misfit := range found {
			t.Errorf("%s at %d, %s: %s", name, width, lang, misfit)
		}
	}
	require.True(t, p.Is(`document.documentElement.lang === "`+lang+`"`))
	if folder := os.Getenv("BAHI_PICTURES"); folder != "" && lang == "en" {
		file := strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(strings.Trim(name, "/"))
		for _, width := range []int64{1280, 360} {
			for theme, dark := range map[string]bool{"light": false, "dark": true} {
				look(p, width, dark)
				p.Picture(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", file, width, theme)))
			}
		}
	}
}

// TestPagesFit opens each page in two languages.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi.of.the.long.address@example.com")
	o.Home = asha.Workspace
	shopfront, product := shopOf(o, apptest.Home)
	account := keptBooks(o)
	draft := keptOrders(o)
	clerk, company := keptTrade(o)
	talk, enquiry := keptTalks(o, clerk, company)
	asha.Join(o, ravi, `{"ledger":"write","messaging":"read"}`)
	asha.POST("/api/v1/workspaces/"+asha.Workspace+"/invitations", apptest.Invite("nisha@example.com", `{"ledger":"read"}`)).Status(201)
	asha.POST("/api/v1/api-keys", `{"name":"Till at the counter","permissions":{"ledger":"write"}}`).Status(201)

	visit := func(t *testing.T, open func(t *testing.T) *browsertest.Page, paths ...string) {
		for _, lang := range []string{"en", "gu"} {
			p := open(t) // axe stays in the pages of a tab
			for _, path := range paths {
				fits(t, p, path, lang)
			}
		}
	}
	anybody := func(t *testing.T) *browsertest.Page { return browsertest.Open(t, o.URL) }
	member := func(t *testing.T) *browsertest.Page {
		p := anybody(t)
		p.Go("/app/sign-in")
		p.Type("#email", "asha@example.com")
		p.Type("#password", apptest.GoodPassword)
		p.Submit(".door button")
		return p
	}
	t.Run("members", func(t *testing.T) {
		t.Run("public", func(t *testing.T) {
			t.Parallel()
			visit(t, anybody, "/app/sign-in", "/app/register", "/app/forgot", "/auth/reset-password?token=x", "/auth/verify-email?token=x",
				"/app/nothing",
				"/auth/callback?error=server_error", shopfront, product)
			p := anybody(t)
			for _, path := range []string{"/docs", "/docs?q=statement", "/docs/guides/books"} {
				fits(t, p, path, "en")
			}
		})
		t.Run("books", func(t *testing.T) {
			t.Parallel()
			visit(t, member, "/app/", "/app/?as_of=2025-03-01", "/app/accounts", account, account+"?settle=1", account+"/rows/1",
				account+"/statement", "/app/daybook?from=2025-03-01&to=2025-03-02", "/app/audit", "/app/find?q=ra", "/app/orders", "/app/orders/1",
				"/app/orders/1/takadas/1", "/app/drafts", draft, "/app/transfers", "/app/trial-balance", "/app/list/parties",
				"/app/confirmations", "/app/confirmations/1", "/app/confirmations/1/parties")
		})
		t.Run("trade", func(t *testing.T) {
			t.Parallel()
			visit(t, member, "/app/list/contacts", "/app/list/contacts/1", "/app/list/lists", "/app/list/templates",
				"/app/list/channels?new=chat",
				"/app/list/channels/2", "/app/list/bots", "/app/list/bots/1", "/app/list/bots/1/pages", "/app/list/bots/1/tools",
				"/app/list/products", "/app/list/companies/"+company, "/app/campaigns", "/app/campaigns?new=drip", "/app/campaigns/1",
				"/app/campaigns/1/recipients", "/app/inbox", talk, "/app/enquiries", enquiry)
		})
		t.Run("settings", func(t *testing.T) {
			t.Parallel()
			visit(t, member, settings, settings+"/members", settings+"/members/"+ravi.User.ID, settings+"/keys", settings+"/invitations",
				settings+"/books", settings+"/metal", settings+"/periods", "/docs/add-karigar-row")
			p := member(t)
			p.Speak("en")
			p.Go("/docs/add-karigar-row")
			p.Evaluate(`document.querySelectorAll(".docs details").forEach(d => { d.open = true })`, nil)
			shownFits(t, p, "/docs/add-karigar-row/open", "en")
		})
	})

	o.Sql(`insert into river.river_job (id, state, kind, args, attempt, max_attempts, scheduled_at, errors) values
		(900, 'retryable', 'send_verification', '{"user_id":"6f1f0f5e-0000-4000-8000-000000000001"}', 1, 5, now() + interval '1 day',
		array['{"error":"dial tcp 10.20.30.40:25: connect: connection refused by the mail server of the workshop"}'::jsonb])`)
	o.Signed()
	o.Park()
	book(o, o.Clerk(apptest.OtherWorkspace), 1)
	byKey(o, apptest.OtherWorkspace, operatorRights).until("/app/operate", "Stopped at an event: 1")
	const operate = "/app/operate"
	operator := func(*testing.T) *browsertest.Page { return enter(o, operatorRights) }
	visit(t, operator, operate, operate+"/projections", operate+"/projections/books", operate+"/projections/users/rebuild",
		operate+"/events", operate+"/events/5", operate+"/jobs?state=retryable", operate+"/parked", operate+"/webhooks", operate+"/outbox",
		operate+"/workspaces", operate+"/companies")
}

// TestLongNamesFit shows that neither the page nor a table scrolls sideways because of a name or an item without spaces.
func TestLongNamesFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	name, item := strings.Repeat("n", 100), strings.Repeat("i", 200)
	account := apptest.IdOf(t, []byte(clerk.POST("/karigar", `{"name":"`+name+`"}`).Status(201).Text))
	clerk.POST(fmt.Sprintf("/karigar-ledger/%d", account), `{"date":"2025-03-01","in_entries":[{"item_name":"payal","fine_weight":3}],
		"out_entries":[{"item_name":"`+item+`","fine_weight":1234567.5}]}`).Status(201)
	p := enter(o, `{"ledger":"write","audit":"read"}`)
	page := fmt.Sprintf("/app/accounts/karigar/%d", account)
	for path, text := range map[string]string{
		"/app/trial-balance": name, "/app/accounts": name, page: item, page + "/statement": item, page + "/rows/1": item, "/app/audit": item,
	} {
		p.Go(path)
		require.Contains(t, p.Text("main"), text)
		for _, width := range []int64{1280, 360} {
			look(p, width, false)
			var found []string
			p.Evaluate(misfits, &found)
			require.Empty(t, found, "%s at %d", path, width)
			p.Evaluate(`[...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)`, &found)
			require.Empty(t, found, "%s at %d", path, width)
			if folder := os.Getenv("BAHI_PICTURES"); folder != "" {
				p.Picture(filepath.Join(folder, fmt.Sprintf("long%s-%d.png", strings.ReplaceAll(path, "/", "-"), width)))
			}
		}
	}
}

// keptBooks has an account with rows that were corrected and reversed, and a lock. It returns the account's page.
func keptBooks(o *apptest.Server) (account string) {
	account = karigar(o)
	clerk := o.Clerk(o.Home)
	clerk.With("Bahi-Reason", "mended").PUT("/karigar-ledger/1",
		`{"id":1,"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99}],
		"in_entries":[{"item_name":"payal","pure_weight":20,"fine_percent":92,"other":1234567.5}]}`).Status(200)
	clerk.POST("/karigar-ledger/1", `{"date":"2025-03-02","in_entries":[{"item_name":"kada","fine_weight":3}]}`).Status(201)
	clerk.With("Bahi-Reason", "twice").POST("/karigar-ledger/1/row/2/reverse", `{"date":"2025-03-02"}`).Status(201)
	book(o, clerk, 2)
	clerk.PUT("/books/lock", `{"locked_through":"2025-01-31"}`).Status(200)
	return account
}

// keptOrders has orders with takadas, and a draft. It returns the draft's page.
func keptOrders(o *apptest.Server) (draft string) {
	clerk := o.Clerk(o.Home)
	var clients [2]map[string]any
	for i, name := range []string{"Patel Jewellers", "Ramesh Jewellers"} {
		clerk.POST("/client", `{"name":"`+name+`"}`).Status(201).JSON(&clients[i])
	}
	for i := range 3 {
		clerk.POST("/client-order", fmt.Sprintf(`{"client_id":%v,"date":"2025-03-0%d","delivery_date":"2025-03-20","slip_number":"%d","items":[
			{"item_name":"payal","weight":100,"quantity":4},{"item_name":"ring","weight":30.75,"making_charge":1200}]}`,
			clients[i%2]["id"], i+1, 10+i)).Status(201)
	}
	clerk.POST("/takada", `{"client_order_id":1,"date":"2025-03-05","items":[{"item_name":"payal","weight":60,"karigar_id":1}]}`).Status(201)
	clerk.POST("/takada", `{"client_order_id":2,"date":"2025-03-05","items":[{"item_name":"payal","weight":200}]}`).Status(201)
	clerk.With("Bahi-Reason", "weighed").PUT("/client-order/1", `{"slip_number":"21"}`).Status(200)
	return received(o, "slip 214\nparty: ramesh jewelers\npayal 250 gm 4 pcs urgent\nring 20.5 gm\nsend the old one too")
}

// keptTrade has a record of each resource. It returns the company.
func keptTrade(o *apptest.Server) (clerk *apitest.Client, company string) {
	clerk, company = createParents(o, o.Home)
	clerk.POST("/api/channels", `{"name":"Our site","type":"web","settings":{"allowedOrigins":["https://example.com"]}}`).Status(201)
	clerk.POST("/api/contact-lists", `{"name":"Retailers of Rajkot"}`).Status(201)
	clerk.POST("/api/contacts", `{"name":"Asha Soni","phone":"9812300001","email":"asha.soni@jewellers.example.com","listIds":[1],
		"source":"manual"}`).Status(201)
	clerk.PATCH("/api/contacts/1", `{"optIn":true,"optInEvidence":"Signed form 7"}`).Status(200)
	clerk.POST("/api/bots/1/urls", `{"url":"https://example.com/about"}`).Status(201)
	clerk.POST("/api/v1/catalog", `{"name":"Payal of silver, 92 touch","price_amount":12345600,"sku":"P-1","category":"Payal",
		"description":"A pair."}`).Status(201)
	clerk.POST("/api/campaigns", `{"name":"Diwali","type":"broadcast","templateId":1,"audience":"1",
		"templateParams":{"1":"A-204","2":"{{name}}"}}`).Status(201)
	asker := o.Bearer(o.Key(o.Home, `{"ledger":"write","messaging":"write"}`).Key)
	asker.PUT("/books/accounts/1/contact", `{"contactId":1}`).Status(200)
	asker.POST("/books/confirmations", `{"kind":"karigar","as_of":"2025-03-31","channelId":1,"templateId":2}`).Status(201)
	return clerk, company
}

// keptTalks has conversations and enquiries. It returns the pages of one of each.
func keptTalks(o *apptest.Server, c *apitest.Client, company string) (talk, enquiry string) {
	arrives(o, c, 1, "919812345001", "Ravi", "When do you open?", 30*time.Hour)
	talk = arrives(o, c, 1, "919812345002", "Asha "+strings.Repeat("W", 60), "Is A-204 ready?\nI need it for a wedding on Sunday.", 0)
	path := "/api/contacts/" + strings.TrimPrefix(talk, "/app/inbox/")
	long := "Yes, since noon. " + strings.Repeat("Come by when you like. ", 8)
	c.POST(path+"/messages", map[string]any{"channelId": 1, "text": long}).Status(201)
	c.POST(path+"/messages", map[string]any{"channelId": 1, "imageUrl": "https://cdn.example.org/a.jpg"}).Status(201)
	mill := marketplaceview.Company{ID: uuid.MustParse(company)}
	long = "How many do you have? " + strings.Repeat("I need many of them. ", 20)
	enquiry = askedOf(o, mill, `,"message":"`+long+`","quantity":3,"user_phone":"+919812345002"`)
	askedOf(o, mill, "")
	return talk, enquiry
}
