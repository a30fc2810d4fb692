package http_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

// The other tests run so in make soak.
func TestALogInAnotherProcessIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.InAnotherProcess(t, "TestEveryReadSeesWhatWasAnsweredBefore")
}
