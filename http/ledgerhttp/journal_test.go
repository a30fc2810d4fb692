package ledgerhttp_test

import (
	"testing"

	"bahi/internal/test/apptest"
)

// `make soak` runs the other tests with a journal, too.
func TestALedgerWithAJournalIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnJournal(t, "", "TestAccountsAndRowsAreReadAsOfADateAndAsTheyWereKnown")
}
