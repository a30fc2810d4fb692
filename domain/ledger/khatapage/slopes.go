package khatapage

// signed adds a sign to a number if the sign or a date with a sign is directly before it.
func signed(words, signs []Word) {
	for _, sign := range signs {
		for i, w := range words {
			height := w.Bottom - w.Top
			if gap := w.Left - sign.Right; gap >= 0 && gap < height && sign.middleY() > w.Top && sign.middleY() < w.Bottom && w.Text != "" &&
				digits(w.Text[:1]) > 0 {
				words[i].Text, words[i].Left = sign.Text+w.Text, sign.Left
			}
		}
	}
}

// The maximum slope of lines in thousandths of their length, and the minimum number of words that determine it.
const (
	steepest  = 60
	fewToTilt = 16
)

// slopes returns a function with the vertical shift of a word's line at the word. Lines of a photographed page may be neither level nor
// parallel. So the upper and the lower half each have the slope at which the greatest number of words share lines.
func slopes(words []Word, height int) func(Word) int {
	top, bottom := words[0].Top, words[0].Bottom
	for _, w := range words {
		top, bottom = min(top, w.Top), max(bottom, w.Bottom)
	}
	var halves [2][]Word
	for _, w := range words {
		halves[min(2*(w.middleY()-top)/max(1, bottom-top), 1)] = append(halves[min(2*(w.middleY()-top)/max(1, bottom-top), 1)], w)
	}
	upper, lower := slopeOf(halves[0], height), slopeOf(halves[1], height)
	if len(halves[0]) < fewToTilt || len(halves[1]) < fewToTilt || abs(upper-lower) > steepest/2 {
		upper = slopeOf(words, height)
		lower = upper
	}
	return func(w Word) int {
		// The slopes apply to the middles of the halves, a quarter of the page from its ends.
		page := max(1, bottom-top)
		twice := 2*upper*page + (lower-upper)*(4*(w.middleY()-top)-page)
		return twice * w.middle() / (2 * page * 1000)
	}
}

// slopeOf returns the slope that best concentrates the middles of the words in rows, or 0 if no slope is clearly better.
func slopeOf(words []Word, height int) int {
	if len(words) < fewToTilt {
		return 0
	}
	score := func(slope int) (sum int) {
		rows := map[int]int{}
		for _, w := range words {
			row := (4*(w.middleY()*1000-slope*w.middle()) + 1000*height/2) / (1000 * height)
			rows[row]++
		}
		for row, n := range rows {
			sum += n * (n + rows[row+1])
		}
		return sum
	}
	level := score(0)
	best, most := 0, level+level/8
	for slope := -steepest; slope <= steepest; slope++ {
		if n := score(slope); n > most {
			best, most = slope, n
		}
	}
	return best
}
