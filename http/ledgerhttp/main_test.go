package ledgerhttp_test

import (
	"testing"

	"bahi/internal/draws"
	"bahi/internal/test/apptest"
)

func TestMain(m *testing.M) {
	draws.Default(15) // each makes about a hundred HTTP requests
	apptest.Main(m)
}
