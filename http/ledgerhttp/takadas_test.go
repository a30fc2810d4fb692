package ledgerhttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
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
	s.clerk.PUT(path, fmt.Sprintf(`{"client_order_id":%d}`, foreign)).Problem(409,
		"A takada cannot change its client: the other order is of another client")
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

// The rules of the fields are domain/ledger/takada's; here is what only the books know, and that nothing changes.
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
	wrong := map[string]string{
		`"date":"2199-01-01"`: "date", `"items":[{"item_name":"x","weight":-0.001}]`: "items[0].weight",
		`"items":[{"item_name":"x","weight":1,"making_charge":1}]`: "items[0].making_charge",
	}
	for _, order := range []int64{foreign, gone, 999_999_999, 0} {
		wrong[fmt.Sprintf(`"client_order_id":%d`, order)] = "client_order_id"
	}
	for _, karigar := range []int64{abroad.karigar, left, s.client, 999_999_999, -1} {
		wrong[fmt.Sprintf(`"items":[{"item_name":"x","weight":1},{"item_name":"x","weight":1,"karigar_id":%d}]`, karigar)] =
			"items[1].karigar_id"
	}
	for fields, field := range wrong {
		whole := "{" + fields
		for name, value := range map[string]string{
			"client_order_id": fmt.Sprint(s.order), "date": `"2025-03-01"`, "items": `[{"item_name":"ring","weight":1}]`,
		} {
			if !strings.HasPrefix(fields, `"`+name) {
				whole += fmt.Sprintf(`,%q:%s`, name, value)
			}
		}
		for _, a := range []*apitest.Answer{s.clerk.POST("/takada", whole+"}"), s.clerk.PUT(path, "{"+fields+"}")} {
			require.Contains(t, a.Status(422).Text, `"field":"`+field+`"`, fields)
		}
	}
	a := s.clerk.POST("/takada", `{}`).Status(422)
	for _, field := range []string{"client_order_id", "date", "items"} {
		require.Contains(t, a.Text, `"field":"`+field+`"`)
	}
	require.Equal(t, before, s.clerk.GET("/takadas").Status(200).Text)
	s.clerk.GET("/takada/999999999").Problem(404, "Takada not found")
}
