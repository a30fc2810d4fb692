package ledgerhttp_test

import (
	"testing"

	"bahi/internal/app/apptest"
	"bahi/internal/draws"
)

func TestMain(m *testing.M) {
	draws.Default(15) // each asks about a hundred times over HTTP
	apptest.Main(m)
}
