//go:build soak

package app_test

import (
	"testing"

	"bahi/internal/test/apptest"
)

func TestNodesWithAJournalTakeOverFromEachOther(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	store := apptest.ServeGateway(t, apptest.EventStore(t, data), data)
	failOver(t, &nodes{t: t, database: apptest.Migrated(t), log: store.Connection(apptest.OperatorKey)})
}

func TestKilledServerWithAJournalLosesNothing(t *testing.T) {
	t.Parallel()
	losesNothingWhenKilled(t, 2, "EVENTSTORE_URL="+journalServer(t))
}
