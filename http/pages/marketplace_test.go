package pages_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/marketplaceview"
)

const answering = `{"marketplace":"write","messaging":"write"}`

// asked creates a company, and an enquiry of a buyer to it. It returns the address of the enquiry's page.
func asked(o *apptest.Server, c *apitest.Client, more string) (page string, company marketplaceview.Company) {
	o.T.Helper()
	name := "Mill " + strings.Map(func(r rune) rune { return r%10 + 'a' }, o.Home)
	c.POST("/api/v1/companies", fmt.Sprintf(`{"name":%q}`, name)).Status(201).JSON(&company)
	return askedOf(o, company, more), company
}

func askedOf(o *apptest.Server, company marketplaceview.Company, more string) string {
	o.T.Helper()
	var made marketplaceview.SentEnquiry
	o.Anonymous().POST("/api/v1/enquiries", fmt.Sprintf(`{"to_company_id":%q,"user_name":"Asha Rao","user_email":%q%s}`,
		company.ID, o.Address("asha"), more)).Status(201).JSON(&made)
	return fmt.Sprint("/app/enquiries/", made.ID)
}

func TestEnquiriesAreAnswered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, b := o.Bearer(o.Key(o.Home, answering).Key), byKey(o, o.Home, answering)
	b.get("/app/enquiries").Is(200).Says("There are none yet.")
	phone := "9198" + fmt.Sprintf("%08d", len(o.Home)*7919)
	first, mill := asked(o, c, `,"message":"<b>How many?</b>","quantity":3,"user_phone":"+`+phone+`"`)
	b.get("/app/enquiries").Is(200).Says("Asha Rao", "<b>How many?</b>", mill.Name, "Pending")
	b.get("/app/enquiries?status=lost").Is(200).Says("Nothing matches.")
	b.get("/app/enquiries?company_id=" + mill.ID.String()).Is(200).Says("Asha Rao")
	shown := b.get(first).Is(200).Says("<b>How many?</b>", "Quantity 3", "+91 "+phone[2:7]+" "+phone[7:], "The enquiry came.", "Who was told")
	require.Contains(t, shown.Text, `href="mailto:asha@`)
	require.NotContains(t, shown.Text, `value="chat"`, "nobody has this phone")
	b.get("/enquiries/" + strings.TrimPrefix(first, "/app/enquiries/")).Leads(first)

	// A reply by chat: the conversation opens with the text filled in.
	talk := arrives(o, c, channelOf(c, "Sales"), phone, "Asha", "Hello", 0)
	chat := b.submitOf(first, first, `value="chat"`)
	require.Contains(t, chat.Header.Get("Location"), talk+"?")
	b.follow(chat).Says("The enquiry is marked as contacted.", "Hello Asha Rao, thank you for your enquiry.", "> <b>How many?</b>")
	b.get(first).Is(200).Says(": from Pending to Contacted")
	require.NotContains(t, b.submitOf(first, first, `value="talk"`).Is(303).Header.Get("Location"), "contacted", "it was answered before")

	second := askedOf(o, mill, "")
	b.follow(b.submitOf(second, second, `value="mail"`)).Says("The enquiry is marked as contacted.", "Contacted")
	edit := func(pairs ...string) apptest.Page {
		return b.submitOf(second, second, `value="edit-enquiry"`, append([]string{"status", "converted", "notes", "wants 3"}, pairs...)...)
	}
	b.follow(edit()).Says("The enquiry was changed.", "from Contacted to Converted", "wants 3")
	edit("status", "lost").Is(409).Says("Status cannot change from converted to lost", "wants 3")
	edit("notes", strings.Repeat("a", 5001)).Is(422).Says("5000")
	stale := form(b.get(second), second, `value="edit-enquiry"`)
	c.PATCH("/api/v1/enquiries/"+strings.TrimPrefix(second, "/app/enquiries/"), `{"notes":"theirs"}`).Status(200)
	b.site.Ask(http.MethodPost, second, with(stale, "status", "converted", "notes", "mine")).Is(412).
		Says("Another person has changed this", "Notes theirs mine")
	fresh := with(form(b.get(second), second, `value="edit-enquiry"`), "status", "converted", "notes", "mine")
	for range 2 { // sent twice
		b.follow(b.site.Ask(http.MethodPost, second, fresh)).Says("The enquiry was changed.")
	}

	spam := askedOf(o, mill, `,"website":"http://spam.example"`)
	b.get(spam).Is(404)
	require.NotContains(t, b.get("/app/enquiries").Text, spam)
	require.Contains(t, b.get("/app/enquiries?spam=true").Is(200).Text, spam+"?spam=true")
	b.get(spam + "?spam=true").Is(200).Says("Asha Rao")
}

// shopOf makes a company that sells a product, and returns the addresses of their pages.
func shopOf(o *apptest.Server, workspace string) (company, product string) {
	o.T.Helper()
	seller := o.Bearer(o.Key(workspace, `{"marketplace":"write"}`).Key)
	var made, sold map[string]any
	seller.POST("/api/v1/companies", `{"name":"Surat Mills","city":"Surat","description":"We weave.\nSince 1980."}`).Status(201).JSON(&made)
	body, err := json.Marshal(map[string]any{
		"company_id": made["id"], "name": "Payal <22k>", "description": "Silver anklets", "price_amount": 12000050, "moq": 10,
		"images": []string{"https://cdn.example/p.jpg"},
	})
	require.NoError(o.T, err)
	seller.POST("/api/v1/catalog", string(body)).Status(201).JSON(&sold)
	return fmt.Sprint("/companies/", made["slug"]), fmt.Sprint("/products/", sold["id"])
}

func TestAnybodySeesGoodsAndAsksForThem(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	company, product := shopOf(o, o.Home)
	b := visitor(o)
	b.get(company).Is(200).Says("Surat Mills", "We weave.", "Payal <22k>", "₹1,20,000.50")
	page := b.get(product).Is(200).Says("Surat Mills", "Payal <22k>", "Silver anklets", "₹1,20,000.50", "Least quantity 10", "in stock")
	require.Contains(t, page.Text, `<title>Payal &lt;22k&gt; · Bahi</title>`)
	require.Contains(t, page.Text, `<meta name="description" content="Silver anklets">`)
	require.NotContains(t, page.Text, "<img")
	b.get("/products/" + o.Home).Is(404).Says("Product not found")
	b.get("/companies/no-such-company").Is(404).Says("Company not found")

	wrong := b.submit(product, product, "user_name", "Ravi", "user_email", "x", "quantity", "many").Is(400)
	require.Contains(t, wrong.Text, `id="f-user_email-create-enquiry-error"`)
	require.Contains(t, wrong.Text, `value="Ravi"`)
	filled := with(form(b.get(product), product, ""), "user_name", "Ravi", "user_email", o.Address("ravi"), "quantity", "20", "message",
		"In rose gold?")
	for range 2 { // sent twice
		b.follow(b.site.Ask(http.MethodPost, product, filled)).Says("Your enquiry is sent.")
	}
	b.follow(b.submit(company, company, "user_name", "Bot", "user_email", "bot@example.com", "website", "x"))
	b.follow(b.submit(company, company, "user_name", "Usha", "user_email", o.Address("usha"))).Says("Your enquiry is sent.")
	visitor(o).site.Ask(http.MethodPost, product, filled).Is(403)
	list := apitest.Read[map[string]any](o.Bearer(o.Key(o.Home, `{"marketplace":"read"}`).Key).GET("/api/v1/enquiries").Status(200))
	all, _ := list["items"].([]any)
	require.Len(t, all, 2)
	first, second := all[0].(map[string]any), all[1].(map[string]any)
	require.Equal(t, []any{"Usha", "Ravi", 20.0}, []any{first["user_name"], second["user_name"], second["quantity"]})
	require.Equal(t, product, fmt.Sprint("/products/", second["product_id"]))

	id := fmt.Sprint(first["id"])
	b.get("/enquiries/" + id).Leads("/app/enquiries/" + id)
	b.get("/enquiries").Leads("/app/enquiries")
	b.get("/contacts/" + o.Home).Leads("/app/sign-in?next=%2Fcontacts%2F" + o.Home)
}
