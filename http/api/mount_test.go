package api_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

func startMounted(t *testing.T, limits api.Limits) *apitest.Client {
	t.Helper()
	a := api.New(api.Config{
		Credentials: []api.Credential{{Authenticator: everybody}}, Limiting: api.Limiting{Limits: limits, Now: time.Now},
	})
	a.Mount("pages", "/pages", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := api.Count(r.Context(), "auth"); err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		ctx, who, err := api.Authenticate(r.Context(), r.URL.Query().Get("bearer"))
		if problem, ok := errors.AsType[*api.Problem](err); ok {
			w.WriteHeader(problem.Status)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s as %s, commands as %s, %v", r.Method, r.URL.Path, who, api.Request(ctx).Actor, err)
	}))
	server := worktest.Serve(t, a)
	return apitest.New(t, server.URL, "")
}

func TestMountServesEverythingBelowItsPath(t *testing.T) {
	t.Parallel()
	c := startMounted(t, nil)
	for _, r := range [][2]string{{"GET", "/pages"}, {"POST", "/pages/"}, {"DELETE", "/pages/a/b"}} {
		a := c.Do(r[0], r[1]+"?bearer=bahi_operator", nil).Status(200)
		require.Equal(t, r[0]+" "+r[1]+" as api_key:op, commands as api_key:op, <nil>", a.Text)
		require.NotEmpty(t, a.Header("X-Request-Id"))
	}
	require.Equal(t, "GET /pages as public, commands as public, Not authenticated", c.GET("/pages?bearer=wrong").Status(200).Text)
	c.GET("/pagesandmore").Status(404)
	c.GET("/page").Status(404)
}

func TestRefusedCredentialsCountForMountedPagesToo(t *testing.T) {
	t.Parallel()
	limits := api.DefaultLimits()
	limits[api.GroupRefused] = ratelimit.Limit{Requests: 3, Per: time.Minute}
	limits["auth"] = ratelimit.Limit{}
	c := startMounted(t, limits)
	for range 3 {
		c.GET("/pages?bearer=wrong").Status(200)
	}
	c.GET("/pages?bearer=wrong").Status(429)
	c.GET("/pages?bearer=bahi_operator").Status(200)

	limits = api.DefaultLimits()
	limits["auth"] = ratelimit.Limit{Requests: 2, Per: time.Minute}
	c = startMounted(t, limits)
	c.GET("/pages?bearer=bahi_operator").Status(200)
	c.GET("/pages?bearer=bahi_operator").Status(200)
	require.NotEmpty(t, c.GET("/pages?bearer=bahi_operator").Status(429).Header("Retry-After"))
}

func TestCallerIsUnknownOutsideACall(t *testing.T) {
	t.Parallel()
	_, _, err := api.Authenticate(t.Context(), "bahi_operator")
	require.ErrorIs(t, err, api.ErrNotAuthenticated)
	api.Failed(t.Context(), io.EOF)
}
