package ledgerhttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestATakadaIsAddedChangedMovedAndListed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
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
	s.clerk.PUT(path, read.Text).Status(200).Body(read.Text) // what was read changes nothing
	s.clerk.PUT(path, fmt.Sprintf(`{"items":[{"item_name":"payal","weight":7.5,"karigar_id":%d}]}`,
		s.karigar)).Status(200).Body(shown(s.order, "7.5", imran, 1))
	s.clerk.With("If-Match", `"0"`).PUT(path, `{"date":"2025-03-06"}`).Problem(412, "It was changed since you read it")
	s.clerk.PUT(path, fmt.Sprintf(`{"client_order_id":%d}`, foreign)).Problem(409,
		"A takada stays with its client: the other order is of another one")
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
	require.Equal(t, both, ids("?page_size=1000", "2"))
	require.Equal(t, fmt.Sprint(other), ids("?page=2&page_size=1", "2"))
	require.Empty(t, ids("?page=3&page_size=1", "2"))
	require.Equal(t, fmt.Sprint(one), ids(fmt.Sprint("?client_order_id=", second), "1"))
	require.Equal(t, fmt.Sprint(other), ids(fmt.Sprint("?client_id=", asha), "1"))
	require.Empty(t, ids(fmt.Sprintf("?client_id=%d&client_order_id=%d", asha, second), "0"))
	for _, bad := range []string{"page=2", "page_size=1001", "page_size=0", "client_id=x", "client_order_id=-1", "client_id=999999999",
		"client_order_id=999999999", fmt.Sprint("client_id=", s.karigar), "as_of=2025-03-01", "known_at=1", "karigar_id=1"} {
		require.Contains(t, s.clerk.GET("/takadas?"+bad).Status(422).Text, `"field":"`+strings.Split(bad, "=")[0]+`"`, bad)
	}

	s.clerk.DELETE(fmt.Sprint("/karigar/", s.karigar)).Status(204)
	s.clerk.GET(path).Status(200).Body(shown(second, "7.5", "null", 2))
	require.Contains(t, s.clerk.GET("/takadas").Status(200).Text, `"karigar_id":null`)
	s.clerk.PUT(path, `{"date":"2025-03-05"}`).Status(200).Body(shown(second, "7.5", "null", 2))
	s.clerk.DELETE(path).Status(204).None()
	s.clerk.GET(path).Problem(404, "Takada not found")
}

// Each is refused with the field, and changes nothing.
func TestBadTakadasAreRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	o := apptest.Share(t)
	abroad := shop{clerk: o.Clerk(o.Abroad)}
	abroad.client, abroad.karigar = made(abroad.clerk, "/client", `{"name":"Stranger"}`), made(abroad.clerk, "/karigar", `{"name":"Strange"}`)
	foreign := abroad.orders(abroad.client, "1")
	path := fmt.Sprint("/takada/", s.delivers(s.order, "5"))
	gone, left := s.orders(s.client, "2"), made(s.clerk, "/karigar", `{"name":"Left"}`)
	s.clerk.DELETE(fmt.Sprint("/client-order/", gone)).Status(204)
	s.clerk.DELETE(fmt.Sprint("/karigar/", left)).Status(204)
	before := s.clerk.GET("/takadas").Status(200).Text
	const item = `[{"item_name":"ring","weight":1}]`
	by := func(karigar any) string {
		return fmt.Sprintf(`{"client_order_id":{order},"date":"2025-03-01","items":[{"item_name":"x","weight":1},{"item_name":"x","weight":1,`+
			`"karigar_id":%v}]}`, karigar)
	}
	on := func(order any) string {
		return fmt.Sprintf(`{"client_order_id":%v,"date":"2025-03-01","items":%s}`, order, item)
	}
	for what, c := range map[string]struct{ body, field string }{
		"an order of another workspace":  {on(foreign), "client_order_id"},
		"a deleted order":                {on(gone), "client_order_id"},
		"an unknown order":               {on(999_999_999), "client_order_id"},
		"an order of 0":                  {on(0), "client_order_id"},
		"an order as a text":             {on(`"1"`), "client_order_id"},
		"a karigar of another workspace": {by(abroad.karigar), "items[1].karigar_id"},
		"a deleted karigar":              {by(left), "items[1].karigar_id"},
		"a client for a karigar":         {by(s.client), "items[1].karigar_id"},
		"an unknown karigar":             {by(999_999_999), "items[1].karigar_id"},
		"a negative karigar":             {by(-1), "items[1].karigar_id"},
		"a karigar by name":              {by(`"Imran"`), "items[1].karigar_id"},
		"a date after tomorrow":          {`{"client_order_id":{order},"date":"2199-01-01","items":` + item + `}`, "date"},
		"empty items":                    {`{"client_order_id":{order},"date":"2025-03-01","items":[]}`, "items"},
		"an item without a name":         {`{"client_order_id":{order},"date":"2025-03-01","items":[{"weight":1}]}`, "items[0].item_name"},
		"a weight of 0": {`{"client_order_id":{order},"date":"2025-03-01","items":[{"item_name":"x","weight":0}]}`,
			"items[0].weight"},
		"a negative weight":  {`{"client_order_id":{order},"date":"2025-03-01","items":[{"item_name":"x","weight":-0.001}]}`, "items[0].weight"},
		"a weight as a text": {`{"client_order_id":{order},"date":"2025-03-01","items":[{"item_name":"x","weight":"1"}]}`, "items[0].weight"},
		"an unknown field":   {`{"client_order_id":{order},"order_id":1,"date":"2025-03-01","items":` + item + `}`, "order_id"},
		"a making charge": {`{"client_order_id":{order},"date":"2025-03-01","items":[{"item_name":"x","weight":1,"making_charge":1}]}`,
			"items[0].making_charge"},
	} {
		body := strings.ReplaceAll(c.body, "{order}", fmt.Sprint(s.order))
		for _, a := range []string{s.clerk.POST("/takada", body).Status(422).Text, s.clerk.PUT(path, body).Status(422).Text} {
			require.Contains(t, a, `"field":"`+c.field+`"`, "%s: %s", what, a)
		}
	}
	for body, field := range map[string]string{
		`{"date":"2025-03-01","items":` + item + `}`: "client_order_id", fmt.Sprintf(`{"client_order_id":%d,"items":%s}`, s.order, item): "date",
		fmt.Sprintf(`{"client_order_id":%d,"date":"2025-03-01"}`, s.order): "items",
	} {
		require.Contains(t, s.clerk.POST("/takada", body).Status(422).Text, `"field":"`+field+`"`, body)
	}
	require.Equal(t, before, s.clerk.GET("/takadas").Status(200).Text)
	abroad.clerk.GET(path).Problem(404, "Takada not found")
	abroad.clerk.GET(path+"/history").Problem(404, "Takada not found")
	abroad.clerk.PUT(path, `{"date":"2025-03-02"}`).Problem(404, "Takada not found")
	abroad.clerk.DELETE(path).Problem(404, "Takada not found")
	abroad.clerk.GET("/takadas").Status(200).Body(`[]`)
	s.clerk.GET("/takada/999999999").Problem(404, "Takada not found")
}
