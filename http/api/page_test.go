package api_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/readmodels"
)

var errPage = errors.New("the tables are gone")

func TestAListHasOneOfTwoShapes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	rows := func(p readmodels.Page) ([]int, int64, error) {
		switch {
		case p.Number == 9:
			return nil, 0, errPage
		case p.Size == 2 && p.Number == 2:
			return []int{3}, 3, nil
		default:
			return nil, 0, nil
		}
	}
	api.Handle(s.API, api.Op{ID: "list-array", Method: "GET", Path: "/array", Public: true},
		func(_ context.Context, in *struct{ api.Limited }) (*api.Array[int], error) {
			return api.Listed(rows(in.Get()))
		})
	api.Handle(s.API, api.Op{ID: "list-object", Method: "GET", Path: "/object", Public: true},
		func(_ context.Context, in *struct{ api.Pages }) (*api.Body[api.PageOf[int]], error) {
			found, total, err := rows(in.Get())
			return api.Paginated(in.Get(), found, total, err)
		})
	public := s.as(t, "")
	a := public.GET("/array?page=2&limit=2").Status(200).Body(`[3]`)
	require.Equal(t, "3", a.Header("X-Total-Count"))
	require.Equal(t, "0", public.GET("/array").Status(200).Body(`[]`).Header("X-Total-Count"))
	public.GET("/object?page=2&page_size=2").Status(200).Body(`{"items":[3],"total":3,"page":2,"page_size":2,"total_pages":2}`)
	public.GET("/object").Status(200).Body(`{"items":[],"total":0,"page":1,"page_size":50,"total_pages":0}`)
	for _, path := range []string{"/array?limit=201", "/array?limit=0", "/array?page=0", "/object?page_size=101"} {
		public.GET(path).Status(422)
	}
	public.GET("/array?page=9").Problem(500, "Internal error")
	public.GET("/object?page=9").Problem(500, "Internal error")
}
