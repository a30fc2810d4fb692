package audit_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

// The other tests that look at the log as a whole run so in make soak.
func TestALogAtPositionsFarApartIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.AtPositionsFarApart(t, "TestARowsProofIsForWhoMayReadTheRowAndHoldsOffline")
}
