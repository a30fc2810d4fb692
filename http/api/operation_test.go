package api

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInputsMatchPathVariablesByOrder(t *testing.T) {
	t.Parallel()
	type account struct {
		Account int64 `path:"account"`
	}
	type row struct {
		account
		Row int64 `path:"row_id"`
	}
	for path, want := range map[string]map[string]string{
		"/bank-ledger/{bank_account_id}/row/{row_id}": {"account": "bank_account_id"},
		"/row/{row_id}/of/{bank_id}":                  {"account": "bank_id"},
		"/{bank_id}/{line}":                           {"account": "bank_id", "row_id": "line"},
		"/{account}/{row_id}":                         {},
	} {
		require.Equal(t, want, variables(path, reflect.TypeFor[row]()), path)
	}
	require.Panics(t, func() { variables("/row/{row_id}", reflect.TypeFor[row]()) })
}
