//go:build eventstore

package ledgerhttp_test

import (
	"os"
	"testing"

	"bahi/internal/test/apptest"
)

func TestBankOnTheServer(t *testing.T) {
	t.Parallel()
	apptest.OnJournal(t, os.Getenv("EVENTSTORE_TEST_URL"), apptest.TestsOf(t, "bank_past", "bank_rows")...)
}
