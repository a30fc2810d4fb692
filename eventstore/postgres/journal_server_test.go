//go:build eventstore || soak

package postgres

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/internal/test/journaltest"
)

// TestStoreWithJournalOnTheServer runs the suite with a journal in the server of EVENTSTORE_TEST_URL, otherwise in a gateway. Each node has
// its own connection.
func TestStoreWithJournalOnTheServer(t *testing.T) {
	address := os.Getenv("EVENTSTORE_TEST_URL")
	if address == "" {
		address = journaltest.Served(t, newStore(t, newLog(t)))
	}
	url, server := newLog(t), connected(t, address)
	t.Run("suite", func(t *testing.T) {
		suite{Open: func(t testing.TB) (eventstore.Store, func()) {
			s := journaled(t, url, connected(t, address))
			return s, s.Close
		}}.run(t)
	})
	require.NotEmpty(t, mirrored(t, journaled(t, url, server), server))
}
