package apptest

import (
	"fmt"
)

// RequestsOf returns a valid request for each operation of the ledger.
func RequestsOf(account, row int64) []struct{ Method, Path, Body string } {
	return []struct{ Method, Path, Body string }{
		{"GET", "/banks", ""}, {"GET", fmt.Sprintf("/bank/%d", account), ""}, {"GET", Ledger(account), ""}, {"GET", At(account, row), ""},
		{"GET", At(account, row, "/history"), ""}, {"GET", Ledger(account, "/statement.pdf"), ""}, {"GET", "/books/lock", ""},
		{"POST", "/bank", `{"name":"SBI"}`}, {"PUT", fmt.Sprintf("/bank/%d", account), `{"name":"SBI"}`},
		{"POST", Ledger(account), Deposit("2025-03-01", "1")}, {"PUT", Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row)},
		{"POST", Ledger(account, "/rows"), Bulk(Deposit("2025-03-01", "1"))}, {"PUT", "/books/lock", `{"locked_through":"2025-01-01"}`},
		{"POST", At(account, row, "/reverse"), `{"reason":"typo"}`}, {"POST", At(account, row, "/void"), `{"reason":"typo"}`},
		{"POST", Ledger(account, "/rows/reverse"), fmt.Sprintf(`{"rows":[%d],"reason":"typo"}`, row)},
		{"DELETE", At(account, row), ""}, {"DELETE", fmt.Sprintf("/bank-account/%d", account), ""},
	}
}
