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
