//go:build soak

package ledgerhttp_test

import (
	"testing"

	"bahi/internal/test/apptest"
)

func TestAllIsKeptWithAJournal(t *testing.T) {
	t.Parallel()
	apptest.OnJournal(t, "", apptest.TestsOf(t, "bank_*", "orders", "takadas")...)
}
