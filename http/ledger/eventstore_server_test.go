//go:build eventstore

package ledger_test

import (
	"os"
	"testing"

	"bahi/internal/app/apptest"
)

// These tests share one system: the log has the ids of one.
func TestBankOnTheServer(t *testing.T) {
	t.Parallel()
	apptest.OnGateway(t, os.Getenv("EVENTSTORE_TEST_URL"), apptest.TestsOf(t, "bank_accounts", "bank_past", "bank_rows")...)
}
