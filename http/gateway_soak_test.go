//go:build soak

package http_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestAllIsKeptInALogInAnotherProcess(t *testing.T) {
	t.Parallel()
	apptest.InAnotherProcess(t, apptest.TestsOf(t, "conditions", "dry_run", "freshness", "idempotency")...)
}
