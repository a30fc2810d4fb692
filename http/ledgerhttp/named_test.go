package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

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
