package ledger_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

// The other tests run so in make soak.
func TestALogInAnotherProcessIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.InAnotherProcess(t, "TestALedgerIsReadByDatesPagesAndAsItWasKnown")
}

// The other tests that look at the log as a whole run so in make soak.
func TestALogOnEventStoreDBIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t, "TestALedgerIsReadByDatesPagesAndAsItWasKnown")
}
