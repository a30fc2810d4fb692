package console_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

// The other tests of whole logs run on a sparse log only in make soak.
func TestSparseLogIsReadAndWritten(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t, "TestEventsAreFoundByEachFilter")
}
