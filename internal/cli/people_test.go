package cli_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// enrol makes an account from the shell, and returns its id and password.
func enrol(t *testing.T, run func(args ...string) (stdout, stderr string, status int), email string, more ...string) (id, password string) {
	t.Helper()
	out, said, status := run(append([]string{"user", "create", "--email", email, "--first-name", "Ravi", "--last-name", "Soni"},
		more...)...)
	require.Equal(t, 0, status, said)
	found := regexp.MustCompile(`(?m)^user (\S{36})$`).FindStringSubmatch(said)
	require.NotNil(t, found, said)
	return found[1], strings.TrimSpace(out)
}

// beside returns a function that runs commands beside a server.
func beside(t *testing.T, o *apptest.Server) func(args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		return apptest.Attached(t, o, args...)
	}
}

func TestAnAccountFromTheShellSignsInAtOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	run := beside(t, o)
	id, password := enrol(t, run, "ravi@example.org")
	require.Regexp(t, `^[A-Z2-7]{26}$`, password, "the password alone, for a script")
	ravi := o.SignIn("ravi@example.org", password)
	require.Equal(t, id, ravi.User.ID)

	_, wrong, status := run("user", "create", "--email", "Ravi@example.org", "--first-name", "Other", "--last-name", "Soni")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: Email already registered")
	_, wrong, status = run("user", "create", "--email", "nobody", "--first-name", "Other", "--last-name", "Soni")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "email")

	cmd := apptest.Command(t, t.TempDir(), "user", "create", "--email", "asha@example.org", "--first-name", "Asha", "--last-name",
		"Soni", "--password-stdin")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database)
	cmd.Stdin = strings.NewReader("seven brass hooks\n")
	out, said, status := apptest.Execute(t, cmd)
	require.Equal(t, 0, status, said)
	require.Empty(t, out, "the operator knows the password")
	require.NotContains(t, said, "brass")
	o.SignIn("asha@example.org", "seven brass hooks")

	_, wrong, status = run("projections", "pause", "products")
	require.Equal(t, 0, status, wrong)
	o.Clerk(apptest.Home) // an event that products lacks from here on
	list, wrong, status := run("user", "list")
	require.Equal(t, 0, status, "a command waits for the tables that it reads: %s", wrong)
	require.Regexp(t, `(?m)^`+id+`  ravi@example\.org +Ravi Soni +true +false +\S{36}  \S+Z  \S+Z +- *$`, list)
	require.Equal(t, 3, strings.Count(list, "\n"), list)
	require.NotContains(t, list, password)
}

func TestOperatorIsGrantedAndRevokedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	run := beside(t, o)
	id, password := enrol(t, run, o.Address("ravi"), "--operator")
	ravi := o.Bearer(o.SignIn(o.Address("ravi"), password).Access)
	ravi.GET("/ops/jobs").Status(200)
	for _, step := range []struct {
		grant  string
		status int
	}{{"--operator=false", 403}, {"--operator=true", 200}} {
		_, wrong, status := run("user", "grant", id, step.grant)
		require.Equal(t, 0, status, wrong)
		require.Eventually(t, func() bool { return ravi.GET("/ops/jobs").Response.StatusCode == step.status }, time.Minute, 5*time.Millisecond,
			"the server has the change")
	}
	_, wrong, status := run("user", "grant", id)
	require.NotEqual(t, 0, status, "the flag has no default")
	require.Contains(t, wrong, "--operator")
	for _, args := range [][]string{{"grant", uuid.NewString(), "--operator=true"}, {"keep", uuid.NewString()}, {"delete", uuid.NewString()}} {
		_, wrong, status = run(append([]string{"user"}, args...)...)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, "bahi: User not found")
	}
}

func TestADeletionIsAskedForAndCancelledFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	run := beside(t, o)
	id, password := enrol(t, run, o.Address("ravi"))
	asked := time.Now()
	out, wrong, status := run("user", "delete", id, "--deletion-grace", "240h")
	require.Equal(t, 0, status, wrong)
	_, text, told := strings.Cut(strings.TrimSpace(out), "to be deleted after ")
	require.True(t, told, out)
	require.WithinRange(t, apptest.MustTime(t, text), asked.Add(240*time.Hour).Truncate(time.Second),
		time.Now().Add(240*time.Hour+time.Second))
	again, _, status := run("user", "delete", id, "--deletion-grace", "1s")
	require.Equal(t, 0, status)
	require.Equal(t, out, again, "the first request counts")
	list, _, _ := run("user", "list")
	require.Contains(t, list, strings.Fields(out)[4])

	o.SignIn(o.Address("ravi"), password) // the account works until then
	_, wrong, status = run("user", "keep", id)
	require.Equal(t, 0, status, wrong)
	list, _, _ = run("user", "list")
	require.NotContains(t, list, strings.Fields(out)[4])
	_, wrong, status = run("user", "delete", id, "--deletion-grace", "721h")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "BAHI_DELETION_GRACE")

	asked = time.Now()
	out, wrong, status = run("user", "delete", id, "--deletion-grace", "0s")
	require.Equal(t, 0, status, wrong)
	_, text, _ = strings.Cut(strings.TrimSpace(out), "to be deleted after ")
	require.WithinRange(t, apptest.MustTime(t, text), asked.Truncate(time.Second), time.Now().Add(time.Second), "without grace")
}

func TestAKeyOfAUsersWorkspaceIsMadeFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	run := beside(t, o)
	_, password := enrol(t, run, o.Address("ravi"))
	ravi := o.Bearer(o.SignIn(o.Address("ravi"), password).Access)
	account := apptest.Open(ravi, "HDFC")
	var me apptest.UserAnswer
	ravi.GET("/api/v1/users/me").Status(200).JSON(&me)
	out, wrong, status := run("apikey", "create", "--name", "Till", "--workspace", me.WorkspaceID)
	require.Equal(t, 0, status, wrong)
	till := o.Bearer(strings.TrimSpace(out))
	apptest.Post(till, account, apptest.Deposit("2025-03-01", "12.5"))
	require.Equal(t, "03-01 12.5", apptest.Balances(ravi, apptest.Ledger(account)))
}

func TestPeopleAreManagedWithoutAServer(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), apptest.Database(t)
	bahi := func(args ...string) *apptest.Cmd {
		cmd := apptest.Command(t, data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database)
		return cmd
	}
	run := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		return apptest.Execute(t, bahi(args...))
	}
	id, password := enrol(t, run, "ravi@example.org", "--operator")
	_, wrong, status := run("user", "delete", id)
	require.Equal(t, 0, status, wrong)
	_, wrong, status = run("user", "keep", id)
	require.Equal(t, 0, status, wrong)
	list, _, _ := run("user", "list")
	require.Regexp(t, `(?m)^`+id+`  ravi@example\.org +Ravi Soni +true +true .* - +- *$`, list)

	p := apptest.Serve(t, bahi("serve"))
	p.Ready()
	o := apptest.Visited(p, data)
	o.Bearer(o.SignIn("ravi@example.org", password).Access).GET("/ops/jobs").Status(200)
	p.Stop()
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
	run := beside(t, o)
	_, password := enrol(t, run, "ravi@example.org")
	before := o.SignIn("ravi@example.org", password)
	_, wrong, status := run("keys", "rotate")
	require.Equal(t, 0, status, wrong)
	o.Bearer(before.Access).GET("/api/v1/users/me").Status(200)
	require.Eventually(t, func() bool {
		return signedBy(t, o.SignIn("ravi@example.org", password)) != signedBy(t, before)
	}, time.Minute, 100*time.Millisecond, "the serving process signs with the new key")

	_, wrong, status = run("keys", "rotate", "--overlap", "0s")
	require.Equal(t, 0, status, wrong)
	require.Eventually(t, func() bool {
		return o.Bearer(before.Access).GET("/api/v1/users/me").Response.StatusCode == http.StatusUnauthorized
	}, time.Minute, 10*time.Millisecond, "and refuses tokens of the old key")
	o.Anonymous().POST("/api/v1/auth/refresh", map[string]string{"refresh_token": before.Refresh}).
		Problem(401, "Invalid or expired refresh token")
	o.Bearer(o.SignIn("ravi@example.org", password).Access).GET("/api/v1/users/me").Status(200)
	_, wrong, status = run("keys", "rotate", "--overlap", "-1s")
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "bahi: ")
}
