package book_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/internal/test/eventtest"
)

// blank is white space of several kinds.
const blank = " \t\n\u00a0\u3000"

// badNames are invalid names of accounts, with the reasons.
var badNames = map[string]*fault.Error{
	"":                       eventtest.Faults("name", "must not be empty"),
	blank:                    eventtest.Faults("name", "must not be empty"),
	"\u200b\u3164":           eventtest.Faults("name", "must not be empty"),
	strings.Repeat("म", 121): eventtest.Faults("name", "at most 120 characters"),
	"HDFC\nBank":             eventtest.Faults("name", "control characters are not allowed"),
	"HDFC\x00":               eventtest.Faults("name", "control characters are not allowed"),
	"HDFC\u0085Bank":         eventtest.Faults("name", "control characters are not allowed"),
	"HDFC\x7f":               eventtest.Faults("name", "control characters are not allowed"),
	"HDFC\xff":               eventtest.Faults("name", "control characters are not allowed"), // no UTF-8
}

func TestOpenAccount(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Ledger.Accounts)
	given.Case("a name is enough").When(openAccount{Ledger: bank.Ledger, Name: "HDFC"}).Then(opened{Name: "HDFC"})
	given.Case("spaces around it are dropped, inside they stay").When(openAccount{Ledger: bank.Ledger,
		Name: " \tHDFC  Current\n"}).Then(opened{Name: "HDFC  Current"})
	given.Case("120 characters of any script").When(openAccount{Ledger: bank.Ledger,
		Name: strings.Repeat("म", 120)}).Then(opened{Name: strings.Repeat("म", 120)})
	given.Case("marks of direction are dropped").When(openAccount{Ledger: bank.Ledger,
		Name: "\u200fHDFC\u200e Bank\u061c "}).Then(opened{Name: "HDFC Bank"})
	given.Case("joiners are part of Indian scripts").When(openAccount{Ledger: bank.Ledger, Name: "क्\u200dष"}).Then(opened{Name: "क्\u200dष"})
	for name, why := range badNames {
		given.Case("not " + name).When(openAccount{Ledger: bank.Ledger, Name: name}).ThenFails(why)
	}
	eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"}).
		Case("an id is used once").When(openAccount{Ledger: bank.Ledger, Name: "HDFC"}).ThenFails(fault.New(fault.Conflict,
		"Account exists already"))
	eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"}, accountDeleted{}).
		Case("also after a deletion").When(openAccount{Ledger: bank.Ledger, Name: "HDFC"}).ThenFails(fault.New(fault.Conflict,
		"Account exists already"))
}

func TestRenameAccount(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"})
	given.Case("another name").When(changeAccount{Ledger: bank.Ledger, Name: new(" SBI ")}).Then(renamed{From: "HDFC", To: "SBI"})
	given.Case("the same name changes nothing").When(changeAccount{Ledger: bank.Ledger, Name: new(" HDFC ")}).ThenNothing()
	for name, why := range badNames {
		given.Case("not " + name).When(changeAccount{Ledger: bank.Ledger, Name: new(name)}).ThenFails(why)
	}
	given.And(renamed{From: "HDFC", To: "SBI"}).
		Case("back again").When(changeAccount{Ledger: bank.Ledger, Name: new("HDFC")}).Then(renamed{From: "SBI", To: "HDFC"})
	eventtest.Given(t, bank.Ledger.Accounts).
		Case("no account").When(changeAccount{Ledger: bank.Ledger, Name: new("")}).ThenFails(bank.Ledger.NoAccount)
	given.And(accountDeleted{}).
		Case("a deleted account").When(changeAccount{Ledger: bank.Ledger, Name: new("SBI")}).ThenFails(bank.Ledger.NoAccount)
}

func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"})
	given.Case("an account without rows").When(deleteAccount{Ledger: bank.Ledger}).Then(accountDeleted{})
	yesterday := today - 1
	closed := book.PostingContext{AccountOpen: true, LockedThrough: &yesterday}
	given.Case("an account whose rows are not locked").
		When(deleteAccount{Ledger: bank.Ledger, EarliestRow: &today, Standing: closed}).Then(accountDeleted{EarliestRow: &today})
	given.Case("one with a locked row").When(deleteAccount{Ledger: bank.Ledger, EarliestRow: &yesterday, Standing: closed}).
		ThenFails(locked(yesterday))
	given.And(accountDeleted{}).
		Case("twice").When(deleteAccount{Ledger: bank.Ledger}).ThenFails(bank.Ledger.NoAccount)
	eventtest.Given(t, bank.Ledger.Accounts).
		Case("no account").When(deleteAccount{Ledger: bank.Ledger}).ThenFails(bank.Ledger.NoAccount)
}

func TestAccountIsOpenBetweenItsOpeningAndItsDeletion(t *testing.T) {
	t.Parallel()
	require.False(t, book.Account{}.Open(), "there is none")
	given := eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"}, renamed{From: "HDFC", To: "SBI"})
	require.Equal(t, book.Account{Name: "SBI", Opened: 1}, given.State())
	require.True(t, given.State().Open())
	ended := given.And(accountDeleted{EarliestRow: &today}).State()
	require.Equal(t, book.Account{Name: "SBI", Opened: 1, Deleted: 3}, ended)
	require.False(t, ended.Open())
}

func TestAccountFoldsAlikeWithoutPositions(t *testing.T) {
	t.Parallel()
	a := accountDeleted{}.Evolve(opened{Name: "HDFC"}.Evolve(book.Account{}))
	require.NotZero(t, a.Opened)
	require.Greater(t, a.Deleted, a.Opened)
}
