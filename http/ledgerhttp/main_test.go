package ledgerhttp_test

import (
	"testing"

	"bahi/internal/draws"
	"bahi/internal/test/apptest"
)

func TestMain(m *testing.M) {
	draws.Default(15) // each asks about a hundred times over HTTP
	apptest.Main(m)
}
