package ocr

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
	"bahi/internal/test/khatapages"
)

func TestTheAngleOfAPageIsFound(t *testing.T) {
	t.Parallel()
	for _, degrees := range []float64{0, -2, 3, 5, -5} {
		file, _ := khatapages.Page(5, khatapages.Style{Sides: 1, Headers: true, Rows: 10, Skew: degrees, Noise: 20, Quality: 60, Shadow: true,
			Party: "Imran"})
		s, err := decode(JPEG, file)
		require.NoError(t, err)
		require.InDelta(t, math.Abs(degrees), math.Abs(s.skew()), 0.3)
		s.straighten()
		require.InDelta(t, 0, s.skew(), 0.3, "after %v degrees", degrees)
	}
}

func TestATurnedPageKeepsItsCornersAndWordsAtItsEdgesAreMarked(t *testing.T) {
	t.Parallel()
	s := &scan{width: 300, height: 400, pix: bytes.Repeat([]byte{255}, 300*400)}
	for _, at := range []int{0, 299, 399 * 300, 400*300 - 1} {
		s.pix[at] = 0
	}
	picture := *s
	s.turn(5)
	corners := map[[2]bool]bool{}
	for at, v := range s.pix {
		if v < 200 {
			corners[[2]bool{at%s.width > s.width/2, at/s.width > s.height/2}] = true
		}
	}
	require.Len(t, corners, 4)
	s.picture, s.angle = &picture, 5
	words := []khatapage.Word{
		{Left: 40, Right: 100, Top: 30, Bottom: 40}, {Left: 200, Right: 320, Top: 30, Bottom: 40}, {Left: 5, Right: 60, Top: 380, Bottom: 390},
		{Left: 200, Right: 300, Top: 380, Bottom: 390}, {Left: 200, Right: 325, Top: 380, Bottom: 390},
	}
	s.markCut(words)
	var cut []bool
	for _, w := range words {
		cut = append(cut, w.Cut)
	}
	require.Equal(t, []bool{false, true, true, false, true}, cut)
}

func TestAPhotoIsReadUpright(t *testing.T) {
	t.Parallel()
	file, _ := khatapages.Page(5, khatapages.Style{Sides: 1, Headers: true, Rows: 3, Quality: 60})
	straight, err := decode(JPEG, file)
	require.NoError(t, err)
	for _, orientation := range []byte{3, 6, 8} {
		turned, err := decode(JPEG, khatapages.Photo(file, orientation))
		require.NoError(t, err)
		for _, at := range [][2]int{{200, 300}, {1100, 131}, {17, 1000}} { // of the camera's picture
			x, y := at[0], at[1]
			switch orientation {
			case 3:
				x, y = straight.width-1-x, straight.height-1-y
			case 6:
				x, y = straight.height-1-y, x
			case 8:
				x, y = y, straight.width-1-x
			}
			require.Equal(t, straight.at(at[0], at[1]), turned.at(x, y), "orientation %d", orientation)
		}
		if orientation != 3 {
			require.Equal(t, []int{straight.height, straight.width}, []int{turned.width, turned.height})
		}
	}
}
