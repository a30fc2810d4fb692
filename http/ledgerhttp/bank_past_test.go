package ledgerhttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// editedAccount is an account with four rows, one of them edited and one deleted, and the positions between.
type editedAccount struct {
	clerk   *apitest.Client
	account int64
	posted  string // position after the four were posted
	edited  string // position after one was edited
	deleted string // position after one was deleted
}

func tell(t *testing.T, o *apptest.Server) (s editedAccount) {
	t.Helper()
	s.clerk = o.Clerk(o.Home)
	s.account = apptest.Open(s.clerk, "HDFC")
	apptest.Post(s.clerk, s.account, apptest.Deposit("2025-01-10", "10"))
	february := apptest.Post(s.clerk, s.account, apptest.Deposit("2025-02-10", "20"))
	march := apptest.Post(s.clerk, s.account, apptest.Withdrawal("2025-03-10", "5"))
	s.posted = s.clerk.POST(apptest.Ledger(s.account), apptest.Deposit("2025-04-10", "40")).Status(201).Header("Bahi-Position")
	s.edited = s.clerk.PUT(apptest.Ledger(s.account),
		fmt.Sprintf(`{"id":%d,"in_entries":%s}`, february.ID, apptest.Entry("25"))).Status(200).Header("Bahi-Position")
	s.deleted = s.clerk.DELETE(apptest.At(s.account, march.ID)).Status(204).Header("Bahi-Position")
	s.clerk.With("Bahi-Min-Position", s.deleted).GET(apptest.Ledger(s.account)).Status(200)
	return s
}

func TestAccountsAndRowsAreReadAsOfADateAndAsTheyWereKnown(t *testing.T) {
	t.Parallel()
	s := tell(t, apptest.Share(t))
	for query, want := range map[string]string{
		"": "75", "?as_of=2025-01-09": "0", "?as_of=2025-02-09": "10", "?as_of=2025-02-10": "35", "?known_at=" + s.posted: "65",
		"?as_of=2025-03-09&known_at=" + s.edited: "35", "?as_of=2025-03-10&known_at=" + s.edited: "30",
	} {
		banks := apptest.ClerkBanks(s.clerk.GET("/banks" + query).Status(200))
		require.Len(t, banks, 1)
		require.Equal(t, want, banks[0].Balance.String(), query)
		one := apitest.Read[apptest.BankAccount](s.clerk.GET(fmt.Sprintf("/bank/%d%s", s.account, query)).Status(200))
		require.Equal(t, want, one.Balance.String(), query)
	}
	for _, name := range []string{"Sharad", "Sharad Sons"} { // the accounts in the list
		for range 2 {
			s.clerk.PUT(fmt.Sprintf("/bank/%d", s.account), fmt.Sprintf(`{"name":%q}`, name)).Status(200)
			require.Equal(t, name, apptest.ClerkBanks(s.clerk.GET("/banks").Status(200))[0].Name)
			require.Equal(t, "10", apptest.ClerkBanks(s.clerk.GET("/banks?as_of=2025-01-31").Status(200))[0].Balance.String())
		}
	}
	s.clerk.GET("/banks?known_at=0").Status(200).Body(`[]`)
	s.clerk.GET("/banks?known_at=2001-01-01T00:00:00Z").Status(200).Body(`[]`)
	s.clerk.GET(fmt.Sprintf("/bank/%d?known_at=0", s.account)).Problem(404, "Bank account not found")
	s.clerk.GET(apptest.Ledger(s.account, "?known_at=0")).Problem(404, "Bank account not found")

	rows := apitest.Read[[]apptest.BankRow](s.clerk.GET(apptest.Ledger(s.account, "?known_at=", s.posted)).Status(200))
	for _, want := range rows { // a single row equals the row in the list
		row := apitest.Read[apptest.BankRow](s.clerk.GET(apptest.At(s.account, want.ID, "?known_at=", s.posted)).Status(200))
		require.Equal(t, want, row)
	}
	s.clerk.GET(apptest.At(s.account, rows[2].ID, "?known_at=", s.deleted)).Problem(404, "Bank ledger row not found")
	s.clerk.GET(apptest.At(s.account, rows[3].ID, "?as_of=2025-04-10")).Status(200)
	s.clerk.GET(apptest.At(s.account, rows[3].ID, "?as_of=2025-04-09")).Problem(404, "Bank ledger row not found")
}

func TestAPastThatNobodyCanKnowIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	account := apptest.Open(clerk, "HDFC")
	ledger, statement := apptest.Ledger(account), apptest.Ledger(account, "/statement.pdf")
	const form = "expected an RFC 3339 time, with its + as %2B in a URL, or a log position"
	const date = "expected a date such as 2025-03-31, from 1900 to 2199"
	for query, wrong := range map[string][2]string{
		"known_at=2025-02-30T00:00:00Z":      {"known_at", form},
		"known_at=2025-02-03":                {"known_at", form},
		"known_at=2025-02-03T09:00:00+05:30": {"known_at", form},
		"known_at=-1":                        {"known_at", form},
		"known_at=1.5":                       {"known_at", form},
		"known_at=9223372036854775808":       {"known_at", form},
		"known_at=2199-01-01T00:00:00Z":      {"known_at", "must not be in the future"},
		"as_of=2025-13-01":                   {"as_of", date},
		"from=2025-03-02&to=2025-03-01":      {"from", "must not be after to"},
		"from=2025-03-02&as_of=2025-03-01":   {"from", "must not be after as_of"},
		"from=x":                             {"from", date},
		"page=2":                             {"page", "requires page_size"},
		"page=0&page_size=1":                 {"page", "expected number >= 1"},
		"page_size=1001":                     {"page_size", "expected number <= 1000"},
	} {
		clerk.GET(ledger+"?"+query).Problem(422, "Validation error", wrong[0], wrong[1])
		if wrong[0] == "from" {
			clerk.GET(statement+"?"+query).Problem(422, "Validation error", wrong[0], wrong[1])
		}
	}
	for _, path := range []string{"/banks", fmt.Sprintf("/bank/%d", account), ledger, apptest.At(account, 1), statement} {
		clerk.GET(path+"?known_at=yesterday").Problem(422, "Validation error", "known_at", form)
		clerk.GET(path+"?as_of=tomorrow").Problem(422, "Validation error", "as_of", date)
		clerk.GET(fmt.Sprintf("%s?known_at=%d", path, o.Head()+1_000_000)).Problem(422, "The log does not reach that position yet")
	}
	clerk.GET(statement+"?page=1").Problem(422, "Validation error", "page", "unknown parameter")
	clerk.GET("/banks?as_of=%ff").Problem(400, "Malformed URL")
}

// Events of one transaction become visible together.
func TestAPositionInsideATransactionIsTheEndOfTheOneBefore(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(o.Home)
	first := apptest.Open(clerk, "First")
	var x eventstore.Transaction
	for i, name := range []string{"Second", "Third", "Fourth"} {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name},
			event.Meta{Workspace: uuid.MustParse(o.Home), OccurredAt: time.Now(), More: 2 - i})
		require.NoError(t, err)
		x.Writes = append(x.Writes, eventstore.Write{Stream: fmt.Sprintf("bank-%d", 900+i), Expected: eventstore.NoStream,
			Events: []event.Proposed{e}})
	}
	done, err := o.Sys.Store.Append(t.Context(), x)
	require.NoError(t, err)
	before, after := int64(done.First-1), int64(done.Position)
	last := apptest.Open(clerk, "Last")
	for at, want := range map[int64][]int64{
		before: {first}, before + 1: {first}, before + 2: {first}, after: {first, 900, 901, 902}, o.Head(): {first, 900, 901, 902, last},
	} {
		for range 2 {
			var listed []struct{ ID int64 }
			apptest.Lenient(t, clerk.GET(fmt.Sprintf("/banks?known_at=%d", at)), &listed)
			var got []int64
			for _, l := range listed {
				got = append(got, l.ID)
			}
			require.ElementsMatch(t, want, got, "known at %d, after %d", at, before)
		}
	}
}
