package marketplacehttp_test

import (
	"testing"

	"bahi/internal/test/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }
