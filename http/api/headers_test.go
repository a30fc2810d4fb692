package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
)

func TestSecureAnswersHaveStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	const header = "Strict-Transport-Security"
	secure := serve(t, func(c *api.Config) { c.Secure = true })
	for _, path := range []string{"/me", "/openapi.json", "/nothing"} {
		require.Equal(t, "max-age=31536000", secure.as(t, "").GET(path).Header(header), path)
		require.Empty(t, serve(t).as(t, "").GET(path).Header(header), path)
	}
}
