package cli_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// The tests of projections and of http/opshttp have the rules of rebuilds.
func TestRebuildingFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	was := apptest.Balances(clerk, apptest.Ledger(account))

	out := o.Done(t, "projections", "rebuild", "--dry-run", "books", "users")
	require.Regexp(t, fmt.Sprintf(`^books: %[1]d events to fold, about .*\nusers: %[1]d events to fold, about .*\n$`, o.Head()), out)
	require.Equal(t, 1, o.Projection("books").Generation, "a dry run builds nothing")

	out = o.Done(t, "projections", "rebuild", "books", "users", "--partitions", "3", "--keep", "1h")
	require.Equal(t, 2, strings.Count(out, fmt.Sprintf(" is live, built up to position %d in ", o.Head())), out)
	require.Equal(t, was, apptest.Balances(clerk, apptest.Ledger(account)))
	list := o.Done(t, "projections", "list")
	require.Regexp(t, `(?m)^users +\d+ +\d+ +live`, list)
	require.Regexp(t, `(?m)^books +\d+ +1 +kept +\d+ +0 +until 20\d\d-`, list)
	o.Sql(`alter table books_g2.row_version add constraint parked_for_a_test check (false) not valid`)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-02", "1"))
	untilBooks(t, o, "parked")
	require.Equal(t, "books: generation 1 is live again\n", o.Done(t, "projections", "rollback", "books"))
	require.Equal(t, was+", 03-02 13.5", apptest.Balances(clerk, apptest.Ledger(account)), "the previous tables have the row")
	o.Done(t, "doctor", "books")
	require.Equal(t, "all tables of this version are built\n", o.Done(t, "projections", "build"))

	// Differences wait until they are accepted.
	live := o.Projection("books").Generation
	o.Sql(fmt.Sprintf(`update books_g%d.row_version set actor = 'nobody' where row_id = $1`, live), row.ID)
	out, wrong, status := apptest.Attached(t, o, "projections", "rebuild", "books")
	require.Equal(t, 1, status)
	require.Empty(t, out)
	for _, words := range []string{
		"bahi: books: the new tables differ from the live ones:\ntable row_version: 2 rows differ; the first is only in the ",
		fmt.Sprintf(`: {"row_id":%d,`, row.ID),
		"`bahi projections accept books` makes them live, `bahi projections cancel books` drops them\n",
	} {
		require.Contains(t, wrong, words)
	}
	list = o.Done(t, "projections", "list")
	require.Regexp(t, fmt.Sprintf(`(?m)^books +\d+ +%d +live +`, live), list)
	require.Regexp(t, `(?m)^books +\d+ +2 +building +.* differs$`, list)
	require.Equal(t, "books: the differences are accepted\n", o.Done(t, "projections", "accept", "books"))
	o.Reads(2)
	o.Sql(`update books_g2.row_version set in_cash = in_cash + 1 where row_id = $1`, row.ID)
	out, wrong, status = apptest.Attached(t, o, "doctor", "books")
	require.Equal(t, 1, status)
	require.Contains(t, out, "books: table row_version: 2 rows differ")
	require.Contains(t, wrong, "bahi: the tables differ from the log")
	o.Done(t, "doctor", "api_keys")
	require.Regexp(t, fmt.Sprintf(`^books: generation \d+ is live, built up to position %d in `, o.Head()),
		o.Done(t, "projections", "rebuild", "books", "--accept-differences"))
	require.Regexp(t, fmt.Sprintf(`books: generation 3 agrees with the log, \d+ rows at position %d `, o.Head()), o.Done(t, "doctor", "books"))
	require.Equal(t, "03-01 12.5, 03-02 13.5", apptest.Balances(clerk, apptest.Ledger(account)), "the server reads the new tables")

	// A parked projection is shown and skipped.
	o.Sql(`alter table books_g3.row_version add constraint parked_for_a_test check (false) not valid`)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-03", "1"))
	at := o.Head()
	untilBooks(t, o, "parked")
	require.Regexp(t, fmt.Sprintf(`(?m)^books +\d+ +3 +parked +\d+ +(\d+|some) +event BankRowAdded at position %d: .*parked_for_a_test`, at),
		o.Done(t, "projections", "list"))
	o.Denied(t, fmt.Sprintf("bahi: projection books has stopped: event BankRowAdded at position %d", at), "doctor", "books")
	require.Contains(t, o.Done(t, "doctor", "users"), " agrees with the log")
	o.Sql(`alter table books_g3.row_version drop constraint parked_for_a_test`)
	require.Equal(t, "books: skips the event\n",
		o.Done(t, "projections", "skip", "books", "--position", strconv.FormatInt(at, 10), "--reason", "for a test"))
	untilBooks(t, o, "live")
	require.Equal(t, "03-01 12.5, 03-02 13.5", apptest.Balances(clerk, apptest.Ledger(account)))
	o.Done(t, "doctor", "books")

	for args, why := range map[string]string{
		"rebuild books nonsense":                `there is no projection "nonsense"`,
		"rebuild books --throttle=-1":           "--throttle: expected 1 event a second or more",
		"rebuild books --partitions=-1":         "--partitions: expected 1 or more",
		"build --throttle=-1":                   "--throttle: expected 1 event a second or more",
		"throttle books -- -1":                  "<events>: expected 0 or more",
		"throttle books 5":                      "The projection is not being rebuilt",
		"cancel books":                          "The projection is not being rebuilt",
		"accept books":                          "The rebuild does not wait for its differences to be accepted",
		"resume books":                          "The projection is not paused",
		"retry books":                           "The projection is not parked",
		"skip books --position 1 --reason x":    "The projection is not parked at that event",
		"skip books --position 1":               "missing flags: --reason",
		"skip nonsense --position 1 --reason x": "Projection not found",
		"rollback api_keys_g1":                  "Projection not found",
		"pause":                                 `expected "<name>"`,
		"drop books 3":                          "the generation is of this program's own version",
		"drop books 99":                         "books has no generation 99",
	} {
		_, wrong, status := apptest.Attached(t, o, append([]string{"projections"}, strings.Fields(args)...)...)
		require.NotEqual(t, 0, status, args)
		require.Contains(t, wrong, "bahi: ", args)
		require.Contains(t, wrong, why, args)
	}

	require.Equal(t, "books: paused\n", o.Done(t, "projections", "pause", "books"))
	apptest.Post(clerk, account, apptest.Deposit("2025-03-04", "2"))
	o.Denied(t, "`bahi projections resume books` resumes it", "doctor", "books")
}

// untilBooks waits for a state of the books.
func untilBooks(t *testing.T, o *apptest.Server, state string) {
	t.Helper()
	require.Eventually(t, func() bool { return o.Projection("books").State == state }, time.Minute, 5*time.Millisecond)
}

func TestServerFinishesAnInterruptedRebuild(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Fill(clerk, account, 300)
	cmd := apptest.Command(t, t.TempDir(), "projections", "rebuild", "books", "--throttle", "2") // takes minutes
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore)
	shell := apptest.Launch(t, cmd)
	building := func() bool { b := o.Projection("books").Build; return b != nil && b.Done > 0 }
	require.Eventually(t, building, time.Minute, 10*time.Millisecond)
	o.Done(t, "projections", "rebuild", "books", "--dry-run")
	require.Equal(t, 1, shell.Interrupt())
	require.Contains(t, shell.Text(), "bahi: books: interrupted; a serving process continues the build, or this command, when repeated; "+
		"`bahi projections cancel books` ends it")

	out := o.Done(t, "projections", "pause", "books")
	require.Equal(t, "books: paused\n", out)
	list := o.Done(t, "projections", "list")
	require.Regexp(t, `(?m)^books +\d+ +\d +paused +\d+ +\d+ +filling, \d+ %$`, list)
	o.Done(t, "projections", "resume", "books")
	o.Done(t, "projections", "throttle", "books", "0")
	o.Done(t, "projections", "rebuild", "books")
	require.Greater(t, o.Projection("books").Generation, 1)
	require.Equal(t, "300", apptest.ClerkBanks(clerk.GET("/banks").Status(200))[0].Balance.String())
}
