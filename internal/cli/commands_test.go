package cli_test

import (
	"fmt"
	"net/http"
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
	require.Regexp(t, `^bahi_\S+\n$`, out, "the key alone, for a script")
	till := o.Anonymous().With("Authorization", "Bearer "+strings.TrimSpace(out))
	till.GET("/banks").Status(200)
	till.POST("/bank", `{"name":"HDFC"}`).Status(201)
	till.GET("/api/v1/api-keys").Status(403)

	list := o.Done(t, "apikey", "list", "--workspace", o.Home)
	require.Contains(t, list, `{"ledger":"write"`)
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
