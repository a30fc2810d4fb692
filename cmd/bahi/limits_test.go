package main_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/http/api/apitest"
)

// startLimited serves a system with the limits of the specification, but for an hour instead of a minute, which no busy machine takes for
// so many requests. It is behind a proxy on this machine.
func startLimited(t *testing.T) *office {
	t.Helper()
	s := testSettings(t, testDatabase(t))
	s.Outside.Limits, s.Outside.Proxies = api.DefaultLimits(), []string{"127.0.0.0/8"}
	for group, l := range s.Outside.Limits {
		if l.Per == time.Minute {
			l.Per = time.Hour
			s.Outside.Limits[group] = l
		}
	}
	return startAs(t, s)
}

// from asks as the proxy says that an address does.
func from(c *apitest.Client, address string) *apitest.Client {
	return c.With("X-Forwarded-For", "203.0.113.9, "+address)
}

// refused checks that it was one too many, of so many an hour.
func refused(t *testing.T, a *apitest.Answer, group string, limit int) {
	t.Helper()
	p := a.Problem(429, "Too many requests")
	require.Contains(t, p.Text, `"code":"rate_limited"`)
	require.Regexp(t, `^[1-9][0-9]{0,3}$`, a.Header("Retry-After"))
	require.Equal(t, fmt.Sprintf(`%q;q=%d;w=3600`, group, limit), a.Header("RateLimit-Policy"))
	require.Regexp(t, fmt.Sprintf(`^%q;r=0;t=[0-9]+$`, group), a.Header("RateLimit"))
}

func TestSigningInIsCountedTogether(t *testing.T) {
	t.Parallel()
	o := startLimited(t)
	public := []struct{ method, path string }{
		{"POST", "/register"}, {"POST", "/login"}, {"POST", "/verify-email"}, {"POST", "/password-reset/request"},
		{"POST", "/password-reset/confirm"}, {"POST", "/refresh"}, {"GET", "/idp"}, {"GET", "/idp/callback"},
	}
	here := from(o.stranger(), "198.51.100.1")
	for i := range 20 {
		r := public[i%len(public)]
		a := here.Do(r.method, auth+r.path, nil)
		require.NotEqual(t, http.StatusTooManyRequests, a.Response.StatusCode, i)
		require.Equal(t, `"auth";q=20;w=3600`, a.Header("RateLimit-Policy"))
		require.Regexp(t, fmt.Sprintf(`^"auth";r=%d;`, 19-i), a.Header("RateLimit"))
	}
	before := o.head()
	for _, r := range public {
		refused(t, here.Do(r.method, auth+r.path, nil), "auth", 20)
	}
	refused(t, here.POST(auth+"/register", registration("asha@example.com")), "auth", 20)
	require.Equal(t, before, o.head())
	// Another address is another count; what is not of the group has none of it.
	from(o.stranger(), "198.51.100.2").POST(auth+"/login", nil).Status(400)
	here.GET("/openapi.json").Status(200)
	// What the client says itself of its address counts for nothing.
	here.With("X-Forwarded-For", "198.51.100.77, 198.51.100.1").POST(auth+"/login", nil).Status(429)
	here.With("Forwarded", "for=198.51.100.78").POST(auth+"/login", nil).Status(400) // they differ: it is the proxy's own
	// The networks of IPv6 are counted by their first 64 bits.
	for i := range 20 {
		from(o.stranger(), fmt.Sprintf("2001:db8::%x", i)).POST(auth+"/login", nil).Status(400)
	}
	from(o.stranger(), "2001:db8::ffff").POST(auth+"/login", nil).Status(429)
	from(o.stranger(), "2001:db8:0:1::1").POST(auth+"/login", nil).Status(400)
}

func TestSomebodySignedInIsCountedWhereverTheyAre(t *testing.T) {
	t.Parallel()
	o := startLimited(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	second := o.signIn("asha@example.com", goodPassword)
	for i := range 20 { // their count of the auth group is their own, whatever the address has used
		asha.With("Authorization", "Bearer "+o.signInFrom(i)).POST(auth+"/logout", nil).Status(200)
	}
	refused(t, asha.POST(auth+"/logout", nil), "auth", 20)
	asha.GET("/banks").Status(200)

	used := 0
	for ; used < 200; used++ {
		client := from(asha.Client, fmt.Sprintf("198.51.100.%d", used))
		if used%2 == 1 {
			client = client.With("Authorization", "Bearer "+second.Access)
		}
		if client.GET(me).Response.StatusCode == http.StatusTooManyRequests {
			break
		}
	}
	require.Equal(t, 120-1, used, "one was read before")
	refused(t, asha.PUT(me, `{}`), "users", 120)
	refused(t, asha.POST(me+"/password", `{}`), "users", 120)
	ravi.GET(me).Status(200)
	asha.POST(me+"/delete-request", nil).Status(200) // is another group
	for range 10 {
		asha.POST(me+"/profile-picture", nil).Status(415)
	}
	refused(t, asha.POST(me+"/profile-picture", nil), "users_picture", 10)
	asha.GET("/banks").Status(200)
}

// signInFrom begins a session of Asha's from an address of its own.
func (o *office) signInFrom(address int) string {
	o.t.Helper()
	var in signedIn
	from(o.stranger(), fmt.Sprintf("192.0.2.%d", address)).POST(auth+"/login", map[string]string{"email": "asha@example.com", "password": goodPassword}).Status(200).JSON(&in)
	return in.Access
}

func TestKeysAreCountedOnlyWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	o := startLimited(t)
	clerk := o.clerk(home)
	for range 310 { // a user may ask 300 times a minute
		a := clerk.GET("/banks").Status(200)
		require.Empty(t, a.Header("RateLimit"))
	}
	limits, err := api.ParseLimits([]string{"BAHI_LIMIT_API_KEYS=3/1h", "BAHI_LIMIT_AUTH=off"})
	require.NoError(t, err)
	s := testSettings(t, testDatabase(t))
	s.Outside.Limits = limits
	o = startAs(t, s)
	clerk = o.clerk(home)
	for range 3 {
		clerk.GET("/banks").Status(200)
	}
	refused(t, clerk.GET("/banks"), "api_keys", 3)
	o.clerk(abroad).GET("/banks").Status(200)
	for range 30 {
		o.stranger().With("X-Forwarded-For", "198.51.100.1").POST(auth+"/login", nil).Status(400)
	}
}

func TestPagesOfTheFrontendMayAsk(t *testing.T) {
	t.Parallel()
	s := testSettings(t, testDatabase(t))
	s.Outside.FrontendURL, s.Outside.Origins = "https://shop.example/app", []string{"https://till.example"}
	o := startAs(t, s)
	asha := o.person("asha@example.com")
	const shop, till = "https://shop.example", "https://till.example"
	ask := func(origin, method, path string) *apitest.Answer {
		return o.stranger().With("Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", "authorization,content-type").Do("OPTIONS", path, nil)
	}
	for _, origin := range []string{shop, till} {
		a := ask(origin, "POST", auth+"/refresh").Status(204)
		require.Equal(t, []string{origin, "true"}, []string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")})
		require.Contains(t, a.Header("Access-Control-Allow-Headers"), "authorization")
		a = ask(origin, "PUT", me).Status(204)
		require.Equal(t, []string{origin, ""}, []string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")}, "cookies go to auth alone")
		a = asha.With("Origin", origin).GET(me).Status(200)
		require.Equal(t, []string{origin, ""}, []string{a.Header("Access-Control-Allow-Origin"), a.Header("Access-Control-Allow-Credentials")})
		require.Contains(t, a.Header("Access-Control-Expose-Headers"), "Bahi-Position")
		require.Contains(t, a.Header("Vary"), "Origin")
		a = asha.With("Origin", origin, "Authorization", "").GET(me).Problem(401, "Not authenticated")
		require.Equal(t, origin, a.Header("Access-Control-Allow-Origin"), "a page can read why")
	}
	for _, origin := range []string{"https://shop.example.evil.example", "http://shop.example", "https://shop.example:8443", "null", "https://SHOP.example", "https://sub.shop.example", ""} {
		for _, path := range []string{auth + "/refresh", me} {
			require.Empty(t, ask(origin, "POST", path).Header("Access-Control-Allow-Origin"), origin)
		}
		a := asha.With("Origin", origin).GET(me).Status(200)
		require.Empty(t, a.Header("Access-Control-Allow-Origin"), origin)
	}
}
