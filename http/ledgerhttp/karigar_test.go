package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// The example of CONTRACT.md 6.3.
func TestAKarigarIsOwedAndOwesMetalAndCash(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var imran, given, back shown
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201).JSON(&imran)
	ledger := fmt.Sprint("/karigar-ledger/", imran.ID)
	clerk.POST(ledger, `{"date":"2025-03-01","in_entries":[],"out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5,`+
		`"amount":null}]}`).Status(201).JSON(&given)
	clerk.POST(ledger, `{"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,`+
		`"wastage_weight":11,"other":1500}]}`).Status(201).JSON(&back)
	require.JSONEq(t, `[{"field":"in_entries[0].wastage_weight","message":"differs from what the other values say","given":11,`+
		`"computed":10.4}]`, string(back.Warnings))
	clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,`+
		`"other":1500}]}`, back.ID)).Status(200)

	clerk.GET(ledger).Status(200).Body(fmt.Sprintf(`[
		{"id":%d,"date":"2025-03-01","in_entries":[],"out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5,"fine_weight":497.5,`+
		`"computed":["fine_weight"]}],
			"cash_balance":0,"crystal_balance":-497.5,"cash_position":"settled","crystal_position":"they_owe","revision":0},
		{"id":%d,"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"fine_weight":478.4,
			"wastage_percent":2,"wastage_weight":10.4,"other":1500,"computed":["fine_weight","wastage_weight"]}],"out_entries":[],
			"cash_balance":1500,"crystal_balance":-8.7,"cash_position":"we_owe","crystal_position":"they_owe","revision":1}]`, given.ID, back.ID))
	clerk.GET("/karigars").Status(200).Body(fmt.Sprintf(`[{"id":%d,"name":"Imran","cash_balance":1500,"crystal_balance":-8.7,
		"cash_position":"we_owe","crystal_position":"they_owe","revision":0}]`, imran.ID))

	clerk.DELETE(fmt.Sprint("/karigar-ledger-row/", apptest.Post(clerk, apptest.Open(clerk, "HDFC"), apptest.Deposit("2025-03-01", "1")).ID)).
		Problem(404, "Karigar ledger row not found")
}

func TestASideIsDrawnWithItsOwnTotals(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var imran, back shown
	clerk.POST("/karigar", `{"name":"Imran"}`).Status(201).JSON(&imran)
	ledger := fmt.Sprint("/karigar-ledger/", imran.ID)
	known := clerk.POST(ledger, `{"date":"2025-03-01","in_entries":[{"other":40}],"out_entries":[{"fine_weight":500}]}`).Status(
		201).Header("Bahi-Position")
	clerk.POST(ledger, `{"date":"2025-03-05","in_entries":[{"item_name":"payal","fine_weight":478.4}]}`).Status(201).JSON(&back)
	clerk.POST(ledger, `{"date":"2025-03-09","out_entries":[{"item_name":"silver","fine_weight":21.6,"amount":7}]}`).Status(201)
	clerk.With("Bahi-Reason", "typo").POST(fmt.Sprint(ledger, "/row/", back.ID, "/reverse"), `{"date":"2025-03-09"}`).Status(201)
	for path, says := range map[string][]string{
		"in": {"Statement of IN (jama)", "Imran", "Opening total 0.00 0.000", "payal", "Reversed by row",
			"Closing total 40.00 478.400"},
		"out?from=2025-03-02": {"Statement of OUT (naame)", "Opening total 0.00 500.000", "Reverses row", "Total 7.00 500.000",
			"Closing total 7.00 1,000.000"},
		"out?to=2025-03-02":   {"Closing total 0.00 500.000"},
		"in?as_of=2025-03-01": {"Closing total 40.00 0.000"},
		"out?from=2025-03-06&to=2025-03-31&known_at=" + known: {"Opening total 0.00 500.000", "Closing total 0.00 500.000"},
	} {
		a := clerk.GET(ledger + "/pdf/" + path).Status(200)
		require.Contains(t, a.Header("Content-Disposition"), "inline; filename=karigar-")
		text := apptest.Words(t, a)
		for _, words := range says {
			require.Contains(t, text, words, path)
		}
		require.NotContains(t, text, "balance", path)
	}
	clerk.GET(ledger+"/pdf/both").Problem(422, "Validation error", "side", "expected value to be one of \"in, out\"")
}
