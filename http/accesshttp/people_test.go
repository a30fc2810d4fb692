package accesshttp_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"bahi/internal/test/apitest"
)

// fieldsOf returns the names of a response's fields.
func fieldsOf(t testing.TB, a *apitest.Answer) string {
	t.Helper()
	body := apitest.Read[map[string]any](a)
	return strings.Join(slices.Sorted(maps.Keys(body)), " ")
}
