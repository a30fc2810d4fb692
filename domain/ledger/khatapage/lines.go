package khatapage

import (
	"slices"
	"strings"
)

// linesOf groups words into lines from top to bottom, and each line from left to right. It drops words with a low
// confidence and ruled lines that were read as text.
func linesOf(words []Word) (lines [][]Word) {
	var kept, signs []Word
	var heights []int
	for _, w := range words {
		w.Text = normal(w.Text)
		if w.Text == "-" || w.Text == "/" {
			signs = append(signs, w)
		}
		if w.Confidence < minConfidence && digits(w.Text) == 0 && !marks(w.Text) || strings.Trim(w.Text, "|[]{}_-—=~.:;'`()<>\\/!*") == "" &&
			!isDitto(w.Text) {
			continue
		}
		w.Text = strings.Trim(w.Text, "|[]{}_~")
		kept = append(kept, w)
		heights = append(heights, w.Bottom-w.Top)
	}
	if len(kept) == 0 {
		return nil
	}
	slices.Sort(heights)
	height := max(1, heights[len(heights)/2])
	signed(kept, signs)
	slope := slopes(kept, height)
	middleOf := func(w Word) int { return (w.Top+w.Bottom)/2 - slope(w) }
	slices.SortStableFunc(kept, func(a, b Word) int { return middleOf(a) - middleOf(b) })
	type group struct {
		words []Word
		sum   int // of middles
	}
	var groups []*group
	for _, w := range kept {
		middle := middleOf(w)
		var near *group
		for _, g := range groups[max(0, len(groups)-2):] {
			if distance := abs(middle - g.sum/len(g.words)); 5*distance < 3*height {
				near = g
			}
		}
		if near == nil {
			near = &group{}
			groups = append(groups, near)
		}
		near.words, near.sum = append(near.words, w), near.sum+middle
	}
	for _, g := range groups {
		slices.SortStableFunc(g.words, func(a, b Word) int { return a.Left - b.Left })
		lines = append(lines, g.words)
	}
	return lines
}

// marks reports whether a word describes the text beside or below it. Such a word is used at any confidence, because a total without it
// would become an entry.
func marks(text string) bool {
	word := folded(text)
	return headers[word] != "" || parties[word] != "" || totals[word] != "" || openings[word] != ""
}

func abs(n int) int { return max(n, -n) }

// column is a column of a side that a header names.
type column struct {
	kind        string
	left, right int
}

// layout has the sides and columns of a page.
type layout struct {
	boundary            int // words to its right are on the right side
	leftSide, rightSide string
	columns             []column
	guessed             bool             // no header names the sides
	unread              bool             // the name of one of two sides was not read
	shared              bool             // the right side has only numbers, and the dates and texts of the left side apply to both
	edges               map[string][]int // right edges of numbers with a known kind, by kind
	groups              int              // number of grouped numbers
}

// split splits a line into the words of the two sides.
func (l *layout) split(line []Word) (left, right []Word) {
	for i, w := range line {
		if w.middle() >= l.boundary {
			return line[:i], line[i:]
		}
	}
	return line, nil
}

// layout finds the sides and columns by header words, or else by the gap between the sides.
func (r *reader) layout(p Page, lines [][]Word) *layout {
	l := &layout{leftSide: In, rightSide: Out}
	if r.OutLeft {
		l.leftSide, l.rightSide = Out, In
	}
	l.boundary = p.Width + 1 // one side
	var in, out *Word
	below := 0 // index of the first line below the headings
	for i, line := range lines {
		if !r.isHeader(line) {
			continue
		}
		below = i + 1
		for i, kind := range kindsOf(line) {
			switch w := line[i]; {
			case kind == In && in == nil:
				in = new(w)
			case kind == Out && out == nil:
				out = new(w)
			case kind != "" && kind != In && kind != Out:
				l.head(kind, w, i > 0 && w.Left-line[i-1].Right < w.Bottom-w.Top)
			}
		}
	}
	between := l.repeats()
	switch {
	case in != nil && out != nil:
		l.leftSide, l.rightSide = In, Out
		first, second := in, out
		if out.Left < in.Left {
			l.leftSide, l.rightSide, first, second = Out, In, out, in
		}
		l.boundary = boundary(lines, lines[below:], first.Right, second.Left, (first.Right+second.Left)/2)
	case (in != nil || out != nil) && between != nil:
		side, other, name := In, Out, in
		if in == nil {
			side, other, name = Out, In, out
		}
		l.boundary = boundary(lines, lines[below:], between.left, between.right, between.middle())
		if l.leftSide, l.rightSide = side, other; name.middle() >= l.boundary {
			l.leftSide, l.rightSide = other, side
		}
		l.unread = true
		r.warnf("the name of one of the two sides was not read, it is taken for %s", other)
	case in != nil:
		l.leftSide, l.rightSide = In, In
	case out != nil:
		l.leftSide, l.rightSide = Out, Out
	default:
		l.guessed, l.unread = true, len(l.columns) > 0 // a heading that has names of columns also has those of the sides
		if r.twoSided(p, lines) {
			l.boundary = boundary(lines, lines, p.Width*35/100, p.Width*65/100, p.Width/2)
		}
		r.warnf("no column header found, sides taken from position")
	}
	l.shared = l.sharesTexts(lines[below:])
	l.learn(lines[below:])
	// The names of the sides may be headings of single columns of numbers.
	if len(l.columns) > 0 && !l.named(amountColumn) && !l.named(weightColumn) {
		for _, name := range []*Word{in, out} {
			if name != nil {
				l.columns = append(l.columns, column{amountColumn, name.Left, name.Right})
			}
		}
	}
	return l
}

// repeats returns the band between two sides whose headings begin with the same kind of column, or nil.
func (l *layout) repeats() *band {
	columns := slices.SortedFunc(slices.Values(l.columns), func(a, b column) int { return a.left - b.left })
	for i := 2; i < len(columns); i++ {
		if columns[i].kind == columns[0].kind && columns[0].kind != otherColumn {
			return &band{columns[i-1].right, columns[i].left}
		}
	}
	return nil
}

// order is the usual order of columns.
var order = []string{dateColumn, itemColumn, weightColumn, touchColumn, fineColumn, amountColumn}

// kindsOf returns the kinds of a header's words. An unknown word gets the only kind that is missing between its
// neighbours.
func kindsOf(line []Word) []string {
	kinds := make([]string, len(line))
	for i, w := range line {
		kinds[i] = headerOf(w.Text)
	}
	for i := range kinds {
		if kinds[i] != "" || i == 0 {
			continue
		}
		before := slices.Index(order, kinds[i-1])
		after := len(order)
		if i+1 < len(kinds) && slices.Index(order, kinds[i+1]) > before {
			after = slices.Index(order, kinds[i+1])
		}
		if before >= 0 && after == before+2 {
			kinds[i] = order[before+1]
		}
	}
	known := 0
	for _, kind := range kinds {
		if slices.Contains(order, kind) {
			known++
		}
	}
	for i, w := range line {
		if known > 1 && kinds[i] == "" && letters(w.Text) > 1 && unitOf(w.Text) == "" {
			kinds[i] = otherColumn
		}
	}
	return kinds
}

func (l *layout) named(kind string) bool {
	return slices.ContainsFunc(l.columns, func(c column) bool { return c.kind == kind })
}

// band is a vertical strip of a page that few words cover.
type band struct{ left, right int }

func (b band) middle() int { return (b.left + b.right) / 2 }

// maxBands is greater than the number of a page's columns.
const maxBands = 16

// bands returns the widest bands between two x positions, the widest first.
func bands(lines [][]Word, from, to int) (all []band) {
	if to <= from {
		return nil
	}
	covered := make([]int, to-from)
	for _, line := range lines {
		for _, w := range line {
			for x := max(w.Left, from); x < min(w.Right, to); x++ {
				covered[x-from]++
			}
		}
	}
	few := len(lines) / 10 // titles extend across bands
	start := -1
	for x := range len(covered) + 1 {
		free := x < len(covered) && covered[x] <= few
		switch {
		case free && start < 0:
			start = x
		case !free && start >= 0:
			all = append(all, band{from + start, from + x})
			start = -1
		}
	}
	slices.SortStableFunc(all, func(a, b band) int { return (b.right - b.left) - (a.right - a.left) })
	return all[:min(len(all), maxBands)]
}

// boundary returns the x position between the sides of entries: the middle of the band that splits the fewest entries, and of several such
// bands the widest. Without bands it returns otherwise. The widest of all bands may be between the texts and the numbers of a side.
func boundary(lines, entries [][]Word, from, to, otherwise int) int {
	best, most := otherwise, 0
	for i, b := range bands(lines, from, to) {
		whole := 0
		for _, line := range entries {
			left, right := (&layout{boundary: b.middle()}).split(line)
			of := wholeness(right)
			if of > 0 && isNumber(right[0]) { // it may belong to the other side
				of = 0
			}
			if len(left) > 0 && likeDate(left[len(left)-1].Text) { // it begins an entry
				of--
			}
			whole += wholeness(left) + of
		}
		if i == 0 || whole > most {
			best, most = b.middle(), whole
		}
	}
	return best
}

// wholeness returns 1 for words that form an entry, with a number and a text or date. It returns 0 for no words, else -1.
func wholeness(words []Word) int {
	text, numbers := false, false
	for _, w := range words {
		if isNumber(w) {
			numbers = true
		} else {
			text = text || unitOf(w.Text) == ""
		}
	}
	switch {
	case text && numbers:
		return 1
	case len(words) == 0:
		return 0
	}
	return -1
}

// isNumber reports whether a word is a number and no date.
func isNumber(w Word) bool {
	_, is := number(w, false)
	return is && !isDate(w.Text)
}

// twoSided reports whether an unmarked page has entries on both halves: parts of lines on the right half begin with texts or dates.
func (r *reader) twoSided(p Page, lines [][]Word) bool {
	middle := boundary(lines, nil, p.Width*35/100, p.Width*65/100, p.Width/2)
	both, right := 0, 0
	for _, line := range lines {
		var begins, texts bool
		for i, w := range line {
			if w.middle() < middle {
				continue
			}
			begins = begins || isDate(w.Text) || isDitto(w.Text) && (i == 0 || line[i-1].middle() < middle)
			texts = texts || letters(w.Text) > 1 && unitOf(w.Text) == ""
		}
		if texts || begins {
			right++
		}
		if texts && begins {
			both++
		}
	}
	for _, c := range header(lines) {
		if c.middle() >= middle && (headerOf(c.Text) == dateColumn || headerOf(c.Text) == itemColumn) {
			return true
		}
	}
	return both > 0 || 3*right > 2*len(lines)
}

// header returns the words of the first header line.
func header(lines [][]Word) []Word {
	for _, line := range lines {
		if (&reader{}).isHeader(line) {
			return line
		}
	}
	return nil
}

// isHeader reports whether a line has the names of sides or columns, and no entry.
func (r *reader) isHeader(line []Word) bool {
	headers, others := 0, 0
	for i, w := range line {
		switch {
		case headerOf(w.Text) != "":
			if strings.HasSuffix(w.Text, ":") && i+1 < len(line) { // "नाम: इमरान" names a party
				return false
			}
			headers++
		case digits(w.Text) > 0:
			return false
		case letters(w.Text) > 0:
			others++
		}
	}
	return headers > 0 && headers >= others
}
