//go:build eventstore

package esdb_test

import (
	"os"
	"testing"

	"bahi/eventstore/storetest"
)

func TestStoreOnTheServer(t *testing.T) {
	storetest.Run(t, suiteOf(os.Getenv("EVENTSTORE_TEST_URL")))
}
