package ledgerhttp_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestAnEditNamesItsRowByIdRowIdOrQuery(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	path := apptest.Ledger(account)
	clerk.PUT(path, fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("2"))).Status(200)
	clerk.PUT(path, fmt.Sprintf(`{"row_id":%d,"in_entries":%s}`, row.ID, apptest.Entry("3"))).Status(200)
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID), `{"in_entries":`+apptest.Entry("4")+`}`).Status(200)
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID),
		fmt.Sprintf(`{"id":%d,"row_id":%d,"in_entries":%s}`, row.ID, row.ID, apptest.Entry("5"))).Status(200)
	require.Equal(t, "03-01 5", apptest.Balances(clerk, path))

	clerk.PUT(path, `{"in_entries":`+apptest.Entry("6")+`}`).Problem(422, "Validation error", "id", "is required: the id of the row")
	clerk.PUT(path, fmt.Sprintf(`{"id":%d,"row_id":%d}`, row.ID, row.ID+1)).Problem(422, "Validation error", "id",
		"differs from row_id")
	clerk.PUT(path+fmt.Sprintf("?row_id=%d", row.ID), fmt.Sprintf(`{"id":%d}`, row.ID+1)).Problem(422, "Validation error", "id",
		"differs from row_id")
	clerk.PUT(path, `{"id":0}`).Status(422)
	clerk.PUT(path, `{"date":"2199-01-01","in_entries":[{"amount":-1}],"out_entries":`+apptest.Entry("1")+`}`).Problem(422, "Validation error",
		"id", "is required: the id of the row", "date", "must not be after tomorrow", "in_entries[0].amount", "must be more than 0")
	clerk.PUT(path, `{"id":"x","in_entries":[{"amount":-1}]}`).Problem(422, "Validation error",
		"id", "expected a whole number", "in_entries[0].amount", "must be more than 0")
	clerk.PUT(path, `{"in_entries":[]}`).Problem(422, "Validation error", "id", "is required: the id of the row")
	clerk.PUT(path, `{"id":-1}`).Problem(404, "Bank ledger row not found")
	clerk.PUT(path+"?row_id=-1", `{}`).Status(422)
	require.Equal(t, "03-01 5", apptest.Balances(clerk, path))
}

func TestWhatWasReadCanBePostedTogether(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	from, to := apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI")
	apptest.Post(clerk, from, apptest.Deposit("2025-03-01", "1"))
	apptest.Post(clerk, from, apptest.Withdrawal("2025-03-02", "3"))
	clerk.POST(apptest.Ledger(to, "/rows"), `{"rows":`+clerk.GET(apptest.Ledger(from)).Status(200).Text+`}`).Status(201)
	require.Equal(t, apptest.Balances(clerk, apptest.Ledger(from)), apptest.Balances(clerk, apptest.Ledger(to)))
}

func TestHistoryTellsWhoChangedWhatFromWhatToWhatAndWhy(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	auditor := o.Key(o.Home, `{"ledger":"write"}`)
	account := apptest.Open(clerk, "HDFC")
	added := clerk.With("Bahi-Reason", "opening balance").POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "10")).Status(201)
	row := apitest.Read[apptest.BankRow](added)
	other := clerk.With("Authorization", "Bearer "+auditor.Key)
	other.With("Bahi-Reason", "%E0%A4%97%E0%A4%B2%E0%A4%A4%20100%25").PUT(apptest.Ledger(account),
		fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("11"))).Status(200)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)).Status(200)
	clerk.With("Bahi-Reason", "posted twice").DELETE(apptest.At(account, row.ID)).Status(204)

	h := apitest.Read[[]apptest.Change](clerk.GET(apptest.At(account, row.ID, "/history")).Status(200))
	require.Len(t, h, 4)
	require.Equal(t, []string{"added", "edited", "edited", "deleted"}, []string{h[0].Change, h[1].Change, h[2].Change, h[3].Change})
	require.Equal(t, []string{"opening balance", "गलत 100%", "", "posted twice"}, []string{h[0].Reason, h[1].Reason, h[2].Reason, h[3].Reason})
	require.Equal(t, "api_key:"+auditor.ID, h[1].Actor)
	require.NotEqual(t, h[0].Actor, h[1].Actor)
	require.Equal(t, h[0].Actor, h[2].Actor)
	require.Equal(t, added.Header("Bahi-Position"), strconv.FormatInt(h[0].Position, 10))
	require.Nil(t, h[0].Before)
	require.Nil(t, h[3].After)
	for i := 1; i < 4; i++ {
		require.Greater(t, h[i].Position, h[i-1].Position)
		require.Equal(t, h[i-1].After, h[i].Before)
		require.GreaterOrEqual(t, h[i].At, h[i-1].At)
	}
	require.Equal(t, "10", h[0].After.In[0].Amount.String())
	require.Equal(t, "11", h[1].After.In[0].Amount.String())
	require.Equal(t, "2025-03-01", h[2].Before.Date)
	require.Equal(t, "2025-03-02", h[2].After.Date)
	clerk.GET(apptest.At(account, row.ID, "/history?as_of=2025-03-01")).Status(422)
}
