package ledgerhttp_test

import (
	"testing"

	"bahi/internal/test/apptest"
)

// The other tests run so in make soak.
func TestALedgerWithAJournalIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnJournal(t, "", "TestALedgerIsReadByDatesPagesAndAsItWasKnown")
}
