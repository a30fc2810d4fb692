//go:build eventstore

package postgres

import (
	"os"
	"testing"
)

func TestStoreWithJournalOnTheServer(t *testing.T) {
	holdsWithJournal(t, os.Getenv("EVENTSTORE_TEST_URL"))
}
