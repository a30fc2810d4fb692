package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestAnAccountThatIsRenamedKeepsItsBalance(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	path := fmt.Sprintf("/bank/%d", account)

	// An edit with the same name changes nothing, and does not reset the balance.
	clerk.PUT(path, `{"name":"HDFC"}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"HDFC","balance":12.5,"revision":0}`, account))
	a := clerk.With("Prefer", "return=representation").PUT(path, `{"name":"HDFC"}`).Status(200).
		Body(fmt.Sprintf(`{"id":%d,"name":"HDFC","balance":12.5,"revision":0}`, account))
	require.Equal(t, "return=representation", a.Header("Preference-Applied"))
	clerk.With("Prefer", "return=representation").PUT(path, `{"name":"SBI"}`).Status(200).
		Body(fmt.Sprintf(`{"id":%d,"name":"SBI","balance":12.5,"revision":1}`, account))
}
