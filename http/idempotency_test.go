package http_test

import (
	"fmt"
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

func TestEveryWriteIsRepeatedWithOneEffectAndTheSameAnswer(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "10"))
	gone := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	doomed := apptest.Open(clerk, "SBI")
	type request struct{ method, path, body string }
	requests := []request{
		{"POST", "/bank", `{"name":"ICICI"}`},
		{"PUT", fmt.Sprintf("/bank/%d", account), `{"name":"HDFC Current"}`},
		{"POST", apptest.Ledger(account), apptest.Deposit("2025-03-02", "2")},
		{"PUT", apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("11"))},
		{"POST", apptest.Ledger(account, "/rows"), apptest.Bulk(apptest.Deposit("2025-03-03", "3"), apptest.Deposit("2025-03-03", "4"))},
		{"DELETE", apptest.At(account, gone.ID), ""},
		{"DELETE", fmt.Sprintf("/bank-account/%d", doomed), ""},
		{"PUT", "/books/lock", `{"locked_through":"2025-02-28"}`},
		{"PUT", "/books/lock", `{"locked_through":"2025-02-28"}`}, // changes nothing, and has a key of its own
	}
	ask := func(c *apitest.Client, i int) *apitest.Answer {
		var body any
		if requests[i].body != "" {
			body = requests[i].body
		}
		return c.With("Idempotency-Key", fmt.Sprint("key ", i)).Do(requests[i].method, requests[i].path, body)
	}
	answers := make([]*apitest.Answer, len(requests))
	for i := range requests {
		answers[i] = ask(clerk, i)
		require.Less(t, answers[i].Response.StatusCode, 300, answers[i].Text)
	}
	head := o.Head()
	for i := range requests {
		same(t, answers[i], ask(clerk, i))
	}
	// What happened since is in no repetition.
	clerk.PUT(fmt.Sprintf("/bank/%d", account), `{"name":"HDFC Savings"}`).Status(200)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("12"))).Status(200)
	for i := range requests {
		same(t, answers[i], ask(clerk, i))
	}
	since := []string{fmt.Sprintf("BankAccountRenamed of bank-%d", account), fmt.Sprintf("BankRowEdited of bankrow-%d", row.ID)}
	require.Equal(t, since, o.Decided(head))
	require.Equal(t, "03-01 12, 03-02 14, 03-03 17, 03-03 21", apptest.Balances(clerk, apptest.Ledger(account)))

	// Another process remembers, too.
	o.Stop()
	later := apptest.StartOn(t, o.Database)
	clerk = clerk.At(later.URL)
	for i := range requests {
		same(t, answers[i], ask(clerk, i))
	}
	require.Equal(t, since, later.Decided(head))
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
