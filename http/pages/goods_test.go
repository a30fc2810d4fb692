package pages_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// shop makes a company that sells a product, and returns the addresses of their pages.
func shopOf(o *apptest.Server) (company, product string) {
	o.T.Helper()
	seller := o.Bearer(o.Key(apptest.Home, `{"marketplace":"write"}`).Key)
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
	o := apptest.Start(t)
	company, product := shopOf(o)
	b := visitor(o)
	b.get(company).Is(200).Says("Surat Mills", "We weave.", "Payal <22k>", "₹1,20,000.50")
	page := b.get(product).Is(200).Says("Surat Mills", "Payal <22k>", "Silver anklets", "₹1,20,000.50", "Least quantity 10", "in stock")
	require.Contains(t, page.Text, `<title>Payal &lt;22k&gt; · Bahi</title>`)
	require.Contains(t, page.Text, `<meta name="description" content="Silver anklets">`)
	require.NotContains(t, page.Text, "<img")
	b.get("/products/" + apptest.Home).Is(404).Says("Product not found")
	b.get("/companies/no-such-company").Is(404).Says("Company not found")

	wrong := b.submit(product, product, "user_name", "Ravi", "user_email", "x", "quantity", "many").Is(400)
	require.Contains(t, wrong.Text, `id="f-user_email-create-enquiry-error"`)
	require.Contains(t, wrong.Text, `value="Ravi"`)
	filled := with(form(b.get(product), product, ""), "user_name", "Ravi", "user_email", "ravi@example.com", "quantity", "20", "message",
		"In rose gold?")
	for range 2 { // sent twice
		b.follow(b.site.Ask(http.MethodPost, product, filled)).Says("Your enquiry is sent.")
	}
	b.follow(b.submit(company, company, "user_name", "Bot", "user_email", "bot@example.com", "website", "x"))
	b.follow(b.submit(company, company, "user_name", "Usha", "user_email", "usha@example.com")).Says("Your enquiry is sent.")
	visitor(o).site.Ask(http.MethodPost, product, filled).Is(403)
	var list map[string]any
	o.Bearer(o.Key(apptest.Home, `{"marketplace":"read"}`).Key).GET("/api/v1/enquiries").Status(200).JSON(&list)
	all, _ := list["items"].([]any)
	require.Len(t, all, 2)
	first, second := all[0].(map[string]any), all[1].(map[string]any)
	require.Equal(t, []any{"Usha", "Ravi", 20.0}, []any{first["user_name"], second["user_name"], second["quantity"]})
	require.Equal(t, product, fmt.Sprint("/products/", second["product_id"]))

	id := fmt.Sprint(first["id"])
	b.get("/enquiries/" + id).Leads("/app/enquiries/" + id)
	b.get("/enquiries").Leads("/app/enquiries")
	b.get("/contacts/" + apptest.Home).Leads("/app/sign-in?next=%2Fcontacts%2F" + apptest.Home)
}
