//go:build soak

package ocr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/khatapages"
)

// Sixty pages: thirty clean ones, and the same pages skewed, noisy, shadowed and compressed.
func TestSixtyPagesAreReadAsPromised(t *testing.T) {
	t.Parallel()
	r := reader(t)
	clean, noisy := khatapages.Styles()
	for name, of := range map[string]struct {
		styles []khatapages.Style
		least  int
	}{"clean": {clean, 98}, "noisy": {noisy, 90}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sum khatapages.Score
			for i, s := range of.styles {
				sum = sum.Plus(score(t, r, uint64(i+1), s))
			}
			t.Log(name, sum)
			require.GreaterOrEqual(t, sum.Recall(), of.least, sum)
			require.GreaterOrEqual(t, sum.Precision(), of.least, sum)
			require.LessOrEqual(t, sum.Wrong, sum.Read/100, sum)
		})
	}
}
