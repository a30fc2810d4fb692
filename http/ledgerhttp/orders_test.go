package ledgerhttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// made posts a record and returns its id.
func made(c *apitest.Client, path, body string, values ...any) int64 {
	var one struct{ ID int64 }
	picked(c.POST(path, fmt.Sprintf(body, values...)).Status(201), &one)
	return one.ID
}

// picked reads the response's fields that into has.
func picked(a *apitest.Answer, into any) {
	if err := json.Unmarshal([]byte(a.Text), into); err != nil {
		panic(err.Error() + ": " + a.Text)
	}
}

// orderFixture is a client with an order of two pieces, 30.5 g, and a karigar.
type orderFixture struct {
	clerk                  *apitest.Client
	client, karigar, order int64
}

func openOrderFixture(t *testing.T) orderFixture {
	t.Helper()
	clerk := apptest.Clerk(t)
	s := orderFixture{clerk: clerk}
	s.client, s.karigar = made(clerk, "/client", `{"name":"Meena Shah"}`), made(clerk, "/karigar", `{"name":"Imran"}`)
	s.order = s.orders(s.client, "12")
	return s
}

func (s orderFixture) orders(client int64, slip string) int64 {
	return made(s.clerk, "/client-order", `{"client_id":%d,"slip_number":%q,"date":"2025-03-01","delivery_date":"2025-04-01","items":[
		{"item_name":"payal","weight":20.5,"making_charge":1250.5,"quantity":2},{"item_name":"ring","weight":10}]}`, client, slip)
}

func (s orderFixture) delivers(order int64, weight string) int64 {
	return made(s.clerk, "/takada", `{"client_order_id":%d,"date":"2025-03-05","items":[{"item_name":"payal","weight":%s,"karigar_id":%d}]}`,
		order, weight, s.karigar)
}

func (s orderFixture) path() string { return fmt.Sprint("/client-order/", s.order) }

// items are the items of an order in the form of a response, without their ids.
func items(a *apitest.Answer) (ids []int64, rest string) {
	var o struct{ Items []map[string]any }
	picked(a, &o)
	for _, item := range o.Items {
		id, _ := item["id"].(float64)
		ids = append(ids, int64(id))
		rest += fmt.Sprint(item["item_name"], " ", item["weight"], ";")
	}
	return ids, rest
}

func TestAnOrderIsAddedChangedAndDelivered(t *testing.T) {
	t.Parallel()
	s := openOrderFixture(t)
	a := s.clerk.GET(s.path()).Status(200)
	require.Equal(t, `"0"`, a.Header("ETag"))
	ids, _ := items(a)
	shown := func(delivered, pending, status string, revision int) string {
		return fmt.Sprintf(`{"id":%d,"client_id":%d,"client_name":"Meena Shah","slip_number":"12","date":"2025-03-01",`+
			`"delivery_date":"2025-04-01","items":[
			{"id":%d,"item_name":"payal","weight":20.5,"making_charge":1250.5,"quantity":2},{"id":%d,"item_name":"ring","weight":10,`+
			`"making_charge":0}],
			"delivered_weight":%s,"pending_weight":%s,"status":%q,"revision":%d}`, s.order, s.client, ids[0], ids[1], delivered, pending,
			status, revision)
	}
	a.Body(shown("0", "30.5", "open", 0))
	s.delivers(s.order, "20")
	s.clerk.GET(s.path()).Status(200).Body(shown("20", "10.5", "partial", 0))
	s.delivers(s.order, "11")
	read := s.clerk.GET(s.path()).Status(200).Body(shown("31", "-0.5", "delivered", 0))
	require.Equal(t, `"0"`, read.Header("ETag"), "takadas move no ETag of an order")
	s.clerk.PUT(s.path(), read.Text).Status(200).Body(shown("31", "-0.5", "delivered", 0)) // an edit with the values just read changes nothing

	edited := s.clerk.With("If-Match", `"0"`, "Bahi-Reason", "she took two rings").PUT(s.path(), fmt.Sprintf(
		`{"slip_number":null,"delivery_date":null,"items":[{"id":%d,"item_name":"rings","weight":20,"quantity":2},{"item_name":"chain",`+
			`"weight":15.5}]}`, ids[1])).Status(200)
	require.Equal(t, `"1"`, edited.Header("ETag"))
	after, rest := items(edited)
	require.Equal(t, "rings 20;chain 15.5;", rest)
	require.Equal(t, ids[1], after[0], "an item with a known id keeps it")
	require.NotContains(t, ids, after[1])
	edited.Body(s.clerk.GET(s.path()).Status(200).Text)
	require.Contains(t, edited.Text, `"slip_number":null`)
	require.Contains(t, edited.Text, `"pending_weight":4.5`)
}

func TestAnUnknownIDIsToldBesideOtherFaults(t *testing.T) {
	t.Parallel()
	apptest.Clerk(t).POST("/client-order", `{"client_id":999999999,"date":"2299-01-01","items":[{"item_name":"","weight":-1}]}`).Status(422).
		Contains(`"field":"client_id"`, `"field":"date"`, `"field":"items[0].item_name"`, `"field":"items[0].weight"`)
	apptest.Clerk(t).POST("/takada", `{"client_order_id":999999999,"date":"2299-01-01","items":[{"item_name":"","weight":-1}]}`).Status(422).
		Contains(`"field":"client_order_id"`, `"field":"date"`, `"field":"items[0].item_name"`, `"field":"items[0].weight"`)
}

func TestOrdersAreListedByPageAndByClient(t *testing.T) {
	t.Parallel()
	s := openOrderFixture(t)
	s.clerk.GET("/client-orders?client_id=" + fmt.Sprint(made(s.clerk, "/client", `{"name":"Nobody"}`))).Status(200).
		Body(`{"items":[],"total":0,"page":1,"page_size":50,"total_pages":0}`)
	asha := made(s.clerk, "/client", `{"name":"Asha"}`)
	second, third := s.orders(asha, "13"), s.orders(s.client, "14")
	ids := func(query string) (text string) {
		var page struct {
			Items []struct{ ID int64 }
			Total int64
		}
		picked(s.clerk.GET("/client-orders"+query).Status(200), &page)
		for _, one := range page.Items {
			text += fmt.Sprint(one.ID, " ")
		}
		return fmt.Sprint(text, "of ", page.Total)
	}
	require.Equal(t, fmt.Sprint(s.order, " ", second, " ", third, " of 3"), ids(""))
	slip := s.orders(asha, "Ñ 12")
	require.Equal(t, fmt.Sprint(slip, " of 1"), ids("?slip_number=%20%C3%B1%2012"))
	require.Equal(t, "of 0", ids(fmt.Sprintf("?slip_number=12&client_id=%d", asha)))
	s.clerk.DELETE(fmt.Sprint("/client-order/", slip)).Status(204)
	require.Equal(t, fmt.Sprint(s.order, " of 1"), ids("?slip_number=12"))
	require.Equal(t, fmt.Sprint(s.order, " ", third, " of 2"), ids(fmt.Sprint("?client_id=", s.client)))
	require.Equal(t, fmt.Sprint(third, " of 3"), ids("?page=2&page_size=2"))
	require.Equal(t, "of 3", ids("?page=9&page_size=2"))
	s.clerk.GET("/client-orders?client_id=999999999").Problem(404, "Client not found")
	s.clerk.GET(fmt.Sprint("/client-orders?client_id=", s.karigar)).Problem(404, "Client not found")
	for _, bad := range []string{"page_size=101", "page_size=0", "page=0", "page=x", "client_id=0", "client_id=x", "as_of=2025-03-01",
		"known_at=1", "status=open", "page=1&page=2"} {
		s.clerk.GET("/client-orders?" + bad).Status(422).Contains(`"field":"` + strings.Split(bad, "=")[0] + `"`)
	}
}

func TestTheHistoryOfAnOrderOutlivesIt(t *testing.T) {
	t.Parallel()
	s := openOrderFixture(t)
	takada := fmt.Sprint("/takada/", s.delivers(s.order, "5"))
	s.clerk.With("Bahi-Reason", "typo").PUT(s.path(), `{"slip_number":"13"}`).Status(200)
	s.clerk.With("Bahi-Reason", "moved away").DELETE(fmt.Sprint("/client/", s.client)).Status(204)
	s.clerk.GET(s.path()).Problem(404, "Client order not found")
	s.clerk.GET(takada).Problem(404, "Takada not found")
	s.clerk.GET("/client-orders").Status(200).Body(`{"items":[],"total":0,"page":1,"page_size":50,"total_pages":0}`)
	s.clerk.GET("/takadas").Status(200).Body(`[]`)
	type version struct {
		Actor, Reason, Change string
		Before, After         *struct {
			SlipNumber *string `json:"slip_number"`
			Revision   *int64
		}
	}
	var all []version
	picked(s.clerk.GET(s.path()+"/history").Status(200), &all)
	require.Len(t, all, 3)
	require.Equal(t, []string{"added", "edited", "deleted"}, []string{all[0].Change, all[1].Change, all[2].Change})
	require.Equal(t, []string{"", "typo", "moved away"}, []string{all[0].Reason, all[1].Reason, all[2].Reason})
	require.Equal(t, "12 13", *all[1].Before.SlipNumber+" "+*all[1].After.SlipNumber)
	require.Nil(t, all[0].Before)
	require.Nil(t, all[2].After)
	require.EqualValues(t, 1, *all[2].Before.Revision)
	require.True(t, strings.HasPrefix(all[2].Actor, "api_key:"))
	all = nil
	picked(s.clerk.GET(takada+"/history").Status(200), &all)
	require.Len(t, all, 2)
	require.Equal(t, "moved away", all[1].Reason)
}

func TestOrdersAreDrawn(t *testing.T) {
	t.Parallel()
	s := openOrderFixture(t)
	s.delivers(s.order, "5")
	asha := made(s.clerk, "/client", `{"name":"રમેશભાઈ"}`)
	s.orders(asha, "13")
	for query, says := range map[string][]string{
		"":                                  {"All clients", "Total of 2 orders 61.000 5.000 56.000"},
		fmt.Sprint("?client_id=", s.client): {"Client: Meena Shah", "Total of 1 order 30.500 5.000 25.500"},
		"?page=2&page_size=1":               {"Page 2 of the list, with 1 orders a page", "Total of 1 order 30.500 0.000 30.500"},
	} {
		a := s.clerk.GET("/client-orders/pdf" + query).Status(200)
		require.Contains(t, a.Header("Content-Disposition"), "inline; filename=client-orders.pdf")
		text := apptest.Words(t, a)
		for _, words := range says {
			require.Contains(t, text, words, query)
		}
	}
}

func TestAWriteIsAnsweredWhileTheOrdersAreLate(t *testing.T) {
	t.Parallel()
	settings := apptest.Settings(t, apptest.Database(t))
	settings.ReadWait = 50 * time.Millisecond
	o := apptest.StartAs(t, settings)
	s := orderFixture{clerk: o.Clerk(apptest.Home)}
	s.client, s.karigar = made(s.clerk, "/client", `{"name":"Meena Shah"}`), made(s.clerk, "/karigar", `{"name":"Imran"}`)
	other := made(s.clerk, "/client", `{"name":"Asha"}`)
	s.order = s.orders(s.client, "12")
	fresh := func() bool { return s.clerk.GET("/client-orders").Status(200).Header("Bahi-Stale") == "" }
	require.Eventually(t, fresh, time.Minute, 5*time.Millisecond)
	o.Operator().POST("/ops/projections/orders/pause", nil).Status(200)

	late := s.clerk.POST("/client-order", fmt.Sprintf(`{"client_id":%d,"slip_number":"13","date":"2025-03-01","items":[{"item_name":"ring",`+
		`"weight":2}]}`, s.client)).Status(201)
	for _, derived := range []string{"client_name", "delivered_weight", "pending_weight", "status"} {
		require.NotContains(t, late.Text, derived)
	}
	s.clerk.PUT(fmt.Sprint("/client-order/", apptest.IdOf(t, []byte(late.Text))), `{"slip_number":"14"}`).Status(200)
	require.Contains(t, late.Text, `"slip_number":"13"`)
	s.delivers(s.order, "5")
	read := s.clerk.GET(s.path()).Status(200)
	require.Equal(t, "true", read.Header("Bahi-Stale"))
	require.Contains(t, read.Text, `"delivered_weight":0`)
	head := o.Head()
	s.clerk.PUT(s.path(), fmt.Sprintf(`{"client_id":%d}`, other)).Problem(409, "The client of an order that has takadas cannot change")
	require.Equal(t, head, o.Head())

	o.Operator().POST("/ops/projections/orders/resume", nil).Status(200)
	require.Eventually(t, fresh, time.Minute, 5*time.Millisecond)
	require.Contains(t, s.clerk.GET(s.path()).Status(200).Text, `"delivered_weight":5`)
}

func TestATakadaIsAddedChangedMovedAndListed(t *testing.T) {
	t.Parallel()
	s := openOrderFixture(t)
	second, asha := s.orders(s.client, "13"), made(s.clerk, "/client", `{"name":"Asha"}`)
	foreign := s.orders(asha, "14")
	one, other := s.delivers(s.order, "5"), s.delivers(foreign, "6")
	path := fmt.Sprint("/takada/", one)
	shown := func(order int64, weight, karigar string, revision int) string {
		return fmt.Sprintf(`{"id":%d,"client_order_id":%d,"date":"2025-03-05","items":[{"item_name":"payal","weight":%s,"karigar_id":%s}],`+
			`"revision":%d}`, one, order, weight, karigar, revision)
	}
	imran := fmt.Sprint(s.karigar)
	read := s.clerk.GET(path).Status(200).Body(shown(s.order, "5", imran, 0))
	require.Equal(t, `"0"`, read.Header("ETag"))
	s.clerk.PUT(path, read.Text).Status(200).Body(read.Text) // an edit with the values just read changes nothing
	s.clerk.PUT(path, fmt.Sprintf(`{"items":[{"item_name":"payal","weight":7.5,"karigar_id":%d}]}`,
		s.karigar)).Status(200).Body(shown(s.order, "7.5", imran, 1))
	s.clerk.PUT(path, fmt.Sprintf(`{"client_order_id":%d}`, second)).Status(200).Body(shown(second, "7.5", imran, 2))
	require.Contains(t, s.clerk.GET(s.path()).Status(200).Text, `"delivered_weight":0`)
	require.Contains(t, s.clerk.GET(fmt.Sprint("/client-order/", second)).Status(200).Text, `"delivered_weight":7.5`)

	ids := func(query, total string) (text string) {
		var all []struct{ ID int64 }
		a := s.clerk.GET("/takadas" + query).Status(200)
		picked(a, &all)
		require.Equal(t, total, a.Header("X-Total-Count"), query)
		for _, one := range all {
			text += fmt.Sprint(one.ID, " ")
		}
		return strings.TrimSpace(text)
	}
	both := fmt.Sprint(one, " ", other)
	require.Equal(t, both, ids("", "2"))
	require.Equal(t, fmt.Sprint(other), ids("?page=2&page_size=1", "2"))
	require.Empty(t, ids("?page=3&page_size=1", "2"))
	require.Equal(t, fmt.Sprint(one), ids(fmt.Sprint("?client_order_id=", second), "1"))
	require.Equal(t, fmt.Sprint(other), ids(fmt.Sprint("?client_id=", asha), "1"))
	require.Empty(t, ids(fmt.Sprintf("?client_id=%d&client_order_id=%d", asha, second), "0"))

	s.clerk.DELETE(fmt.Sprint("/karigar/", s.karigar)).Status(204)
	s.clerk.GET(path).Status(200).Body(shown(second, "7.5", "null", 2))
	s.clerk.DELETE(path).Status(204).None()
	s.clerk.GET(path).Problem(404, "Takada not found")
}
