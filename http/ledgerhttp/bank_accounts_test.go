package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestAnAccountIsOpenedReadRenamedAndDeleted(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	clerk.GET("/banks").Status(200).Body(`[]`)

	a := clerk.POST("/bank", `{"name":" HDFC Current "}`).Status(201)
	var opened apptest.BankAccount
	a.JSON(&opened)
	id := opened.ID
	require.Positive(t, id)
	a.Body(fmt.Sprintf(`{"id":%d,"name":"HDFC Current","balance":0,"revision":0}`, id))
	require.Equal(t, `"0"`, a.Header("ETag"))
	require.NotEmpty(t, a.Header("Bahi-Position"))

	one := clerk.GET(fmt.Sprintf("/bank/%d", id)).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"HDFC Current","balance":0,"revision":0}`, id))
	require.Equal(t, `"0"`, one.Header("ETag"))
	require.NotEmpty(t, one.Header("Bahi-Position"))
	require.Empty(t, one.Header("Warning"))

	renamed := clerk.PUT(fmt.Sprintf("/bank/%d", id),
		`{"name":"एचडीएफसी"}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"एचडीएफसी","balance":0,"revision":1}`, id))
	require.Equal(t, `"1"`, renamed.Header("ETag"))
	clerk.GET("/banks").Status(200).Body(fmt.Sprintf(`[{"id":%d,"name":"एचडीएफसी","balance":0,"revision":1}]`, id))

	gone := clerk.DELETE(fmt.Sprintf("/bank-account/%d", id)).Status(204).None()
	require.NotEmpty(t, gone.Header("Bahi-Position"))
	clerk.GET("/banks").Status(200).Body(`[]`)
	clerk.GET(fmt.Sprintf("/bank/%d", id)).Problem(404, "Bank account not found")
}

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

func TestAnotherWorkspacesBooksAreNotThere(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, foreigner := o.Clerk(o.Home), o.Clerk(o.Abroad)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	mine := apptest.Open(foreigner, "SBI")
	require.NotEqual(t, account, mine, "ids are unique over the deployment")
	for _, query := range []string{"", fmt.Sprint("?known_at=", o.Head())} {
		foreigner.GET("/banks" + query).Status(200).Body(fmt.Sprintf(`[{"id":%d,"name":"SBI","balance":0,"revision":0}]`, mine))
		foreigner.GET(apptest.Ledger(account)+query).Problem(404, "Bank account not found")
	}
	foreigner.GET(apptest.At(mine, row.ID)).Problem(404, "Bank ledger row not found")
	foreigner.GET(apptest.At(mine, row.ID, "/history")).Problem(404, "Bank ledger row not found")
	for _, dry := range []string{"", "true"} {
		asking := foreigner.With("Bahi-Dry-Run", dry, "Prefer", "return=representation")
		asking.PUT(apptest.Ledger(mine), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)).Problem(404, "Bank ledger row not found")
		asking.DELETE(apptest.At(mine, row.ID)).Problem(404, "Bank ledger row not found")
	}
	// A stale If-Match does not tell that something is there either.
	foreigner.With("If-Match", `"99"`).DELETE(fmt.Sprintf("/bank-account/%d", account)).Problem(404, "Bank account not found")
	o.Operator().GET(apptest.Ledger(account)).Status(404)
	o.Operator().With("Bahi-Workspace", o.Home).GET(apptest.Ledger(account)).Status(200)
}
