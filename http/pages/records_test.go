package pages_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/pages"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

const (
	trade     = `{"messaging":"write","marketplace":"write"}`
	tradeRead = `{"messaging":"read","marketplace":"read"}`
)

// createParents creates the parents of the pages' records: a channel, a bot and a company.
func createParents(o *apptest.Server, workspace string) (clerk *apitest.Client, company string) {
	o.T.Helper()
	clerk = o.Bearer(o.Key(workspace, trade).Key)
	clerk.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	clerk.POST("/api/bots", `{"name":"Helper","description":"Answers questions","systemPrompt":"Be kind"}`).Status(201)
	made := map[string]any{}
	clerk.POST("/api/v1/companies", `{"name":"Asha Mills","email":"asha@example.com"}`).Status(201).JSON(&made)
	return clerk, fmt.Sprint(made["id"])
}

// kept is a resource whose records are added, changed and deleted on its pages.
type kept struct {
	list, choose          string // choose: query of the type
	add, edit, remove     string // operations; empty: there is none
	fill                  []string
	name                  string // by which its list shows it
	wrong, faulty, says   string // a field, an invalid value, and the page's message
	changed, theirs, mine string // a field, and the values of two people
	without               bool   // the record has no page
	open                  bool   // the interface lets everybody do it
}

func keptOnes(company string) []kept {
	return []kept{
		{
			list: "/app/list/contacts", add: "add-messaging-contact", edit: "edit-messaging-contact", remove: "delete-messaging-contact",
			fill: []string{"name", "Usha", "phone", "9812300001"}, name: "Usha", wrong: "name",
			faulty: strings.Repeat("x", 101), says: "1 to 100 characters",
			changed: "name", theirs: "Usha Soni", mine: "Usha Shah",
		},
		{
			list: "/app/list/lists", add: "create-contact-list", fill: []string{"name", "Retailers"}, name: "Retailers",
			wrong: "name", faulty: "", says: "is required", without: true,
		},
		{
			list: "/app/list/channels", choose: "?new=web", add: "create-channel", edit: "edit-channel", remove: "delete-channel",
			fill: []string{"name", "Bazaar", "settings.allowedOrigins", "https://example.com"}, name: "Bazaar",
			wrong: "settings.allowedOrigins", faulty: "nonsense", says: "expected",
			changed: "name", theirs: "Our site", mine: "My site",
		},
		{
			list: "/app/list/bots", add: "create-bot", edit: "edit-bot", remove: "delete-bot",
			fill: []string{"name", "Munshi", "description", "Answers all questions", "systemPrompt", "Be short", "active", "true"}, name: "Munshi",
			wrong: "description", faulty: "x", says: "10 to 5000 characters",
			changed: "description", theirs: "It answers in Hindi", mine: "It answers in Gujarati",
		},
		{
			list: "/app/list/bots/1/pages", add: "add-bot-url", remove: "delete-bot-url", fill: []string{"url", "https://example.com/about"},
			name: "https://example.com/about", wrong: "url", faulty: "nonsense", says: "http",
		},
		{
			list: "/app/list/bots/1/webhooks", add: "create-bot-webhook", edit: "edit-bot-webhook",
			fill: []string{"name", "stock", "url", "https://example.com/stock", "method", "GET", "description", "Tells what there is"},
			name: "stock", wrong: "url", faulty: "nonsense", says: "http",
			changed: "description", theirs: "Tells the stock", mine: "Tells the price",
		},
		{
			list: "/app/list/companies", add: "create-company", edit: "edit-company", remove: "delete-company",
			fill: []string{"name", "Usha Mills", "city", "Surat"}, name: "Usha Mills", wrong: "gstin", faulty: "x", says: "GSTIN",
			changed: "city", theirs: "Rajkot", mine: "Agra",
		},
		{
			list: "/app/list/companies/" + company + "/contacts", open: true, add: "add-contact", edit: "edit-contact", remove: "delete-contact",
			fill: []string{"first_name", "Asha", "last_name", "Soni", "email", "asha@example.com"}, name: "Asha Soni",
			wrong: "email", faulty: "asha", says: "email", changed: "designation", theirs: "Owner", mine: "Clerk",
		},
		{
			list: "/app/list/products", add: "add-product", edit: "edit-product", remove: "delete-product",
			fill: []string{"name", "Payal", "price_amount", "1,500.50", "sku", "P-1", "is_active", "true"},
			name: "Payal", wrong: "price_amount", faulty: "much", says: "Price", changed: "price_amount", theirs: "1,600.00", mine: "1,700.00",
		},
		{
			list: "/app/campaigns", choose: "?new=broadcast", add: "create-campaign",
			fill: []string{"name", "Diwali", "audience", "all", "templateId", "1", "templateParams", "1 = A-204\n2 = {{name}}"}, name: "Diwali",
			wrong: "audience", faulty: "nobody", says: "expected all or the id of a contact list",
		},
	}
}

// readOnly are the resources to which users cannot add records.
var readOnly = []string{
	"/app/list/templates", "/app/list/channels/{id}/usage", "/app/list/bots/{id}/tools", "/app/list/bots/{id}/calls",
	"/app/list/bots/{id}/usage",
	"/app/list/bots/{id}/files", // see TestFilesAreImported
	"/app/campaigns/{id}/recipients", "/app/campaigns/{id}/responses",
}

var uuidText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-`)

func TestRecordsOfEachResource(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, company := createParents(o, apptest.Home)
	b, reader, stranger := byKey(o, apptest.Home, trade), byKey(o, apptest.Home, tradeRead), byKey(o, apptest.OtherWorkspace, trade)
	tested := append([]string{}, readOnly...)
	for _, k := range keptOnes(company) {
		path := strings.NewReplacer("/bots/1/", "/bots/{id}/", company, "{id}").Replace(k.list)
		tested = append(tested, path)
		t.Run(k.add, func(t *testing.T) { k.test(t, b, reader, stranger) })
	}
	require.ElementsMatch(t, tested, pages.ResourcePaths(), "each resource is tested")
	clerk.POST("/api/campaigns", `{"name":"Holi","type":"broadcast","templateId":1,"audience":"all",
		"templateParams":{"1":"A","2":"B"}}`).Status(201)
	for _, path := range readOnly {
		at := strings.Replace(path, "{id}", "1", 1)
		require.NotContains(t, b.get(at).Is(200).Words(), "Internal error", at)
		reader.get(at).Is(200)
		if at != path {
			stranger.get(at).Is(404)
			b.get(strings.Replace(path, "{id}", "99", 1)).Is(404)
		}
	}
	byKey(o, apptest.Home, write).get("/app/list/contacts").Is(403)
	nowhere := []string{"/app/list/nothing", "/app/list/contacts/99", "/app/list/contacts/x", "/app/list/lists/1", "/app/list/bots/1/tools/9"}
	for _, path := range nowhere {
		b.get(path).Is(404)
	}
}

func (k kept) test(t *testing.T, b, reader, stranger browser) {
	page, marked := k.list+k.choose, `value="`+k.add+`"`
	require.NotContains(t, b.get(page).Is(200).Words(), k.name)
	filled := form(b.get(page), k.list, marked)
	for i := 0; i < len(k.fill); i += 2 {
		filled.Set(k.fill[i], k.fill[i+1])
	}
	right := filled.Get(k.wrong)
	filled.Set(k.wrong, k.faulty)
	refused := b.site.Ask(http.MethodPost, k.list, filled).Is(422).Says(k.says)
	require.Contains(t, refused.Text, `aria-invalid="true"`)
	require.NotContains(t, refused.Words(), "Validation error")
	filled.Set(k.wrong, right)
	if right == "" && k.wrong != "name" {
		filled.Del(k.wrong)
	}
	if k.wrong == "name" {
		filled.Set("name", k.name)
	}
	again := form(refused, k.list, marked)
	require.Equal(t, filled.Get("key"), again.Get("key"), "the mended form is the same one")

	foreign := with(filled, "token", form(reader.get("/app/"), "/app/sign-out", "").Get("token"))
	if !k.open {
		require.NotContains(t, reader.get(page).Is(200).Text, `name="do"`)
		reader.site.Ask(http.MethodPost, k.list, foreign).Is(403)
	}

	first := b.site.Ask(http.MethodPost, k.list, filled)
	second := b.site.Ask(http.MethodPost, k.list, filled)
	if k.add == "create-bot-webhook" { // its secret is shown once
		first.Is(200).Says("Secret")
		second.Is(200).Says("Done")
	} else {
		require.Equal(t, first.Is(303).Header.Get("Location"), second.Is(303).Header.Get("Location"), "the same form has one effect")
		b.follow(first).Says(k.name)
	}
	list := b.get(k.list).Is(200).Says(k.name)
	require.Equal(t, 1, strings.Count(list.Text, ">"+k.name+"</a>"), "there is one")
	require.NotRegexp(t, uuidText, list.Words(), "names in place of ids")
	switch {
	case strings.Contains(k.list, "/1/"):
		stranger.get(k.list).Is(404)
	case strings.Contains(k.list, "companies/"): // companies are public, their people are not
		stranger.get(k.list).Is(403)
	default:
		require.NotContains(t, stranger.get(k.list).Is(200).Words(), k.name)
	}
	if k.without {
		return
	}
	record := regexp.MustCompile(`href="([^"?]+)">` + regexp.QuoteMeta(k.name) + `</a>`).FindStringSubmatch(list.Text)[1]
	b.get(record).Is(200).Says(k.name)
	if k.add != "add-product" && k.add != "create-company" && !k.open { // which are public
		stranger.get(record).Is(404)
	}
	if k.edit != "" {
		stale := form(b.get(record), record, `value="`+k.edit+`"`)
		b.follow(b.submitOf(record, record, `value="`+k.edit+`"`, k.changed, k.theirs)).Says("The change is saved.")
		b.site.Ask(http.MethodPost, record, with(stale, k.changed, k.mine)).Is(412).Says("Another person has changed this", k.theirs, k.mine)
		if !k.open {
			change := url.Values{"do": {k.edit}, "token": {foreign.Get("token")}, k.changed: {k.mine}}
			reader.site.Ask(http.MethodPost, record, change).Is(403)
		}
	}
	if k.remove != "" {
		b.follow(b.submitOf(record, record, `value="`+k.remove+`"`)).Says("Deleted.")
		b.get(record).Is(404)
	}
}

// upload sends a form with a file.
func upload(t testing.TB, client *http.Client, address string, values url.Values, name, content string) apptest.Page {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for key := range values {
		require.NoError(t, w.WriteField(key, values.Get(key)))
	}
	part, err := w.CreateFormFile("file", name)
	require.NoError(t, err)
	_, err = part.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, &body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return apptest.Send(t, client, r)
}

func TestFilesAreImported(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	_, company := createParents(o, apptest.Home)
	v := o.Visitor()
	b := browser{t, v}
	b.submit("/app/sign-in", "/app/sign-in", "key", o.Key(apptest.Home, trade).Key).Leads("/app/")
	send := func(page, do, name, content string, pairs ...string) string {
		values := form(b.get(page).Is(200), page, `value="`+do+`"`)
		require.NotEmpty(t, values, do)
		values = with(values, pairs...)
		return upload(t, v.HTTP, o.URL+page, values, name, content).Words()
	}
	const contacts = "/app/list/contacts"
	report := send(contacts, "import-messaging-contacts", "people.csv", "name,phone,shoe size,opt in\nImran,9812345702,8,no\n,9812345703,,\n")
	for _, text := range []string{"Done", "Added 1", "Failed 1", "1 to 100 characters", "shoe size",
		"Field Consents to messages Header opt in"} {
		require.Contains(t, report, text)
	}
	b.get(contacts).Is(200).Says("Imran")
	require.Contains(t, send(contacts, "import-messaging-contacts", "people.csv", ""), "File must be CSV or Excel")
	b.submitOf(contacts, contacts, `value="import-messaging-contacts"`).Is(422).Says("Choose a file.")

	const products = "/app/list/products"
	goods := "name,price,sku\nKada,1500,K-1\nNath,,N-1\n"
	tried := send(products, "import-products", "goods.csv", goods, "preview", "page")
	require.Contains(t, tried, "What it would do")
	require.NotContains(t, b.get(products).Words(), "Kada")
	report = send(products, "import-products", "goods.csv", goods, "company_id", company)
	for _, text := range []string{"Added 1", "Failed 1", "price: is required"} {
		require.Contains(t, report, text)
	}
	list := b.get(products).Is(200).Says("Kada").Text
	require.Regexp(t, `<td class="n"><span class="name">[^<]*</span>₹1,500.00`, list, "a figure is at the right")
	for _, kind := range []string{"csv", "xlsx"} {
		require.NotEmpty(t, b.get("/api/v1/catalog/bulk/template."+kind).Is(200).Text)
	}

	const files = "/app/list/bots/1/files"
	send(files, "add-bot-file", "rates.txt", "The rate of silver is 92 rupees.")
	require.Contains(t, b.get(files).Is(200).Says("rates.txt").Text, `data-stream="/api/bots/1/knowledge/stream"`)
	b.follow(b.submitOf(files+"/1", files+"/1", `value="delete-bot-file"`)).Says("Deleted.", "There are none yet.")
}

func TestBotsAreTriedAndGetTools(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	createParents(o, apptest.Home)
	b := byKey(o, apptest.Home, trade)
	const bot = "/app/list/bots/1"
	b.submitOf(bot, bot, `value="try-bot"`, "text", "What is the rate?").Is(200).Says("Answer", "Tokens")
	b.submitOf(bot, bot, `value="try-bot"`).Is(422)
	tool := bot + "/tools/1"
	b.follow(b.submitOf(tool, tool, `value="attach-bot-tool"`)).Says("Done.", "Attached Yes", "Take it away")
	b.follow(b.submitOf(tool, tool, `value="remove-bot-tool"`)).Says("Attached No")
	b.submitOf(tool, tool, "", "do", "remove-bot-tool").Is(404)
	b.submitOf(tool, tool, "", "do", "delete-bot").Is(404)
}

func TestAWidgetIsShownAndTried(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, trade)
	added := b.submitOf("/app/list/channels?new=web", "/app/list/channels", `value="create-channel"`, "name", "Site")
	channel, _, _ := strings.Cut(added.Header.Get("Location"), "?")
	snippet := b.follow(added).Says("Copy this line", "Copy Try the chat", "Sites that may show it", "Incoming messages They arrive").Words()
	require.Contains(t, snippet, "/widget.js")
	origin := regexp.MustCompile(`src="(https?://[^/"]+)/widget.js`).FindStringSubmatch(snippet)[1]
	b.get(channel+"/try").Is(200).Says("does not allow this page yet", "Change")
	b.follow(b.submitOf(channel, channel, `value="edit-channel"`, "settings.allowedOrigins", origin+"/"))
	key := regexp.MustCompile(`<script src="/widget.js" data-channel="([^"]+)"`).FindStringSubmatch(b.get(channel + "/try").Is(200).Text)
	require.Len(t, key, 2)
	chat, begun := "/api/web-chat/"+key[1], struct{ Token string }{}
	o.Anonymous().With("Origin", origin).POST(chat+"/sessions", nil).Status(201).JSON(&begun)
	o.Anonymous().With("Authorization", "Bearer "+begun.Token).Stream(chat + "/stream") // as from the page that tries it
	b.follow(b.submitOf(channel, channel, `value="edit-channel"`, "name", "Site", "settings.allowedOrigins", ""))
	require.NotContains(t, b.get(channel).Text, `>`+origin+`</a>`, "an emptied field is empty")
	b.get("/app/list/channels/999999/try").Is(404)
}

func TestCampaignsAreSentAndWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, _ := createParents(o, apptest.Home)
	b := byKey(o, apptest.Home, trade)
	clerk.POST("/api/contacts", `{"name":"Silent","phone":"9812300004"}`).Status(201)
	clerk.POST("/api/contacts", `{"name":"Asha","phone":"9812300001"}`).Status(201)
	clerk.PATCH("/api/contacts/2", `{"optIn":true}`).Status(200)
	b.submitOf("/app/campaigns?new=broadcast", "/app/campaigns", `value="create-campaign"`, "name", "Diwali", "templateId", "1",
		"audience", "all", "schedule", "immediate").Is(422).Says("1: must be filled; 2: must be filled")
	added := b.submitOf("/app/campaigns?new=broadcast", "/app/campaigns", `value="create-campaign"`,
		"name", "Diwali", "audience", "all", "templateId", "1", "templateParams", "1 = A-204\n2 = {{name}}", "schedule", "immediate")
	b.follow(added).Says("Diwali", "Draft", "At once", "All contacts", "What it sends", "Order A-204 is ready for {{name}}",
		"It goes to 1 of 2 contacts.")
	const campaign = "/app/campaigns/1"
	require.NotContains(t, b.get(campaign).Text, "data-stream")
	sent := form(b.get(campaign), campaign, `value="send-campaign"`)
	b.follow(b.site.Ask(http.MethodPost, campaign, sent)).Says("The campaign is being sent.")
	b.site.Ask(http.MethodPost, campaign, sent).Is(303)
	progress := clerk.Stream("/api/campaigns/1/progress")
	for told := map[string]any{}; told["status"] != "completed"; {
		progress.Next(&told)
	}
	done := b.get(campaign).Is(200).Says("Completed", "Sent 1")
	require.NotContains(t, done.Text, `value="cancel-campaign"`)
	require.Contains(t, done.Text, `<a class="button" href="/app/list/contacts?optIn=false&amp;listId=">Contacts without consent</a>`)
	require.NotContains(t, b.get("/app/list/contacts?optIn=false").Is(200).Says("Silent").Words(), "Asha")
	require.Regexp(t, `Arrived \d Not sent 0 Seen \d Sent 1`, done.Words(), "goods have another word than messages in Hindi")
	require.Regexp(t, `(?s)id="live".*Runs.*id="record"`, done.Text, "the stream updates all figures of the page")
	listed := b.get(campaign+"/recipients").Is(200).Says("Asha", "+91 98123 00001", "Contacts without consent or a phone are skipped.")
	require.Contains(t, listed.Text, `<option value="read">Seen</option>`)
	b.get(campaign + "/responses").Is(200).Says("There are none yet.")
	b.get("/app/campaigns/9").Is(404)

	clerk.POST("/api/campaigns", `{"name":"Holi","type":"broadcast","templateId":1,"audience":"all","schedule":"scheduled",
		"scheduledAt":"2099-03-01T10:00","templateParams":{"1":"A","2":"B"}}`).Status(201)
	require.Contains(t, b.get("/app/campaigns/2").Text, `data-stream="/api/campaigns/2/progress"`)
	b.get("/app/campaigns/2").Says("01 Mar 2099, 10:00")
	b.follow(b.submitOf("/app/campaigns/2", "/app/campaigns/2", `value="cancel-campaign"`)).Says("The campaign was cancelled.", "before it")

	// A campaign whose only message was refused has failed. The page says why, and sends it again.
	clerk.POST("/api/contacts", `{"name":"Ravi","phone":"9812300000"}`).Status(201)
	clerk.PATCH("/api/contacts/3", `{"optIn":true}`).Status(200)
	clerk.POST("/api/contact-lists", `{"name":"Ravi alone","contactIds":[3]}`).Status(201)
	clerk.POST("/api/campaigns", `{"name":"Onam","type":"broadcast","templateId":1,"audience":"1","templateParams":{"1":"A","2":"B"}}`).
		Status(201)
	const failed = "/app/campaigns/3"
	b.submitOf(failed, failed, `value="send-campaign"`).Is(303)
	progress = clerk.Stream("/api/campaigns/3/progress")
	for told := map[string]any{}; told["status"] != "failed"; {
		progress.Next(&told)
	}
	b.get(failed).Is(200).Says("Failed", "The network has refused every message")
	b.get(failed+"/recipients").Is(200).Says("Ravi", "The network cannot reach the recipient (131026)")
	b.follow(b.submitOf(failed, failed, `value="send-campaign"`)).Says("The campaign is being sent.")
}

// TestAMemberSeesAllBotsOfTheWorkspace shows that a member's list has the bots that other members and keys created.
func TestAMemberSeesAllBotsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	createParents(o, asha.Workspace)
	signedIn(o, asha.User.Email).get("/app/list/bots").Is(200).Says("Helper")
}
