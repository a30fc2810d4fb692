package opshttp_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }
