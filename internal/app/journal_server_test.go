//go:build eventstore

package app_test

import (
	"os"
	"testing"
)

func TestBooksOnTheServer(t *testing.T) {
	losesNothingWhenKilled(t, 5, "EVENTSTORE_URL="+os.Getenv("EVENTSTORE_TEST_URL"))
}
