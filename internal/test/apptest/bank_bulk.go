package apptest

import (
	"strings"

	"bahi/internal/test/apitest"
)

// Bulk returns the body of rows posted together.
func Bulk(rows ...string) string { return `{"rows":[` + strings.Join(rows, ",") + `]}` }

func Posted(a *apitest.Answer) []BankRow {
	var p struct {
		Rows []BankRow `json:"rows"`
	}
	a.JSON(&p)
	return p.Rows
}
