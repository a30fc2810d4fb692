package api_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/http/api"
)

// patchShop is the body of these tests' PATCH.
type patchShop struct {
	Name   patch.Field[string]     `json:"name,omitzero" nullable:"false" maxLength:"5"`
	City   patch.Field[string]     `json:"city,omitzero" enum:"Surat,Pune"`
	Owner  patch.Field[uuid.UUID]  `json:"owner,omitzero" nullable:"true"`
	Price  patch.Field[unit.Money] `json:"price,omitzero" nullable:"true"`
	Tags   patch.Field[[]string]   `json:"tags,omitzero" nullable:"false"`
	Active patch.Field[bool]       `json:"active,omitzero" nullable:"false"`
}

func TestAPatchTellsAbsentFromNullFromAValue(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var got patchShop
	api.Handle(s.API, api.Op{ID: "patch-shop", Method: "PATCH", Path: "/shop", Public: true},
		func(_ context.Context, in *struct{ Body patchShop }) (*api.Nothing, error) {
			got = in.Body
			return &api.Nothing{}, nil
		})
	public := s.as(t, "")
	id := uuid.New()
	for body, wanted := range map[string]patchShop{
		`{}`:                              {},
		`{"name":"Asha"}`:                 {Name: patch.Set("Asha")},
		`{"name":""}`:                     {Name: patch.Set("")},
		`{"city":null,"price":null}`:      {City: patch.Clear[string](), Price: patch.Clear[unit.Money]()},
		`{"owner":"` + id.String() + `"}`: {Owner: patch.Set(id)},
		`{"owner":null}`:                  {Owner: patch.Clear[uuid.UUID]()},
		`{"price":12.5}`:                  {Price: patch.Set(unit.Money(1250))},
		`{"tags":[],"active":false}`:      {Tags: patch.Set([]string{}), Active: patch.Set(false)},
	} {
		got = patchShop{}
		public.PATCH("/shop", body).Status(200)
		require.Equal(t, wanted, got, body)
	}
	public.PATCH("/shop", `{"name":null,"tags":null,"active":null}`).Problem(422, "Validation error",
		"name", "must not be null", "tags", "must not be null", "active", "must not be null")
	public.PATCH("/shop", `{"name":"Ashapriya","city":"Delhi","owner":"x","price":1.234,"active":7}`).Problem(422, "Validation error",
		"name", "at most 5 characters", "city", "expected one of Surat, Pune",
		"owner", "expected a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8", "price", "at most 2 decimal places", "active",
		"expected true or false")
}
