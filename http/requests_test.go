package http_test

import (
	"fmt"
	"net/http"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// requestsOf returns a valid request for each operation of the ledger.
func requestsOf(account, row int64) []struct{ Method, Path, Body string } {
	return []struct{ Method, Path, Body string }{
		{"GET", "/banks", ""}, {"GET", fmt.Sprintf("/bank/%d", account), ""}, {"GET", apptest.Ledger(account), ""},
		{"GET", apptest.At(account, row), ""},
		{"GET", apptest.At(account, row, "/history"), ""}, {"GET", apptest.Ledger(account, "/statement.pdf"), ""}, {"GET", "/books/lock", ""},
		{"POST", "/bank", `{"name":"SBI"}`}, {"PUT", fmt.Sprintf("/bank/%d", account), `{"name":"SBI"}`},
		{"POST", apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")},
		{"PUT", apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row)},
		{"POST", apptest.Ledger(account, "/rows"), apptest.Bulk(apptest.Deposit("2025-03-01", "1"))},
		{"PUT", "/books/lock", `{"locked_through":"2025-01-01"}`},
		{"POST", apptest.At(account, row, "/reverse"), `{"reason":"typo"}`}, {"POST", apptest.At(account, row, "/void"), `{"reason":"typo"}`},
		{"POST", apptest.Ledger(account, "/rows/reverse"), fmt.Sprintf(`{"rows":[%d],"reason":"typo"}`, row)},
		{"DELETE", apptest.At(account, row), ""}, {"DELETE", fmt.Sprintf("/bank-account/%d", account), ""},
	}
}

// listening requests a stream that may be refused.
func listening(o *apptest.Server, token string) *http.Response {
	o.T.Helper()
	request, err := http.NewRequestWithContext(o.T.Context(), http.MethodGet, o.URL+apptest.AuditStream, nil)
	require.NoError(o.T, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.T, err)
	o.T.Cleanup(func() { response.Body.Close() })
	return response
}
