package khatapage

import "slices"

// head adds a heading. If joins is true, it may be part of the previous heading, as in "Gross Wt", "Fine Wt" and "Cash Rs".
func (l *layout) head(kind string, w Word, joins bool) {
	if n := len(l.columns); joins && n > 0 && w.Left > l.columns[n-1].right {
		last := &l.columns[n-1]
		if kind == otherColumn || last.kind == otherColumn || kind == last.kind || last.kind == fineColumn && kind == weightColumn {
			if last.right = w.Right; last.kind == otherColumn {
				last.kind = kind
			}
			return
		}
	}
	l.columns = append(l.columns, column{kind, w.Left, w.Right})
}

// sharesTexts reports whether few lines have a text or a date at the right.
func (l *layout) sharesTexts(lines [][]Word) bool {
	texts, all := 0, 0
	for _, line := range lines {
		if _, right := l.split(line); len(right) > 0 {
			all++
			if slices.ContainsFunc(right, func(w Word) bool {
				return isDate(w.Text) || isDitto(w.Text) || !isNumber(w) && letters(w.Text) > 1 && unitOf(w.Text) == ""
			}) {
				texts++
			}
		}
	}
	return 4*texts < all
}

// apart splits headings that text recognition joined, as in "TouchFine".
func apart(line []Word) []Word {
	var all []Word
	for _, w := range line {
		runes := []rune(w.Text)
		cuts := cutsOf(runes)
		if headerOf(w.Text) != "" || cuts == nil {
			all = append(all, w)
			continue
		}
		from := 0
		for _, to := range append(cuts, len(runes)) {
			piece := w
			piece.Text = string(runes[from:to])
			piece.Left, piece.Right = w.Left+(w.Right-w.Left)*from/len(runes), w.Left+(w.Right-w.Left)*to/len(runes)
			all, from = append(all, piece), to
		}
	}
	return all
}

// cutsOf returns the indexes that split a text into headings, or nil.
func cutsOf(text []rune) []int {
	for cut := len(text) - 2; cut >= 2; cut-- {
		if headerOf(string(text[:cut])) == "" {
			continue
		}
		rest := string(text[cut:])
		if headerOf(rest) != "" {
			return []int{cut}
		}
		if cuts := cutsOf([]rune(rest)); cuts != nil {
			all := []int{cut}
			for _, c := range cuts {
				all = append(all, cut+c)
			}
			return all
		}
	}
	return nil
}

// learn records the right edges of numbers with a unit, with groups, or confirmed by others.
func (l *layout) learn(lines [][]Word) {
	l.edges = map[string][]int{}
	for _, line := range lines {
		left, right := l.split(line)
		for _, side := range [][]Word{left, right} {
			var numbers []amountOf
			for _, w := range side {
				if n, ok := number(w, false); ok && !isDate(w.Text) {
					numbers = append(numbers, n)
				}
			}
			numbers, _ = prove(numbers)
			for _, n := range numbers {
				if n.grouped {
					l.groups++
				}
				if n.unit == "rs" || n.grouped && !n.proven && n.places != 3 {
					n.kind = amountColumn
				}
				if n.kind != "" {
					l.edges[n.kind] = append(l.edges[n.kind], n.Right)
				}
			}
		}
	}
}

// learned returns the only kind of numbers with the right edge of w, or "" for none or several. On a page with only amounts, a number with
// paise is an amount.
func (l *layout) learned(w amountOf) (kind string) {
	if len(l.edges) == 1 && l.edges[amountColumn] != nil && w.places == 2 {
		return amountColumn
	}
	for _, k := range order[2:] {
		if slices.ContainsFunc(l.edges[k], func(edge int) bool { return 2*abs(edge-w.Right) < w.Bottom-w.Top }) {
			if kind != "" {
				return ""
			}
			kind = k
		}
	}
	return kind
}
