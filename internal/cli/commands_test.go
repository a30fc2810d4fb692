package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/cli"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
)

func TestTheProgramExplainsItself(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	out, _, status := apptest.Execute(t, apptest.Command(t, data, "version"))
	require.Equal(t, 0, status)
	require.Equal(t, "bahi v0-test\n", out)
	for _, args := range []string{"--help", "serve --help", "projections rebuild -h"} {
		out, _, status := apptest.Execute(t, apptest.Command(t, data, strings.Fields(args)...))
		require.Equal(t, 0, status, args)
		for line := range strings.SplitSeq(out, "\n") {
			require.LessOrEqual(t, len(line), 120, "%s: %s", args, line)
		}
	}
	for _, args := range []string{"audit verify", "demo", "gateway", "user create", "health"} {
		out, _, _ = apptest.Execute(t, apptest.Command(t, data, append(strings.Fields(args), "--help")...))
		require.NotContains(t, out, "DATABASE_URL", "%s: the command's own options only", args)
		require.NotContains(t, out, "LLM_BASE_URL", args)
		require.Contains(t, out, "Flags:", args)
	}
	for _, args := range []string{"", "nonsense", "events show", "events show 1 --stream bank-1", "apikey create", "apikey revoke x",
		"doctor nonsense", "projections rebuild nonsense", "serve --addr"} {
		_, wrong, status := apptest.Execute(t, apptest.Command(t, data, strings.Fields(args)...))
		require.NotEqual(t, 0, status, args)
		require.Contains(t, wrong, "bahi: ", args)
	}
}

func TestEventsAreShownFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	out := o.Done(t, "events", "tail", "-n", "1")
	require.Regexp(t, fmt.Sprintf(`^ +%d  \S+  BankRowAdded +bankrow-%d@0  \{.*12\.5.*\}\n$`, o.Head(), row.ID), out)
	out = o.Done(t, "events", "tail")
	require.Len(t, slices.Collect(o.Events(0)), strings.Count(out, "\n"))
	byPosition := o.Done(t, "events", "show", strconv.FormatInt(o.Head(), 10))
	byStream := o.Done(t, "events", "show", "--stream", fmt.Sprintf("bankrow-%d", row.ID))
	require.Equal(t, byPosition, byStream)
	for _, word := range []string{fmt.Sprintf("position  %d", o.Head()), "BankRowAdded", `"amount": 12.5`, `"workspace": "` + apptest.Home} {
		require.Contains(t, byStream, word)
	}
	o.Denied(t, fmt.Sprintf("bahi: the log has no event at position %d", o.Head()+1), "events", "show", strconv.FormatInt(o.Head()+1, 10))
	o.Denied(t, "bahi: there is no stream bank-999", "events", "show", "--stream", "bank-999")
}

func TestKeysAreMadeListedAndRevokedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	out := o.Done(t, "apikey", "create", "--name", "Till", "--workspace", o.Home)
	require.Regexp(t, `^bahi_[0-9a-f]{32}_[A-Za-z0-9_-]{43}\n$`, out, "the key alone, for a script")
	o.Done(t, "apikey", "create", "--name", "Counter", "--workspace", o.Home)
	till := o.Anonymous().With("Authorization", "Bearer "+strings.TrimSpace(out))
	till.GET("/banks").Status(200)
	till.POST("/bank", `{"name":"HDFC"}`).Status(201)
	till.GET("/api/v1/api-keys").Status(403)

	list := o.Done(t, "apikey", "list", "--workspace", o.Home)
	require.Contains(t, list, `{"ledger":"write"`)
	require.NotContains(t, list, strings.TrimSpace(out)[38:], "the secret is shown once")
	require.Less(t, strings.Index(list, "  Till"), strings.Index(list, "  Counter"))
	id := regexp.MustCompile(`(?m)^(\S{36})  Till`).FindStringSubmatch(list)
	require.NotNil(t, id, list)
	elsewhere := o.Done(t, "apikey", "list")
	require.NotContains(t, elsewhere, "Till")

	o.Denied(t, "bahi: API key not found", "apikey", "revoke", id[1]) // the key is another workspace's
	o.Done(t, "apikey", "revoke", id[1], "--workspace", o.Home)
	require.Eventually(t, func() bool { return till.GET("/banks").Response.StatusCode == http.StatusUnauthorized }, time.Minute,
		5*time.Millisecond,
		"the server refuses the revoked key")
}

func TestReactorsAreListedAndReplayedOnlyByName(t *testing.T) {
	t.Parallel()
	database := apptest.Database(t)
	conn := pgtest.Connect(t, database)
	pgtest.Exec(t, conn, `
		insert into account.mailed_token (subject_id, kind, number, token_sha256, issued_at, expires_at)
		select gen_random_uuid(), 'verify', 1, sha256(at::bytea), now(), at::timestamptz from unnest(array['2025-01-01', '2999-01-01']) at`)
	o := apptest.StartOn(t, database)
	require.Eventually(t, func() bool { // the start sweeps expired rows
		left := pgtest.Value[int](t, conn, `select count(*) from account.mailed_token`)
		return left == 1
	}, time.Minute, 20*time.Millisecond)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	require.Eventually(t, func() bool { return len(o.Jobs("kind=send_verification")) == 1 }, time.Minute, 5*time.Millisecond)
	out := o.Done(t, "reactors", "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Equal(t, []string{"REACTOR", "STATE", "POSITION", "LAG", "ERROR"}, strings.Fields(lines[0]))
	require.Len(t, lines, 1+len(app.AllReactors()))
	listed := strings.Fields(lines[1])
	require.Equal(t, []string{"accounts", "live"}, listed[:2])
	position, err := strconv.ParseInt(listed[2], 10, 64)
	require.NoError(t, err)
	require.Positive(t, position)
	o.Denied(t, `bahi: there is no reactor "nonsense"`, "reactors", "replay", "nonsense", "--after", "0")
	_, wrong, status := apptest.Attached(t, o, "reactors", "replay", "nonsense")
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "--after")
	o.Denied(t, `bahi: there is no reactor "nonsense"`, "reactors", "retry", "nonsense")
	for args, why := range map[string]string{"reactors retry accounts": "bahi: The projection is not parked",
		"feed retry": "bahi: The projection is not parked"} {
		o.Denied(t, why, strings.Fields(args)...)
	}
}

func TestACampaignIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write"}`).Key)
	c.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	for i := range 5 {
		k := apitest.Read[messagingview.Contact](c.POST("/api/contacts", fmt.Sprintf(`{"name":"Asha","phone":"981230000%d"}`, i+1)).Status(201))
		c.PATCH(fmt.Sprintf("/api/contacts/%d", k.ID), `{"optIn":true}`).Status(200)
	}
	var k messagingview.Campaign
	c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Diwali","type":"broadcast","templateId":%d,"audience":"all"}`,
		templates[0].ID)).Status(201).JSON(&k)
	watch := func() string {
		out := o.Done(t, "campaigns", "watch", fmt.Sprint(k.ID), "--every", "10ms", "--workspace", o.Home)
		return out
	}
	require.Equal(t, "Diwali is draft: 0 sent, 0 delivered, 0 read, 0 failed, 0 skipped\n", watch())
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, k.ID)).Status(202)
	require.Regexp(t, `^Diwali is completed: 5 sent, \d delivered, \d read, 0 failed, 0 skipped\n$`, watch())
	o.Denied(t, "Campaign not found", "campaigns", "watch", "999")
}

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }

// enrol makes an account from the shell, and returns its id and password.
func enrol(t *testing.T, url, email string, more ...string) (id, password string) {
	t.Helper()
	out, said := apptest.Done(t, url, append([]string{"user", "create", "--email", email, "--first-name", "Ravi", "--last-name", "Soni"},
		more...)...)
	found := regexp.MustCompile(`(?m)^user (\S{36})$`).FindStringSubmatch(said)
	require.NotNil(t, found, said)
	return found[1], strings.TrimSpace(out)
}

func TestAnAccountFromTheShellSignsInAtOnce(t *testing.T) {
	t.Parallel()
	database := apptest.Database(t)
	id, password := enrol(t, database, "ravi@example.org") // also without a server
	require.Regexp(t, `^[A-Z2-7]{26}$`, password, "the password alone, for a script")
	apptest.Done(t, database, "user", "delete", id)
	apptest.Done(t, database, "user", "keep", id)
	o := apptest.StartOn(t, database)
	ravi := o.SignIn("ravi@example.org", password)
	require.Equal(t, id, ravi.User.ID)
	o.Denied(t, "bahi: Email already registered",
		"user", "create", "--email", "Ravi@example.org", "--first-name", "Other", "--last-name", "Soni")
	o.Denied(t, "email", "user", "create", "--email", "nobody", "--first-name", "Other", "--last-name", "Soni")

	cmd := apptest.Command(t, t.TempDir(), "user", "create", "--email", "asha@example.org", "--first-name", "Asha", "--last-name",
		"Soni", "--password-stdin")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database)
	cmd.Stdin = strings.NewReader("seven brass hooks\n")
	out, said, status := apptest.Execute(t, cmd)
	require.Equal(t, 0, status, said)
	require.Empty(t, out, "the operator knows the password")
	require.NotContains(t, said, "brass")
	o.SignIn("asha@example.org", "seven brass hooks")

	o.Done(t, "projections", "pause", "products")
	o.Clerk(apptest.Home) // an event that products lacks from here on
	list := o.Done(t, "user", "list")
	require.Regexp(t, `(?m)^`+id+`  ravi@example\.org +Ravi Soni +true +false +\S{36}  \S+Z  \S+Z +- *$`, list)
	require.Equal(t, 3, strings.Count(list, "\n"), list)
	require.NotContains(t, list, password)
}

func TestOperatorIsGrantedAndRevokedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, password := enrol(t, o.Database, o.Address("ravi"), "--operator")
	ravi := o.Bearer(o.SignIn(o.Address("ravi"), password).Access)
	ravi.GET("/ops/jobs").Status(200)
	for _, step := range []struct {
		grant  string
		status int
	}{{"--operator=false", 403}, {"--operator=true", 200}} {
		o.Done(t, "user", "grant", id, step.grant)
		require.Eventually(t, func() bool { return ravi.GET("/ops/jobs").Response.StatusCode == step.status }, time.Minute, 5*time.Millisecond,
			"the server has the change")
	}
	_, wrong, status := apptest.Attached(t, o, "user", "grant", id)
	require.NotEqual(t, 0, status, "the flag has no default")
	require.Contains(t, wrong, "--operator")
	for _, args := range [][]string{{"grant", uuid.NewString(), "--operator=true"}, {"keep", uuid.NewString()}, {"delete", uuid.NewString()}} {
		o.Denied(t, "bahi: User not found", append([]string{"user"}, args...)...)
	}
}

func TestADeletionIsAskedForAndCancelledFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, password := enrol(t, o.Database, o.Address("ravi"))
	ask := func(grace time.Duration) (out string) {
		asked := time.Now()
		out = o.Done(t, "user", "delete", id, "--deletion-grace", grace.String())
		_, text, told := strings.Cut(strings.TrimSpace(out), "to be deleted after ")
		require.True(t, told, out)
		require.WithinRange(t, apptest.MustTime(t, text), asked.Add(grace).Truncate(time.Second), time.Now().Add(grace+time.Second))
		return out
	}
	out := ask(240 * time.Hour)
	require.Equal(t, out, o.Done(t, "user", "delete", id, "--deletion-grace", "1s"), "the first request counts")
	require.Contains(t, o.Done(t, "user", "list"), strings.Fields(out)[4])

	o.SignIn(o.Address("ravi"), password) // the account works until then
	o.Done(t, "user", "keep", id)
	require.NotContains(t, o.Done(t, "user", "list"), strings.Fields(out)[4])
	o.Denied(t, "BAHI_DELETION_GRACE", "user", "delete", id, "--deletion-grace", "721h")
	ask(0) // without grace
}

// signedBy returns the id of the key that signed the token.
func signedBy(t *testing.T, s apptest.SignedIn) any {
	t.Helper()
	token, _, err := jwt.NewParser().ParseUnverified(s.Access, jwt.MapClaims{})
	require.NoError(t, err)
	return token.Header["kid"]
}

func TestSigningKeysAreRotatedWithAndWithoutAnOverlap(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	_, password := enrol(t, o.Database, "ravi@example.org")
	before := o.SignIn("ravi@example.org", password)
	o.Done(t, "keys", "rotate")
	o.Bearer(before.Access).GET("/api/v1/users/me").Status(200)
	require.Eventually(t, func() bool {
		return signedBy(t, o.SignIn("ravi@example.org", password)) != signedBy(t, before)
	}, time.Minute, 100*time.Millisecond, "the serving process signs with the new key")

	o.Done(t, "keys", "rotate", "--overlap", "0s")
	require.Eventually(t, func() bool {
		return o.Bearer(before.Access).GET("/api/v1/users/me").Response.StatusCode == http.StatusUnauthorized
	}, time.Minute, 10*time.Millisecond, "and refuses tokens of the old key")
	o.Anonymous().POST("/api/v1/auth/refresh", map[string]string{"refresh_token": before.Refresh}).
		Problem(401, "Invalid or expired refresh token")
	o.Bearer(o.SignIn("ravi@example.org", password).Access).GET("/api/v1/users/me").Status(200)
	_, wrong, status := apptest.Attached(t, o, "keys", "rotate", "--overlap", "-1s")
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "bahi: ")
}

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

// sold returns a company's id and slug.
func sold(t *testing.T, o *apptest.Server) (id, slug string) {
	t.Helper()
	var made marketplaceview.Company
	seller := o.Bearer(o.Key(o.Home, `{"marketplace":"write"}`).Key)
	seller.POST("/api/v1/companies", `{"name":"Asha Mills"}`).Status(201).JSON(&made)
	return made.ID.String(), made.Slug
}

func TestACompanyIsVerifiedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, slug := sold(t, o)
	for args, said := range map[string][]string{slug: {slug + " is verified\n", `"verified":true`},
		slug + " --revoke": {slug + " is not verified\n", `"verified":false`}} {
		out := o.Done(t, append([]string{"company", "verify"}, strings.Fields(args)...)...)
		require.Equal(t, said[0], out)
		o.Anonymous().GET("/api/v1/companies/" + id).Status(200).Contains(said[1])
	}
	o.Denied(t, "bahi: Company not found", "company", "verify", "nobody")
}

func TestACatalogIsImportedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, slug := sold(t, o)
	file := filepath.Join(t.TempDir(), "catalog.csv")
	run := func(args ...string) (string, string, int) {
		return apptest.Attached(t, o, append([]string{"catalog", "import", file, "--company", slug}, args...)...)
	}
	total := func(want string) {
		t.Helper()
		o.Anonymous().GET("/api/v1/catalog?company_id=" + id).Status(200).Contains(`"total":` + want + ",")
	}
	require.NoError(t, os.WriteFile(file, []byte("name,price\nHook,1\n＝Bad,x\nNail,2\n"), 0o600))
	out, wrong, status := run("--dry-run")
	require.Equal(t, "would be: 2 products created, 1 rows failed\n", out, wrong)
	require.Equal(t, 1, status)
	total("0")
	out, wrong, status = run()
	require.Equal(t, "2 products created, 1 rows failed\n", out, wrong)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: rows failed: see "+file+".errors.csv")
	report := worktest.File(t, file+".errors.csv")
	require.Equal(t, "\ufeffrow,error\n3,\"price: expected an amount, as in 1,250.50 (\"\"x\"\")\",'＝Bad,x\n", string(report))
	total("2")
	out, _, _ = run()
	require.Equal(t, "imported before: 2 products created, 1 rows failed\n", out)
	total("2")

	require.NoError(t, os.WriteFile(file, []byte("name,price\nRing,1\n"), 0o600))
	out, wrong, status = run("--key", "again")
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 products created, 0 rows failed\n", out)
	total("3")
	require.NoError(t, os.WriteFile(file, []byte("\x89PNG\x00"), 0o600))
	_, wrong, status = run()
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: File must be CSV or Excel")
	_, wrong, status = apptest.Attached(t, o, "catalog", "import", file+".none", "--company", slug)
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "none")
}
