package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// A statement can be drawn again, byte for byte, after the log is signed beyond its position. Then its newest checkpoint stays the last.
func TestPrintsAreHeadedByTheCompany(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Bearer(o.Key(o.Home, `{"ledger":"write","marketplace":"write"}`).Key)
	account := apptest.Open(clerk, "HDFC")
	prints := []string{apptest.Ledger(account, "/statement.pdf"), "/books/daybook?from=2025-03-01&to=2025-03-31&format=pdf",
		"/client-orders/pdf"}
	for _, path := range prints {
		require.Contains(t, apptest.Words(t, clerk.GET(path)), "Bahi", path)
	}
	nameless := o.Head()
	first := clerk.POST("/api/v1/companies", `{"name":"Soni Jewellers"}`).Status(201)
	for _, path := range prints {
		require.Contains(t, apptest.Words(t, clerk.GET(path)), "Soni Jewellers", path)
	}
	o.Signed()
	at := fmt.Sprintf("%s?known_at=%d", prints[0], o.Head())
	drawn := clerk.GET(at).Status(200).Text
	made := apitest.Read[map[string]any](first)
	company := fmt.Sprint("/api/v1/companies/", made["id"])
	clerk.POST("/api/v1/companies", `{"name":"Younger"}`).Status(201)
	apptest.Post(clerk, account, apptest.Deposit("2025-01-01", "1000"))
	clerk.PATCH(company, `{"name":"Soni and Sons"}`).Status(200)
	require.Contains(t, apptest.Words(t, clerk.GET(prints[0])), "Soni and Sons")
	require.Equal(t, drawn, clerk.GET(at).Status(200).Text)
	clerk.DELETE(company).Status(204)
	require.Contains(t, apptest.Words(t, clerk.GET(prints[0])), "Younger")
	require.Equal(t, drawn, clerk.GET(at).Status(200).Text)
	require.Contains(t, apptest.Words(t, clerk.GET(fmt.Sprintf("%s?known_at=%d", prints[0], nameless))), "Bahi")
}
