package http_test

import (
	"strings"
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

func TestAKeyIsForOneRequestOfOneCaller(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	account, other := apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI")
	keyed := clerk.With("Idempotency-Key", "k")
	keyed.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201)
	const reused = "Idempotency-Key was used with another request"
	keyed.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "2")).Problem(422, reused)
	keyed.POST(apptest.Ledger(other), apptest.Deposit("2025-03-01", "1")).Problem(422, reused)
	keyed.With("If-Match", "*").POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Problem(422, reused)
	// Another operation, caller or workspace has keys of its own.
	keyed.POST("/bank", `{"name":"ICICI"}`).Status(201)
	o.Clerk(o.Home).With("Idempotency-Key", "k").POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "3")).Status(201)
	operator := o.Operator().With("Idempotency-Key", "k")
	require.Empty(t, operator.With("Bahi-Workspace", o.Home).POST("/bank", `{"name":"A"}`).Status(201).Header("Idempotency-Replayed"))
	require.Empty(t, operator.With("Bahi-Workspace", o.Abroad).POST("/bank", `{"name":"A"}`).Status(201).Header("Idempotency-Replayed"))
	require.Equal(t, "03-01 1, 03-01 4", apptest.Balances(clerk, apptest.Ledger(account)))

	for _, key := range []string{strings.Repeat("k", 256), strings.Repeat("क", 256)} {
		clerk.With("Idempotency-Key", key).POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Problem(422, "Validation error",
			"Idempotency-Key", "1 to 255 characters")
	}
	for _, key := range []string{strings.Repeat("k", 255), strings.Repeat("क", 255), `" \ ' ; -- %00`} {
		clerk.With("Idempotency-Key", key).POST("/bank", `{"name":"B"}`).Status(201)
	}
}
