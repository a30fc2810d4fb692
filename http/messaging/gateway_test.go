package messaging_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestALogOnEventStoreDBIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t, "TestAKeySendsOnceWhateverTheNetworkDoes")
}
