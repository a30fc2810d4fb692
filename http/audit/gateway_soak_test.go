//go:build soak

package audit_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestTheWholeLogIsReadAtPositionsFarApart(t *testing.T) {
	t.Parallel()
	apptest.AtPositionsFarApart(t,
		"TestARowsProofIsForWhoMayReadTheRowAndHoldsOffline",
		"TestBackDatedChangesAreShownWithTheClosingBalancesThatTheyMoved",
		"TestATrailFromBeforeTheFirstEventSaysSo",
		"TestAuditorsSeeTheirWorkspaceAndOperatorsAll",
		"TestEventsAreFollowedFromWhereTheClientWas",
		"TestTheLogIsSignedAndProvedWhereverItIs",
		"TestTheTrailAsPDFSaysWhereItWasDrawnFrom",
		"TestTheTrailIsNarrowedByRecordPartyUserAndDay",
		"TestTheTrailIsWrittenFromTheShell",
		"TestTheTrailTellsWhoChangedWhatFromWhatToWhatAndWhy")
}
