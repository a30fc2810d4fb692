package ocr

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/khatatest"
)

func TestTheAngleOfAPageIsFound(t *testing.T) {
	t.Parallel()
	for _, degrees := range []float64{0, -2, 3, 5, -5} {
		file, _ := khatatest.Page(5, khatatest.Style{Sides: 1, Headers: true, Rows: 10, Skew: degrees, Noise: 20, Quality: 60, Shadow: true, Party: "Imran"})
		s, err := decode(JPEG, file)
		require.NoError(t, err)
		require.InDelta(t, math.Abs(degrees), math.Abs(s.skew()), 0.3)
		s.straighten()
		require.InDelta(t, 0, s.skew(), 0.3, "after %v degrees", degrees)
	}
}
