package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/internal/draws"
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

func TestPolishersAreListedByTheirType(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var salim, noor shown
	clerk.POST("/polisher", `{"name":"Salim","type":0}`).Status(201).JSON(&salim)
	clerk.POST("/polisher", `{"name":"Noor","type":2}`).Status(201).JSON(&noor)
	listed := func(path string, want ...int64) {
		t.Helper()
		var got []shown
		var ids []int64
		clerk.GET(path).Status(200).JSON(&got)
		for _, a := range got {
			ids = append(ids, a.ID)
		}
		require.Equal(t, want, ids, path)
	}
	listed("/polishers", salim.ID, noor.ID)
	listed("/regular-polishers", salim.ID)
	listed("/meena-polishers")
	listed("/rodium-polishers", noor.ID)

	known := "?known_at=" + clerk.GET("/polishers").Status(200).Header("Bahi-Position")
	one := fmt.Sprint("/polisher/", salim.ID)
	clerk.PUT(one, `{"type":1}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"Salim","type":1,"cash_balance":0,"crystal_balance":0,
		"cash_position":"settled","crystal_position":"settled","revision":1}`, salim.ID))
	clerk.PUT(one, clerk.GET(one).Status(200).Text).Status(200)
	listed("/regular-polishers")
	listed("/meena-polishers", salim.ID)
	listed("/regular-polishers"+known, salim.ID)
	listed("/meena-polishers" + known)
}

func TestAccountsOfAllLedgersAreListedByName(t *testing.T) {
	t.Parallel()
	s := openBooks(t)
	type named struct {
		Kind, Name string
		Balance    decimal.Decimal
		Cash       decimal.Decimal `json:"cash_balance"`
	}
	list := func(query string) (found []named, total string) {
		a := s.GET("/books/accounts" + query).Status(200)
		apptest.Lenient(t, a, &found)
		return found, a.Header("X-Total-Count")
	}
	names := func(query string) (names []string) {
		found, total := list(query)
		for _, a := range found {
			names = append(names, a.Name)
		}
		return append(names, total)
	}
	all := names("")
	require.Len(t, all, 7)
	require.IsNonDecreasing(t, all[:6])
	require.Equal(t, []string{all[2], all[3], "6"}, names("?page=2&page_size=2"))
	require.Equal(t, []string{"6"}, names("?page=9&page_size=2"))
	require.Equal(t, []string{"HDFC", "1"}, names("?search=%20hdf"))
	require.Equal(t, []string{"मीना शाह", "1"}, names("?search=शाह&kind=client"))
	require.Equal(t, []string{"0"}, names("?search=hdfc&kind=client"))
	require.Equal(t, "2", names("?kind=client")[2])
	bank, _ := list("?kind=bank")
	require.Equal(t, []string{"bank", "749.5"}, []string{bank[0].Kind, bank[0].Balance.String()})
	bank, _ = list("?kind=bank&as_of=2025-03-01")
	require.Equal(t, "1000", bank[0].Balance.String())
	known := s.GET("/books/summary").Status(200).Header("Bahi-Position")
	s.PUT(fmt.Sprintf("/bank/%d", s.hdfc), `{"name":"ÉTOILE Bank"}`).Status(200)
	require.Equal(t, []string{"ÉTOILE Bank", "1"}, names("?search=étoile"))
	require.Equal(t, append(all[:6:6], "6"), names("?known_at="+known))
	require.Equal(t, []string{"HDFC", "1"}, names("?search=hdfc&known_at="+known))
	require.Equal(t, []string{"0"}, names("?search=hdfc"))
	s.DELETE(fmt.Sprintf("/bank-account/%d", s.hdfc)).Status(204)
	require.Equal(t, []string{"0"}, names("?kind=bank"))
	s.GET("/books/accounts?kind=cash").Status(422)
	s.GET("/books/accounts?q=hdfc").Problem(422, "Validation error", "q", "unknown parameter")
}

func TestMain(m *testing.M) {
	draws.Default(15) // each makes about a hundred HTTP requests
	apptest.Main(m)
}
