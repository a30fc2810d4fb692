package pages_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// orderValues are the inputs of an order of Patel Jewellers.
var orderValues = []string{
	"client_id", " patel  jewellers", "date", "2025-03-01", "slip_number", "12", "items[0].item_name", "payal", "items[0].weight", "100",
	"items[0].quantity", "4",
	"items[1].item_name", "ring", "items[1].weight", "30.75",
}

func TestOrdersAreKeptInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b, clerk := byKey(o, apptest.Home, write), o.Clerk(apptest.Home)
	for _, name := range []string{"Patel Jewellers", "Patel & Sons", "Ram", "Ram"} {
		clerk.POST("/client", `{"name":"`+name+`"}`).Status(201)
	}
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201)

	t.Run("add", func(t *testing.T) {
		b.get("/app/orders").Is(200).Says("There are none yet.", "Add an order")
		preview := b.submitOf("/app/orders", "/app/orders", "items[0]", append([]string{"preview", "part"}, orderValues...)...).Is(200)
		preview.Says("Patel Jewellers, slip 12, 2 items, 130.750 g")
		require.NotContains(t, preview.Text, "<main")
		whole := b.submitOf("/app/orders", "/app/orders", "items[0]", append([]string{"preview", "page"}, orderValues...)...).Is(200)
		whole.Says("Patel Jewellers, slip 12, 2 items, 130.750 g", "There are none yet.")
		require.Contains(t, whole.Text, `value="payal"`)
		wrong := b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "patel", "items[0].item_name", "payal", "items[0].weight",
			"much").Is(422)
		wrong.Says("No account has this name. Is it Patel & Sons / Patel Jewellers?")
		require.Contains(t, wrong.Text, `value="much"`)
		require.Equal(t, 3, strings.Count(wrong.Text, `class="error"`), "the client, the date and the weight")
		b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "ram", "date", "2025-03-01").Is(422).Says("Several have this name.")
		b.submitOf("/app/orders", "/app/orders", "items[0]", "client_id", "nobody", "date", "2025-03-01").Is(422).Says("open the account first")

		filled := form(b.get("/app/orders"), "/app/orders", "items[0]")
		filled = with(filled, orderValues...)
		added := b.site.Ask(http.MethodPost, "/app/orders", filled)
		b.follow(added).Says("Saved.", "Order 1", "Patel Jewellers", "Slip number 12", "130.750 g", "payal · Pieces 4 · Weight 100.000 g",
			"added the order", "Nothing was delivered yet.")
		require.Equal(t, added.Header.Get("Location"), b.site.Ask(http.MethodPost, "/app/orders", filled).Is(303).Header.Get("Location"))
		b.get("/app/orders").Is(200).Says("Order 1", "Patel Jewellers", "open", "130.750 g")
		b.get("/app/orders?client_id=ram+%C2%B7+3").Is(200).Says("Nothing matches.")
		b.get("/app/orders?client_id=Ramesh").Is(200).Says("No account has this name.", "Order 1")
	})

	const order = "/app/orders/1"
	t.Run("deliver", func(*testing.T) {
		takada := []string{"date", "2025-03-05", "items[0].item_name", "payal", "items[0].weight", "60", "items[0].karigar_id", "imran"}
		b.submitOf(order, order, `value="add-takada"`, append([]string{"preview", "part"}, takada...)...).Is(200).
			Says("1 item, 60.000 g", "After it 70.750 g is left.")
		b.submitOf(order, order, `value="add-takada"`, "date", "2025-03-05", "items[0].item_name", "payal", "items[0].weight", "200", "preview",
			"part").Is(200).
			Says("After it 69.250 g too much is delivered.")
		b.submitOf(order, order, `value="add-takada"`, append([]string{"preview", "page"}, takada...)...).Is(200).
			Says("After it 70.750 g is left.", "Nothing was delivered yet.")
		b.submitOf(order, order, `value="add-takada"`, "date", "2025-03-05", "items[0].weight", "60", "items[0].karigar_id",
			"Imra").Is(422).Says("Is it Imran?")
		delivered := b.submitOf(order, order, `value="add-takada"`, takada...)
		b.follow(delivered).Says("The takada was added.", "partly delivered", "60.000 g", "70.750 g", "Karigar Imran",
			"added the takada of 05 Mar 2025")

		one := order + "/takadas/1"
		b.get(one).Is(200).Says("Takada 1", "History")
		edited := b.submitOf(one, one, `value="edit-takada"`, "items[0].item_name", "payal", "items[0].weight", "140",
			"items[0].karigar_id", "",
			"date", "2025-03-05", "reason", "weighed again")
		b.follow(edited).Says("The takada was changed.", "delivered", "9.250 g too much", "weighed again", "Items, line 1 · Weight",
			"Items, line 1 · Karigar")
		b.submitOf(one, one, `value="edit-takada"`, "items[0].item_name", "payal", "items[0].weight", "5", "preview",
			"page").Is(200).Says("1 item, 5.000 g", "Takada 1")
		b.get("/app/orders/77/takadas/1").Is(404)
		b.submitOf(one, one, `value="delete-takada"`).Is(422).Says("Say why.")
		b.follow(b.submitOf(one, one, `value="delete-takada"`, "reason", "of another order")).Says("Deleted.", "Nothing was delivered yet.")
		b.get(one).Is(200).Says("It was deleted.", "of another order")
	})

	t.Run("edit and delete", func(t *testing.T) {
		shown := b.get(order).Is(200)
		require.Contains(t, shown.Text, `value="Patel Jewellers"`)
		stale := form(shown, order, `value="edit-client-order"`)
		values := []string{"client_id", "Patel & Sons", "date", "2025-03-01", "items[0].item_name", "payal", "items[0].weight", "101",
			"slip_number", "12", "reason", "a slip"}
		b.follow(b.submitOf(order, order, `value="edit-client-order"`, values...)).Says("The order was changed.", "Patel & Sons",
			"101.000 g", "a slip", "Items, line 2")
		stale = with(stale, values...)
		stale.Set("items[0].weight", "102")
		b.site.Ask(http.MethodPost, order, stale).Is(412).Says("Another person has changed this", "101.000 g", "102.000 g", "Keep theirs")
		b.submitOf(order, order, `value="edit-client-order"`, "client_id", "Patel & Sons", "date", "2025-03-01", "items[0].item_name", "",
			"items[0].weight", "1").Is(422)
		b.follow(b.submitOf(order, order, `value="delete-client-order"`, "reason", "cancelled")).Says("Deleted.", "It was deleted.", "cancelled")
		b.get("/app/orders").Is(200).Says("There are none yet.")
	})

	t.Run("pages", func(t *testing.T) {
		var all []string
		for range 61 {
			var made map[string]any
			clerk.POST("/client-order", `{"client_id":1,"date":"2025-03-01","items":[{"item_name":"kada","weight":10}]}`).Status(201).JSON(&made)
			all = append([]string{fmt.Sprint(made["id"])}, all...)
		}
		ids := func(path string) (found []string) {
			for _, m := range regexp.MustCompile(`href="/app/orders/(\d+)"`).FindAllStringSubmatch(b.get(path).Is(200).Text, -1) {
				found = append(found, m[1])
			}
			return found
		}
		newest, oldest := ids("/app/orders"), ids("/app/orders?page=2")
		require.Len(t, newest, 31)
		require.Len(t, oldest, 30)
		require.Equal(t, all, slices.Concat(newest, oldest), "each order once, the newest first")
		pdf := regexp.MustCompile(`href="(/client-orders/pdf[^"]*)"`).FindStringSubmatch(b.get("/app/orders?client_id=Patel+Jewellers").Text)
		require.Equal(t, "/client-orders/pdf?client_id=1", pdf[1])
		require.NotEmpty(t, b.get(pdf[1]).Is(200).Text)
	})
}
