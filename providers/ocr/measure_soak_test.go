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
	clean, noisy := styles()
	for name, of := range map[string]struct {
		styles []khatapages.Style
		least  int
	}{"clean": {clean, 99}, "noisy": {noisy, 95}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sum result
			for i, s := range of.styles {
				sum = sum.Plus(score(t, r, uint64(i+1), s))
			}
			t.Log(name, sum)
			require.GreaterOrEqual(t, sum.Recall(), of.least, sum)
			require.GreaterOrEqual(t, sum.Precision(), of.least, sum)
			require.LessOrEqual(t, sum.Wrong, sum.Read/1000, sum)
		})
	}
}

// styles are the looks of the measured pages: clean and noisy ones.
func styles() (clean, noisy []khatapages.Style) {
	for script := khatapages.Latin; script <= khatapages.Gujarati; script++ {
		for _, sides := range []int{1, 2} {
			for n := range 5 {
				s := khatapages.Style{Script: script, Sides: sides, Headers: n != 4, Digits: n == 1, Ditto: n == 2 || n == 3, Rows: 22 + 3*n,
					Party: "Imran",
					Close: n == 3}
				clean = append(clean, s)
				s.Skew, s.Noise, s.Quality, s.Shadow, s.Speckle = []float64{-5, 3, 1.5, -2, 5}[n], 20+5*n, 60, n%2 == 0, 20*(n%3)
				noisy = append(noisy, s)
			}
		}
	}
	return clean, noisy
}
