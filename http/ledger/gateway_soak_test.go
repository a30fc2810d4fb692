//go:build soak

package ledger_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestAllIsKeptInALogInAnotherProcess(t *testing.T) {
	t.Parallel()
	apptest.InAnotherProcess(t, apptest.TestsOf(t, "bank_*", "books_lock", "orders", "takadas")...)
}

func TestTheWholeLogIsReadOnEventStoreDB(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t,
		"TestADeletedAccountIsGoneWithItsRowsButNotFromThePast",
		"TestALedgerIsReadByDatesPagesAndAsItWasKnown",
		"TestRowsArePostedTogether",
		"TestWhatIsLockedStaysAsItIs",
		"TestAStatementAsKnownIsAlwaysTheSame",
		"TestAnOrderIsAddedChangedDeliveredAndDeleted",
		"TestTheHistoryOfAnOrderOutlivesIt",
		"TestOrdersAreDrawn",
		"TestATakadaIsAddedChangedMovedAndListed")
}
