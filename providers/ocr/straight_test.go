package ocr

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
)

func TestAPageAskewIsTurned(t *testing.T) {
	t.Parallel()
	for _, degrees := range []float64{0, 1, -1.5, 3, -5, 5} {
		var words []khatapage.Word
		sin, cos := math.Sincos(degrees * math.Pi / 180)
		for line := range 12 {
			for column := range 4 {
				x, y := float64(100+380*column), float64(200+50*line)
				left, top := int(x*cos-y*sin), int(x*sin+y*cos)
				words = append(words, khatapage.Word{Left: left, Right: left + 90, Top: top, Bottom: top + 28})
			}
		}
		turned := straight(words)
		for i, w := range turned {
			require.InDelta(t, turned[i-i%4].Top, w.Top, 8, "%v degrees: lines are level", degrees)
			require.InDelta(t, turned[i%4].Left, w.Left, 8, "%v degrees: columns are upright", degrees)
		}
	}
	few := []khatapage.Word{{Left: 1, Right: 2, Top: 3, Bottom: 4}}
	require.Equal(t, few, straight(few))
}
