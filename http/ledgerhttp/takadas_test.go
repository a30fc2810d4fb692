package ledgerhttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
