package ocr

import (
	"math"
	"slices"

	"bahi/domain/ledger/khatapage"
)

const (
	mostTilt  = 6.0  // degrees
	stepTilt  = 0.25 // between the angles that are tried
	fewToTurn = 6    // words; fewer say nothing of a page's angle
)

// straight turns the words of a page that is still askew, so that lines are level and columns upright: shadows and noise hide the
// angle from [scan.straighten], which looks at the dots. The angle is the one
// at which the words' middles lie on the fewest levels: the sum of the squares of how many share one is greatest (the projection
// profile of Postl, 1986, taken of words instead of dots).
func straight(words []khatapage.Word) []khatapage.Word {
	if len(words) < fewToTurn {
		return words
	}
	heights := make([]int, len(words))
	for i, w := range words {
		heights[i] = w.Bottom - w.Top
	}
	slices.Sort(heights)
	level := float64(max(2, heights[len(heights)/2])) / 2
	best, angle := 0.0, 0.0
	for n := range int(2*mostTilt/stepTilt) + 1 {
		degrees := float64((n+1)/2) * stepTilt // 0, 0.25, -0.25, 0.5 …: a page is level unless more speaks for an angle
		if n%2 == 0 {
			degrees = -degrees
		}
		if sum := levelled(words, degrees, level); sum > best {
			best, angle = sum, degrees
		}
	}
	if angle == 0 {
		return words
	}
	turned := make([]khatapage.Word, len(words))
	sin, cos := math.Sincos(angle * math.Pi / 180)
	for i, w := range words {
		x, y := float64(w.Left+w.Right)/2, float64(w.Top+w.Bottom)/2
		right, down := int(math.Round(x*cos+y*sin-x)), int(math.Round(y*cos-x*sin-y))
		w.Left, w.Right, w.Top, w.Bottom = w.Left+right, w.Right+right, w.Top+down, w.Bottom+down
		turned[i] = w
	}
	return turned
}

// levelled returns how well the words lie on levels of a height after a turn. A word counts on the level above and below, too, by how near it is.
func levelled(words []khatapage.Word, degrees, height float64) (sum float64) {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	counts := map[int]float64{}
	for _, w := range words {
		y := (float64(w.Top+w.Bottom)/2*cos - float64(w.Left+w.Right)/2*sin) / height
		below := math.Floor(y)
		counts[int(below)] += 1 - (y - below)
		counts[int(below)+1] += y - below
	}
	for _, n := range counts {
		sum += n * n
	}
	return sum
}
