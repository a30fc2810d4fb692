package apptest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Checkpoints returns all signed checkpoints, in their order.
func (o *Server) Checkpoints() (all []AuditCheckpoint) {
	o.T.Helper()
	o.Operator().GET("/audit/checkpoints").Status(200).JSON(&all)
	return all
}

// Rotated rotates the key for checkpoints.
func (o *Server) Rotated() {
	o.T.Helper()
	_, wrong, status := Attached(o.T.(*testing.T), o, "audit", "rotate-key", "--reason", "yearly")
	require.Equal(o.T, 0, status, wrong)
}
