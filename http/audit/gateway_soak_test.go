//go:build soak

package audit_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestWholeLogIsReadAtSparsePositions(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t,
		"TestRowProofVerifiesOfflineForReadersOfTheRow",
		"TestBackDatedChangesRestateClosingBalances",
		"TestTrailBeforeTheFirstEventSaysSo",
		"TestAuditorsSeeTheirWorkspaceAndOperatorsAll",
		"TestEventStreamResumesAfterTheLastEvent",
		"TestLogIsSignedAndProvedInEveryStore",
		"TestTrailPDFNamesItsStoreAndPosition",
		"TestTrailFiltersByRecordPartyUserAndDay",
		"TestTrailShowsOrdersAndTakadasAlsoWhereAnotherRecordEndedThem",
		"TestTheTrailIsWrittenFromTheShell",
		"TestTrailShowsActorChangeAndReason")
}
