package confirmation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

func candidate(account, contact int64, change func(*confirmation.Candidate)) confirmation.Candidate {
	c := confirmation.Candidate{Party: confirmation.Party{Ledger: "client", Account: account, Contact: contact}, Name: "Asha",
		Phone: "9198123456", OptIn: true}
	if change != nil {
		change(&c)
	}
	return c
}

func TestEachPartyIsAskedOrSkippedForAReason(t *testing.T) {
	t.Parallel()
	parties, err := confirmation.Request{Kind: "client"}.Choose([]confirmation.Candidate{
		candidate(1, 11, nil), candidate(2, 0, nil), candidate(3, 13, func(c *confirmation.Candidate) { c.Erased = true }),
		candidate(4, 14, func(c *confirmation.Candidate) { c.Phone = "" }), candidate(5, 15, func(c *confirmation.Candidate) { c.OptIn = false }),
		candidate(6, 16, func(c *confirmation.Candidate) { c.Closed = true }),
	})
	require.NoError(t, err)
	var reasons []string
	for _, p := range parties {
		reasons = append(reasons, p.Skipped)
	}
	require.Equal(t, []string{"", "no_contact", "contact_erased", "no_phone", "no_consent", "account_closed"}, reasons)
}

func TestOnePhoneForTwoAccountsIsRefused(t *testing.T) {
	t.Parallel()
	two := []confirmation.Candidate{candidate(1, 11, nil), candidate(2, 12, nil)}
	_, err := confirmation.Request{Kind: "client"}.Choose(two)
	require.Equal(t, &fault.Error{Kind: fault.Conflict, Code: "phone_shared", Detail: "Accounts 1 (Asha) and 2 (Asha) have the same phone",
		Fields: []fault.Field{{Field: "accounts", Message: "another account has the same phone", ID: int64(1)},
			{Field: "accounts", Message: "another account has the same phone", ID: int64(2)}}}, err)
	two[1].OptIn = false // without opt-in, the request leaves the account out
	_, err = confirmation.Request{Kind: "client"}.Choose(two)
	require.NoError(t, err)
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	const today = unit.Date(20_000)
	for field, r := range map[string]confirmation.Request{
		"accounts":    {},
		"accounts[1]": {Accounts: []int64{4, 4}},
		"as_of":       {Kind: "client", AsOf: today + 1},
	} {
		var refused *fault.Error
		require.ErrorAs(t, r.Check(today), &refused)
		require.Equal(t, field, refused.Fields[0].Field)
	}
	require.Error(t, confirmation.Request{Kind: "client", Accounts: []int64{1}}.Check(today))
	_, err := confirmation.Request{Accounts: []int64{1, 2}}.Choose([]confirmation.Candidate{
		candidate(2, 0, func(c *confirmation.Candidate) { c.Ledger = "bank" })})
	require.Equal(t, fault.Fields(fault.Field{Field: "accounts[0]", Message: "Account not found"},
		fault.Field{Field: "accounts[1]", Message: "a bank account has no party"}), err)
	_, err = confirmation.Request{Kind: "client"}.Choose(make([]confirmation.Candidate, 10_001))
	require.Equal(t, fault.Fields(fault.Field{Field: "kind", Message: "at most 10000 accounts: name them in accounts"}), err)
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	params, err := confirmation.Params([]string{"1", "2", "3", "4", "5"}, []string{"button_0", "header_document"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"1": "{{name}}", "2": "{{as_of}}", "3": "{{cash}}", "4": "{{fine}}", "5": "{{link}}",
		"button_0": "{{token}}", "header_document": "{{link}}"}, params)
	params, err = confirmation.Params([]string{"cash", "link"}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"cash": "{{cash}}", "link": "{{link}}"}, params)
	_, err = confirmation.Params([]string{"1", "2"}, nil)
	require.ErrorContains(t, err, "neither a balance nor the statement")
	for _, place := range []string{"6", "discount", "header_image"} {
		_, err = confirmation.Params([]string{place}, nil)
		require.ErrorContains(t, err, "placeholder "+place)
	}
}

func TestAPartyReadsItsOwnSide(t *testing.T) {
	t.Parallel()
	day, err := unit.ParseDate("2026-03-31")
	require.NoError(t, err)
	s := confirmation.State{Requested: confirmation.Requested{AsOf: day}}
	read := func(cash unit.Money, fine unit.Grams, language string) (values [2]string) {
		v := s.Values(confirmation.Party{Cash: cash, Fine: fine}, language, "https://b.example/s/1-2-ab")
		require.Equal(t, []string{"{{as_of}}", "31 Mar 2026", "{{link}}", "https://b.example/s/1-2-ab", "{{token}}", "1-2-ab"},
			append(append([]string{}, v[:2]...), v[6:]...))
		return [2]string{v[3], v[5]}
	}
	require.Equal(t, [2]string{"₹1,23,456.50 you owe", "9.500 g fine owes you"}, read(-12345650, 9500, "en_US"))
	require.Equal(t, [2]string{"₹0.00 settled", "0.001 g fine you owe"}, read(0, -1, "fr"))
	require.Equal(t, [2]string{"₹1.00 देना है", "0.000 ग्राम फाइन हिसाब बराबर"}, read(-100, 0, "hi"))
	require.Equal(t, [2]string{"₹1.00 લેવાના છે", "0.000 ગ્રામ ફાઇન હિસાબ ચૂકતે"}, read(100, 0, "gu"))
	polisher := s.Values(confirmation.Party{Ledger: "polisher", Fine: -2000}, "en", "https://b.example/s/1-2-ab")
	require.Equal(t, "2.000 g you owe", polisher[5], "a polisher has gross weights")
}

func TestManyPartiesAreListedInParts(t *testing.T) {
	t.Parallel()
	parties := make([]confirmation.Party, 1001)
	for i := range parties {
		parties[i].Account = int64(i + 1)
	}
	r := confirmation.Requested{AsOf: 1, Position: 2, Channel: 3, Template: 4, Campaign: 5}
	eventtest.Given(t, confirmation.Kind).Case("1001 parties").When(confirmation.Begin{Requested: r, Parties: parties}).
		Then(r, confirmation.PartiesListed{Parties: parties[:1000]}, confirmation.PartiesListed{Parties: parties[1000:]})
}
