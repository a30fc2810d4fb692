package cli_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

// make soak runs the other tests of the whole log this way.
func TestALogOnEventStoreDBIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t, "TestEventsAreShownFromTheShell", "TestAParkedProjectionIsShownAndSkippedAtTheShell")
}
