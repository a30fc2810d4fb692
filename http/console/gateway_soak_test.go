//go:build soak

package console_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestWholeSparseLogIsRead(t *testing.T) {
	t.Parallel()
	apptest.OnEventStoreDB(t,
		"TestEventsAreFoundByEachFilter",
		"TestParkedFollowersWorkWithoutScripts")
}
