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

	// The same name changes nothing, and is no reason to call the balance zero.
	clerk.PUT(path, `{"name":"HDFC"}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"HDFC","balance":12.5,"revision":0}`, account))
	a := clerk.With("Prefer", "return=representation").PUT(path, `{"name":"HDFC"}`).Status(200).
		Body(fmt.Sprintf(`{"id":%d,"name":"HDFC","balance":12.5,"revision":0}`, account))
	require.Equal(t, "return=representation", a.Header("Preference-Applied"))
	clerk.With("Prefer", "return=representation").PUT(path, `{"name":"SBI"}`).Status(200).
		Body(fmt.Sprintf(`{"id":%d,"name":"SBI","balance":12.5,"revision":1}`, account))
}

func TestWhatWasReadCanBeSentBack(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	path := fmt.Sprintf("/bank/%d", account)
	clerk.PUT(path, clerk.GET(path).Status(200).Text).Status(200)
	clerk.POST("/bank", clerk.GET(path).Status(200).Text).Status(201)

	row := apptest.Post(clerk, account, `{"date":"2025-03-01","in_entries":[{"amount":1,"description":"₹ \"cash\""}],`+
		`"out_entries":[{"amount":0.5}]}`)
	read := clerk.GET(apptest.At(account, row.ID)).Status(200)
	var before, after apptest.BankRow
	read.JSON(&before)
	clerk.With("If-Match", read.Header("ETag")).PUT(apptest.Ledger(account), read.Text).Status(200)
	clerk.GET(apptest.At(account, row.ID)).Status(200).JSON(&after)
	require.Equal(t, before, after, "nothing was changed, so nothing was written")
	clerk.POST(apptest.Ledger(account), read.Text).Status(201)
}

func TestADeletedAccountIsGoneWithItsRowsButNotFromThePast(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	before := clerk.GET(apptest.Ledger(account)).Status(200).Header("Bahi-Position")
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204)

	const noAccount, noRow = "Bank account not found", "Bank ledger row not found"
	clerk.GET(fmt.Sprintf("/bank/%d", account)).Problem(404, noAccount)
	clerk.GET(apptest.Ledger(account)).Problem(404, noAccount)
	clerk.GET(apptest.Ledger(account, "/statement.pdf")).Problem(404, noAccount)
	clerk.PUT(fmt.Sprintf("/bank/%d", account), `{"name":"SBI"}`).Problem(404, noAccount)
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Problem(404, noAccount)
	clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "1")).Problem(404, noAccount)
	clerk.POST(apptest.Ledger(account, "/rows"), `{"rows":[`+apptest.Deposit("2025-03-02", "1")+`]}`).Problem(404, noAccount)
	clerk.GET(apptest.At(account, row.ID)).Problem(404, noRow)
	clerk.GET(apptest.At(account, row.ID, "/history")).Problem(404, noRow)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)).Status(404)
	clerk.DELETE(apptest.At(account, row.ID)).Status(404)

	then := "?known_at=" + before
	clerk.GET(apptest.Ledger(account) + then).Status(200).Body(fmt.Sprintf(
		`[{"id":%d,"date":"2025-03-01","in_entries":[{"amount":12.5}],"out_entries":[],"balance":12.5,"revision":0}]`, row.ID))
	clerk.GET(fmt.Sprintf("/bank/%d", account) + then).Status(200)
	was := apptest.ClerkBanks(clerk.GET("/banks" + then).Status(200))
	require.Len(t, was, 1)
	require.Equal(t, "12.5", was[0].Balance.String())
	clerk.GET(apptest.At(account, row.ID) + then).Status(200)
	clerk.GET(apptest.Ledger(account, "/statement.pdf") + then).Status(200)
}
