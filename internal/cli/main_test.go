package cli_test

import (
	"testing"

	"bahi/internal/cli"
	"bahi/internal/test/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }
