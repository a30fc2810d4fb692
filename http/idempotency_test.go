package http_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// same checks that a response repeats another: status, body, tag, and the header that marks it.
func same(t *testing.T, first, again *apitest.Answer) {
	t.Helper()
	require.Equal(t, first.Response.StatusCode, again.Response.StatusCode, again.Text)
	require.Equal(t, first.Text, again.Text)
	require.Equal(t, first.Header("ETag"), again.Header("ETag"))
	require.Equal(t, first.Header("Bahi-Position"), again.Header("Bahi-Position"))
	require.Empty(t, first.Header("Idempotency-Replayed"))
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
}

func TestARepetitionShowsTheBalanceOfTheFirstTime(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	keyed := clerk.With("Idempotency-Key", "k", "Prefer", "return=representation")
	first := keyed.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "2")).Status(201)
	require.Contains(t, first.Text, `"balance":2,`)
	both := keyed.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-03", "3"), apptest.Deposit("2025-03-03", "4"))).Status(201)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "100"))
	same(t, first, keyed.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "2")))
	same(t, both, keyed.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-03", "3"), apptest.Deposit("2025-03-03", "4"))))
}
