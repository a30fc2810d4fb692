package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/http/api"
)

func TestWriteThatIsNotAdmittedGets503(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *api.Config) {
		c.Admit = func(_ context.Context, op api.Op) error {
			return fault.Newf(fault.Unavailable, "%s is too much", op.ID)
		}
	})
	s.as(t, "bahi_reader").GET("/ledger/3").Status(200)
	s.as(t, "bahi_reader").POST("/ledger/3", good).Problem(403, "Not enough permissions")
	a := s.as(t, "bahi_clerk").POST("/ledger/3", good).Problem(503, "post-row is too much")
	require.NotEmpty(t, a.Header("Retry-After"))
}
