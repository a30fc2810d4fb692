package postgres

import (
	"os"
	"testing"

	"bahi/internal/draws"
)

func TestMain(m *testing.M) {
	draws.Default(20) // the suite follows its model three times, with a transaction for each step
	os.Exit(m.Run())
}
