package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
)

func TestALargeHeapIsCollectedAsOftenAsGoDoes(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		live    uint64
		percent int
	}{{0, 300}, {10 << 20, 300}, {32 << 20, 300}, {40 << 20, 225}, {64 << 20, 150}, {96 << 20, 100}, {1 << 40, 100}} {
		require.Equal(t, of.percent, app.GCPercentOf(of.live), "%d bytes", of.live)
	}
}
