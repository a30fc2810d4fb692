package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

// signedIn are users, and an API key.
var signedIn = people{
	"asha":      {Type: "user", ID: "asha", Workspace: shop, Permissions: actor.Permissions{Ledger: actor.Write}},
	"ravi":      {Type: "user", ID: "ravi", Workspace: shop, Permissions: actor.Permissions{Ledger: actor.Read}},
	"bahi_till": {Type: "api_key", ID: "till", Workspace: shop, Permissions: actor.Permissions{Ledger: actor.Write}},
}

// limited serves operations of some groups, behind a proxy at this host. Environ has its settings.
func limited(t *testing.T, change func(*api.Config), environ ...string) (url string, c *worktest.Clock) {
	t.Helper()
	c = worktest.NewClock(time.Date(2025, 3, 31, 23, 59, 30, 0, time.UTC))
	limits, err := api.ParseLimits(append([]string{"BAHI_LIMIT_AUTH=3/1m", "BAHI_LIMIT_LEDGER_GENERAL=2/1m"}, environ...))
	require.NoError(t, err)
	config := api.Config{
		Credentials: []api.Credential{{Authenticator: signedIn}},
		Limiting:    api.Limiting{Limits: limits, Now: c.Now, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	if change != nil {
		change(&config)
	}
	a := api.New(config)
	done := func(context.Context, *struct{}) (*api.Nothing, error) { return &api.Nothing{}, nil }
	for _, op := range []api.Op{
		{ID: "login", Method: "POST", Path: "/api/v1/auth/login", Public: true, Limit: "auth"},
		{ID: "refresh", Method: "POST", Path: "/api/v1/auth/refresh", Public: true, Limit: "auth"},
		{ID: "rows", Method: "GET", Path: "/rows", Area: actor.Ledger, Limit: "ledger_general"},
		{ID: "post-row", Method: "POST", Path: "/rows", Area: actor.Ledger, Limit: "ledger_general"},
		{ID: "pdf", Method: "GET", Path: "/pdf", Area: actor.Ledger, Limit: "ledger_pdf"},
		{ID: "unlimited", Method: "GET", Path: "/unlimited"},
	} {
		op.Status = 204
		api.Handle(a, op, done)
	}
	api.Handle(a, api.Op{ID: "verify", Method: "POST", Path: "/api/v1/auth/verify", Public: true, Limit: "auth", Proof: true, Status: 204},
		func(_ context.Context, in *struct {
			Body struct {
				Token string `json:"token"`
			}
		}) (*api.Nothing, error) {
			if in.Body.Token != "right" {
				return nil, api.ErrNotAuthenticated
			}
			return &api.Nothing{}, nil
		})
	api.Handle(a, api.Op{ID: "password", Method: "POST", Path: "/api/v1/auth/password", Public: true, Limit: "auth", Status: 204},
		func(ctx context.Context, in *struct {
			Body struct {
				Account  string `json:"account"`
				Password string `json:"password"`
			}
		}) (*api.Nothing, error) {
			settle, err := api.Guess(ctx, in.Body.Account)
			if err != nil {
				return nil, err
			}
			wrong := in.Body.Password != "right"
			if settle(wrong); wrong {
				return nil, api.ErrNotAuthenticated
			}
			return &api.Nothing{}, nil
		})
	h := worktest.Serve(t, a)
	return h.URL, c
}

func at(t *testing.T, url, address string) *apitest.Client {
	return apitest.New(t, url, "").With("X-Forwarded-For", address)
}

func TestAGroupSharesOneCounter(t *testing.T) {
	t.Parallel()
	url, c := limited(t, nil)
	public := at(t, url, "198.51.100.1")
	a := public.POST("/api/v1/auth/login", nil).Status(204)
	require.Equal(t, `"auth";q=3;w=60`, a.Header("RateLimit-Policy"))
	require.Equal(t, `"auth";r=2;t=60`, a.Header("RateLimit"))
	require.Empty(t, a.Header("Retry-After"))
	c.Pass(20*time.Second + time.Millisecond)
	require.Equal(t, `"auth";r=1;t=40`, public.POST("/api/v1/auth/refresh", nil).Status(204).Header("RateLimit"))
	public.POST("/api/v1/auth/login", nil).Status(204)
	for _, path := range []string{"/api/v1/auth/login", "/api/v1/auth/refresh"} {
		a := public.POST(path, nil).Problem(429, "Too many requests")
		require.Contains(t, a.Text, `"code":"rate_limited"`)
		require.Equal(t, "application/problem+json", a.Header("Content-Type"))
		require.Equal(t, "40", a.Header("Retry-After"), "rounded up")
		require.Equal(t, `"auth";q=3;w=60`, a.Header("RateLimit-Policy"))
		require.Equal(t, `"auth";r=0;t=40`, a.Header("RateLimit"))
	}
	at(t, url, "198.51.100.2").POST("/api/v1/auth/login", nil).Status(204)
	c.Pass(39*time.Second + 998*time.Millisecond)
	require.Equal(t, "1", public.POST("/api/v1/auth/login", nil).Problem(429, "Too many requests").Header("Retry-After"))
	c.Pass(time.Millisecond)
	public.POST("/api/v1/auth/login", nil).Status(204)
	public.POST("/api/v1/auth/login", nil).Status(429)
}

func TestUntrustedProxyIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	url, c := limited(t, func(config *api.Config) {
		config.Limiting.Proxies = nil
		config.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	apitest.New(t, url, "").POST("/api/v1/auth/login", nil).Status(204)
	require.NotContains(t, said.String(), "BAHI_TRUSTED_PROXIES")
	at(t, url, "198.51.100.1").POST("/api/v1/auth/login", nil).Status(204)
	at(t, url, "198.51.100.2").POST("/api/v1/auth/login", nil).Status(204)
	require.Equal(t, 1, strings.Count(said.String(), "BAHI_TRUSTED_PROXIES"))
	c.Pass(time.Minute)
	at(t, url, "198.51.100.1").POST("/api/v1/auth/login", nil).Status(204)
	require.Equal(t, 2, strings.Count(said.String(), "BAHI_TRUSTED_PROXIES"))
}

func TestGuessingCredentialsIsLimited(t *testing.T) {
	t.Parallel()
	url, c := limited(t, nil, "BAHI_LIMIT_REFUSED_AUTHENTICATION=2/1m")
	here := func(bearer string) *apitest.Client {
		return apitest.New(t, url, bearer).With("X-Forwarded-For", "198.51.100.1")
	}
	for range 5 {
		require.Empty(t, here("").GET("/rows").Problem(401, "Not authenticated").Header("RateLimit"), "a missing credential is not a guess")
	}
	a := here("guess-1").GET("/rows").Problem(401, "Not authenticated")
	require.Equal(t, `"refused_authentication";q=2;w=60`, a.Header("RateLimit-Policy"))
	require.Equal(t, `"refused_authentication";r=1;t=60`, a.Header("RateLimit"))
	here("bahi_unknowable").GET("/rows").Problem(500, "Internal error") // it was not checked
	require.Equal(t, `"ledger_general";r=1;t=60`, here("asha").GET("/rows").Status(204).Header("RateLimit"),
		"others at the address are served")
	here("guess-2").GET("/unlimited").Problem(401, "Not authenticated")
	for range 120 {
		a := here("guess-3").GET("/rows").Problem(429, "Too many requests")
		require.Equal(t, "60", a.Header("Retry-After"))
		require.Equal(t, `"refused_authentication";r=0;t=60`, a.Header("RateLimit"))
	}
	here("").GET("/rows").Problem(401, "Not authenticated")
	here("asha").GET("/rows").Status(204) // a valid credential is never refused for the failures of others
	here("ravi").GET("/unlimited").Status(204)
	here("guess-3").With("X-Forwarded-For", "198.51.100.2").GET("/rows").Status(401)
	c.Pass(time.Minute)
	here("guess-3").GET("/rows").Status(401)
}

func TestAProofWorksBeyondTheLimitOfItsAddress(t *testing.T) {
	t.Parallel()
	url, _ := limited(t, nil)
	here := at(t, url, "198.51.100.1")
	for range 3 {
		here.POST("/api/v1/auth/login", nil).Status(204)
	}
	here.POST("/api/v1/auth/login", nil).Status(429)
	right, wrong := map[string]string{"token": "right"}, map[string]string{"token": "wrong"}
	a := here.POST("/api/v1/auth/verify", right).Status(204)
	require.Equal(t, `"auth";r=0;t=60`, a.Header("RateLimit"))
	require.Empty(t, a.Header("Retry-After"))
	for _, body := range []any{wrong, nil, map[string]any{"token": 7}} {
		require.Equal(t, "60", here.POST("/api/v1/auth/verify", body).Problem(429, "Too many requests").Header("Retry-After"))
	}
	at(t, url, "198.51.100.2").POST("/api/v1/auth/verify", wrong).Status(401)
}

func TestWrongPasswordsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	url, c := limited(t, nil, "BAHI_LIMIT_AUTH=off")
	address := 0
	try := func(account, password string) *apitest.Answer { // each from another address
		address++
		return at(t, url, fmt.Sprintf("198.51.100.%d", address)).POST("/api/v1/auth/password",
			map[string]string{"account": account, "password": password})
	}
	for range 20 {
		try("asha", "right").Status(204) // these do not count
	}
	for range 10 {
		try("asha", "wrong").Status(401)
		c.Pass(time.Second)
	}
	for _, password := range []string{"wrong", "right"} {
		require.Equal(t, "50", try("asha", password).Problem(429, "Too many requests").Header("Retry-After"))
	}
	try("ravi", "wrong").Status(401)
	c.Pass(50 * time.Second)
	try("asha", "wrong").Status(401) // one a minute
	try("asha", "right").Status(429)
	c.Pass(time.Minute)
	try("asha", "right").Status(204)
	try("asha", "wrong").Status(401)
	try("asha", "right").Status(429)
	c.Pass(14 * time.Minute)
	for range 5 {
		try("asha", "wrong").Status(401)
	}
}

func TestConcurrentWrongPasswordsAreCountedBeforeTheyAreChecked(t *testing.T) {
	t.Parallel()
	url, _ := limited(t, nil, "BAHI_LIMIT_AUTH=off")
	var (
		trying  sync.WaitGroup
		checked atomic.Int32
	)
	for range 60 {
		trying.Go(func() {
			if at(t, url, "198.51.100.1").POST("/api/v1/auth/password", map[string]string{"account": "asha",
				"password": "wrong"}).Response.StatusCode == http.StatusUnauthorized {
				checked.Add(1)
			}
		})
	}
	trying.Wait()
	require.GreaterOrEqual(t, checked.Load(), int32(10))
	require.LessOrEqual(t, checked.Load(), int32(11), "ten, and the first of those once a minute")
}

// refusing is a Counter that refuses everything.
type refusing struct{ next time.Duration }

func (r refusing) Take(context.Context, ratelimit.Key, ratelimit.Limit) ratelimit.Decision {
	return ratelimit.Decision{Next: r.next}
}

func (refusing) Return(context.Context, ratelimit.Key) {}

func TestRetryAfterIsAtLeastASecond(t *testing.T) {
	t.Parallel()
	for next, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2"} {
		url, _ := limited(t, func(c *api.Config) { c.Limiting.Counter = refusing{next} })
		require.Equal(t, want, apitest.New(t, url, "asha").GET("/rows").Problem(429, "Too many requests").Header("Retry-After"))
	}
}

func TestEachLimitIsASetting(t *testing.T) {
	t.Parallel()
	limits := api.DefaultLimits()
	for group := range limits {
		set, err := api.ParseLimits([]string{"PATH=/bin", fmt.Sprintf("BAHI_LIMIT_%s=7/2s", group), "BAHI_ADDR=:1"})
		require.NoError(t, err)
		require.Equal(t, ratelimit.Limit{Requests: 7, Per: 2 * time.Second}, set[group])
	}
	_, err := api.ParseLimits([]string{"BAHI_LIMIT_AUHT=1/1m", "BAHI_LIMIT_USERS=120"})
	require.ErrorContains(t, err, "BAHI_LIMIT_AUHT: unknown limit; known are api_keys, audit_general, auth,")
	require.ErrorContains(t, err, `BAHI_LIMIT_USERS: limit "120": expected`)
}

func TestUnknownLimitGroupPanicsAtRegistration(t *testing.T) {
	t.Parallel()
	a := api.New(api.Config{Limiting: api.Limiting{Limits: api.DefaultLimits()}})
	require.PanicsWithValue(t, `no limit is named "auht"`, func() {
		api.Handle(a, api.Op{ID: "login", Method: "POST", Path: "/login", Public: true, Limit: "auht"}, none[struct{}])
	})
}
