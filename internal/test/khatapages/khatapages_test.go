package khatapages_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/khatapages"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "rewrite docs/khata-page.png")

func TestShippedPageIsTheDrawnOne(t *testing.T) {
	t.Parallel()
	file, rows := khatapages.Shipped()
	if *update {
		require.NoError(t, os.WriteFile("../../../docs/khata-page.png", file, 0o644))
	}
	stored := worktest.File(t, "../../../docs/khata-page.png")
	require.Equal(t, file, stored)
	require.Len(t, rows, 4)
	require.Equal(t, "1,25,000", khatapages.Grouped(125_000))
}
