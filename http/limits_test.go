package http_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// refused checks that a request exceeded a limit of requests per hour.
func refused(t *testing.T, a *apitest.Answer, group string, limit int) {
	t.Helper()
	p := a.Problem(429, "Too many requests")
	require.Contains(t, p.Text, `"code":"rate_limited"`)
	require.Regexp(t, `^[1-9][0-9]{0,3}$`, a.Header("Retry-After"))
	require.Equal(t, fmt.Sprintf(`%q;q=%d;w=3600`, group, limit), a.Header("RateLimit-Policy"))
	require.Regexp(t, fmt.Sprintf(`^%q;r=0;t=[0-9]+$`, group), a.Header("RateLimit"))
}

func TestStrangersCanGuessOnlySlowlyAndLockNobodyOut(t *testing.T) {
	t.Parallel()
	o := apptest.StartLimited(t)
	asha := o.Person("asha@example.com")
	try := func(i int, email, password string) *apitest.Answer {
		return apptest.From(o.Anonymous(), fmt.Sprintf("198.51.100.%d", i)).POST(apptest.Auth+"/login",
			map[string]string{"email": email, "password": password})
	}
	for i, email := range []string{"asha@example.com", "nobody@example.com"} { // an unknown account has the same limits
		for n := range 10 {
			try(20*i+n, email, "a wrong guess").Status(401)
		}
		a := try(20*i+10, []string{"ASHA@example.com ", email}[i], apptest.GoodPassword).Problem(429, "Too many requests")
		require.NotEmpty(t, a.Header("Retry-After"))
	}
	asha.GET(apptest.Me).Status(200)
	asha.POST(apptest.Me+"/password",
		map[string]string{"current_password": apptest.GoodPassword, "new_password": "another good one 17"}).Status(200)
}

func TestUsersAreCountedWhereverTheyAreAndKeysWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	limits, err := api.ParseLimits([]string{"BAHI_LIMIT_API_KEYS=3/1h", "BAHI_LIMIT_USERS=3/1h", "BAHI_LIMIT_AUTH=off"})
	require.NoError(t, err)
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.Limits, s.Outside.Proxies = limits, []string{"127.0.0.0/8"}
	o := apptest.StartAs(t, s)
	clerk := o.Clerk(apptest.Home)
	for range 3 {
		clerk.GET("/banks").Status(200)
	}
	refused(t, clerk.GET("/banks"), "api_keys", 3)
	o.Clerk(apptest.OtherWorkspace).GET("/banks").Status(200)

	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com") // each has read their account once
	second := o.SignIn("asha@example.com", apptest.GoodPassword)
	apptest.From(asha.Client, "198.51.100.1").GET(apptest.Me).Status(200)
	apptest.From(asha.With("Authorization", "Bearer "+second.Access), "198.51.100.2").GET(apptest.Me).Status(200)
	refused(t, apptest.From(asha.Client, "198.51.100.3").PUT(apptest.Me, `{}`), "users", 3)
	ravi.GET(apptest.Me).Status(200)
}

func TestPagesOfTheFrontendMayAsk(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.FrontendURL, s.Outside.Origins = "https://shop.example/app", []string{"https://till.example"}
	o := apptest.StartAs(t, s)
	asha := o.Person("asha@example.com")
	const shop, till = "https://shop.example", "https://till.example"
	ask := func(origin, method, path string) *apitest.Answer {
		return o.Anonymous().With("Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers",
			"authorization,content-type").Do("OPTIONS", path, nil)
	}
	for _, origin := range []string{shop, till} {
		a := ask(origin, "POST", apptest.Auth+"/refresh").Status(204)
		require.Equal(t, []string{origin, "true"},
			[]string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")})
		require.Contains(t, a.Header("Access-Control-Allow-Headers"), "authorization")
		require.Equal(t, "600", a.Header("Access-Control-Max-Age"), "seconds for which a browser remembers it")
		a = ask(origin, "PUT", apptest.Me).Status(204)
		require.Equal(t, []string{origin, ""}, []string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")},
			"cookies go to auth alone")
		a = asha.With("Origin", origin).GET(apptest.Me).Status(200)
		require.Equal(t, []string{origin, ""}, []string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")})
		require.Contains(t, a.Header("Access-Control-Expose-Headers"), "Bahi-Position")
		require.Contains(t, a.Header("Vary"), "Origin")
		a = asha.With("Origin", origin, "Authorization", "").GET(apptest.Me).Problem(401, "Not authenticated")
		require.Equal(t, origin, a.Header("Access-Control-Allow-Origin"), "a page can read why")
	}
	require.Empty(t, ask("https://shop.example.evil.example", "POST", apptest.Me).Header("Access-Control-Allow-Origin"))
}
