//go:build eventstore

package app_test

import (
	"os"
	"testing"
)

// The server that EVENTSTORE_TEST_URL names is new: another deployment's log is not this one's.
func TestBooksOnTheServer(t *testing.T) {
	losesNothingWhenKilled(t, 5, "EVENTSTORE_URL="+os.Getenv("EVENTSTORE_TEST_URL"))
}
