package knowledge

import (
	"bahi/domain/messaging/botsource"
)

// columnsOf returns the names of a table's columns, and its rows. It adds the names in a second row to the names above.
func columnsOf(table [][]botsource.Cell) (names []botsource.Cell, body [][]botsource.Cell) {
	names, body = table[0], table[1:]
	for _, row := range body {
		if len(row) > len(names) && row[0].To <= names[0].From { // the first column has no name
			names = append([]botsource.Cell{{From: row[0].From, To: row[0].To}}, names...)
		}
	}
	if len(body) == 1 || !subheads(names, body[0]) {
		return names, body
	}
	return joined(names, body[0]), body[1:]
}

// subheads reports whether a row has column names below other names. Such names repeat, as "Cash ₹" below both IN and OUT, or two of them
// are below one name.
func subheads(names, row []botsource.Cell) bool {
	seen, under := map[string]bool{}, map[int]bool{}
	for _, f := range row {
		if digits.MatchString(f.Text) {
			return false
		}
		seen[f.Text], under[nearest(names, f)] = true, true
	}
	return min(len(seen), len(under)) < len(row)
}

// joined returns the names of a second row combined with the names above.
func joined(names, second []botsource.Cell) []botsource.Cell {
	var all []botsource.Cell
	for i, name := range names {
		var below []botsource.Cell
		for _, f := range second {
			if nearest(names, f) == i && f.Text != name.Text {
				below = append(below, botsource.Cell{Text: name.Text + " " + f.Text, From: f.From, To: f.To})
			}
		}
		if len(below) == 1 {
			below[0].From, below[0].To = min(below[0].From, name.From), max(below[0].To, name.To)
		}
		if len(below) == 0 {
			below = []botsource.Cell{name}
		}
		all = append(all, below...)
	}
	return all
}
