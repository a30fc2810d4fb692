package audithttp_test

import (
	"testing"

	"bahi/internal/app/apptest"
	"bahi/internal/cli"
)

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }
