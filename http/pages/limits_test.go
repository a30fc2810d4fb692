package pages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apptest"
)

// TestThePagesOfAPersonAreLimitedAsPages shows that the limit of pages is higher than that of operations, and that it holds.
func TestThePagesOfAPersonAreLimitedAsPages(t *testing.T) {
	t.Parallel()
	o := apptest.StartLimited(t)
	o.Person("asha@example.com")
	b, limits := signedIn(o, "asha@example.com"), api.DefaultLimits()
	most, one := limits[api.GroupPages].Requests, limits["marketplace_general"].Requests
	require.Greater(t, most, one)
	seen := 1 // the first page after the sign-in was not followed
	for ; seen < most+2; seen++ {
		if s := b.get("/app/settings/members"); s.Header.Get("Retry-After") != "" {
			s.Is(429).Says("Too many requests")
			break
		}
	}
	require.InDelta(t, most, seen, 2)
}
