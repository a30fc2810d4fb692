package knowledge

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columnsOf returns the names of a table's columns, and its rows. It splits adjacent names at the borders of the cells below, and adjacent
// cells like the cells of other rows. It adds the names in a second row to the names above.
func columnsOf(table [][]field) (names []field, body [][]field) {
	names, body = table[0], table[1:]
	var second []field
	if subheads(body[0]) && len(body) > 1 {
		second, body = body[0], body[1:]
	}
	columns := bands(append(slices.Clone(body), second))
	var parted []field
	for i, name := range names {
		below := slices.DeleteFunc(slices.Clone(columns), func(c field) bool { return nearest(names, c) != i })
		parted = append(parted, part(name, below)...)
	}
	if second != nil {
		parted = joined(parted, second)
	}
	return parted, apart(parted, body)
}

// subheads reports whether a row has column names below other names. Such names repeat, as "Cash ₹" below both IN and OUT.
func subheads(row []field) bool {
	seen := map[string]bool{}
	for _, f := range row {
		if digits.MatchString(f.text) {
			return false
		}
		seen[f.text] = true
	}
	return len(seen) < len(row)
}

// bands returns the horizontal ranges of cells that are below each other, from left to right. It ignores cells with a single sign, such as
// a currency.
func bands(table [][]field) (all []field) {
	for _, f := range slices.SortedFunc(slices.Values(slices.Concat(table...)), func(a, b field) int { return cmp.Compare(a.from, b.from) }) {
		if !digits.MatchString(f.text) && utf8.RuneCountInString(f.text) <= len("Rs.") {
			continue
		}
		if n := len(all) - 1; n >= 0 && f.from < all[n].to {
			all[n].to = max(all[n].to, f.to)
			continue
		}
		all = append(all, field{from: f.from, to: f.to})
	}
	return all
}

// part splits a name between words into one name for each column below, as near as possible to the columns' edges.
func part(name field, below []field) []field {
	words := wordsAt(name)
	if len(below) < minColumns || len(words) < len(below) {
		return []field{name}
	}
	best, least := []field(nil), [2]int{}
	for first := 1; first <= len(words)-len(below)+1; first++ {
		if strings.HasPrefix(words[first].text, "(") { // it belongs to the previous word
			continue
		}
		head, rest := cutAt(name, words[first])
		parts := append([]field{head}, part(rest, below[1:])...)
		if len(parts) < len(below) {
			continue
		}
		var off [2]int
		for i, p := range parts {
			from, to := distance(p.from, below[i].from), distance(p.to, below[i].to)
			off[0], off[1] = off[0]+min(from, to), off[1]+from+to
		}
		if best == nil || slices.Compare(off[:], least[:]) < 0 {
			best, least = parts, off
		}
	}
	if best == nil {
		return []field{name}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// cutAt splits a cell before one of its words.
func cutAt(f, word field) (head, rest field) {
	size, runes := word.from-f.from, []rune(f.text)
	return field{strings.TrimSpace(string(runes[:size])), f.from, word.from - 1}, field{string(runes[size:]), word.from, f.to}
}

// wordsAt returns the words of a cell with their positions.
func wordsAt(f field) (all []field) {
	at := f.from
	for word := range strings.SplitSeq(f.text, " ") {
		to := at + utf8.RuneCountInString(word)
		all = append(all, field{word, at, to})
		at = to + 1
	}
	return all
}

// joined returns the names of a second row combined with the names above.
func joined(names, second []field) []field {
	var all []field
	for i, name := range names {
		var below []field
		for _, f := range second {
			if nearest(names, f) == i {
				below = append(below, field{name.text + " " + f.text, f.from, f.to})
			}
		}
		if len(below) == 1 {
			below[0].from, below[0].to = min(below[0].from, name.from), max(below[0].to, name.to)
		}
		if len(below) == 0 {
			below = []field{name}
		}
		all = append(all, below...)
	}
	return all
}

// apart splits cells between words if both parts have the form of cells in the same two columns of other rows.
func apart(names []field, body [][]field) [][]field {
	looks := make([]map[string]bool, len(names))
	for i := range looks {
		looks[i] = map[string]bool{}
	}
	for _, row := range body {
		for _, f := range row {
			looks[nearest(names, f)][shape(f.text)] = true
		}
	}
	out := slices.Clone(body)
	for n, row := range body {
		for i, f := range row {
			column := nearest(names, f)
			if len(row) >= len(names) || column+1 == len(names) || i+1 < len(row) && nearest(names, row[i+1]) == column+1 {
				continue
			}
			for _, word := range wordsAt(f)[1:] {
				head, tail := cutAt(f, word)
				if looks[column][shape(head.text)] && looks[column+1][shape(tail.text)] {
					tail.from, tail.to = names[column+1].from, names[column+1].to
					out[n] = slices.Concat(row[:i], []field{head, tail}, row[i+1:])
				}
			}
		}
	}
	return out
}

// shape returns the form of a cell: its pattern of letters, digits and signs.
func shape(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsDigit(c):
			return '0'
		case unicode.IsLetter(c):
			return 'a'
		default:
			return c
		}
	}, text)
}
