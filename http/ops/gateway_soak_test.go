//go:build soak

package ops_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestWholeSparseLogIsRead(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t,
		"TestParkedEventIsShownAndSkipped",
		"TestProjectionIsRebuiltOverHTTP",
		"TestPausedProjectionIsReportedAndResponsesAreStale")
}
