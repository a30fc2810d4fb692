package khatapage

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"bahi/domain/unit"
)

// cell is what a line has on one side.
type cell struct {
	words []Word
	raw   string
	text  string // without numbers
	date  *unit.Date
	dated bool // a date or ditto mark is at the beginning
	ditto bool // a ditto mark is in the text's place

	weight, fine *unit.Grams
	touch        *unit.Percent
	amount       *unit.Money
	numbers      int

	inferred bool // no header names the columns of the numbers
	doubtful bool // a number was hard to read, or the fine weight does not follow
	struck   bool

	total, opening bool
}

func (c cell) numbersOnly() bool { return c.numbers > 0 && c.text == "" && !c.dated && !c.ditto }

// amountOf is a number of a cell.
type amountOf struct {
	Word

	thousandths int64
	unit        string // g, kg, rs, %; "": none
	grouped     bool   // it has groups as amounts have, or ends in /-
	doubtful    bool
	kind        string // the column
	repeats     bool   // a ditto mark
}

// cell reads the words of a line on one side.
func (r *reader) cell(l *layout, side string, words []Word) (c cell) {
	words = joined(words)
	c.words = words
	var raw, text []string
	var numbers []amountOf
	struck := 0
	for i, w := range words {
		raw = append(raw, w.Text)
		if w.Struck {
			struck++
		}
		date, isDate := dateOf(w.Text)
		kind := l.columnAt(w)
		switch {
		case isDate && len(text) == 0 && len(numbers) == 0 && !c.dated:
			c.date, c.dated = r.resolve(date), true
		case isDitto(w.Text) && len(text) == 0 && len(numbers) == 0 && (kind == dateColumn || kind == "" && i == 0 && len(words) > 1) && !c.dated:
			c.dated = true
		case isDitto(w.Text) && (kind == "" || kind == itemColumn || kind == dateColumn) && len(numbers) == 0:
			c.ditto = true
		case isDitto(w.Text):
			numbers = append(numbers, amountOf{Word: w, kind: kind, repeats: true})
		case unitOf(w.Text) != "" && len(numbers) > 0:
			numbers[len(numbers)-1].unit = unitOf(w.Text)
		case unitOf(w.Text) == "rs" && i+1 < len(words):
		default:
			if n, ok := number(w, kind != "" && i > 0); ok && kind != itemColumn && kind != dateColumn {
				n.kind = kind
				numbers = append(numbers, n)
				continue
			}
			if len(numbers) > 0 && letters(w.Text) > 1 { // numbers before it belong to the text
				for _, n := range numbers {
					text = append(text, n.Text)
				}
				numbers = nil
			}
			if letters(w.Text) > 0 || digits(w.Text) > 0 {
				text = append(text, w.Text)
			}
		}
	}
	c.raw, c.text = strings.Join(raw, " "), strings.Trim(strings.Join(text, " "), " .,:;-")
	c.struck = len(words) > 0 && 2*struck > len(words)
	for _, word := range append(slices.Clone(text), c.text) {
		c.total = c.total || totals[folded(word)] != ""
		c.opening = c.opening || openings[folded(word)] != ""
	}
	r.assign(l, side, &c, numbers)
	return c
}

// joined returns words without the gaps that a program saw inside numbers: before the places of an amount, as in "2,29,737., 66".
func joined(words []Word) (all []Word) {
	for _, w := range words {
		if n := len(all); n > 0 && digits(w.Text) == len(w.Text) && len(w.Text) <= 3 {
			before := &all[n-1]
			if text := strings.TrimRight(before.Text, ".,"); text != before.Text && digits(text) > 0 && w.Left-before.Right < w.Bottom-w.Top {
				before.Text, before.Right = text+"."+w.Text, w.Right
				continue
			}
		}
		all = append(all, w)
	}
	return all
}

// columnAt returns the kind of the named column that a word is in: the nearest, "" without named columns on its side.
func (l *layout) columnAt(w Word) (kind string) {
	nearest := 1 << 30
	for _, c := range l.columns {
		if (c.left+c.right)/2 >= l.boundary != (w.middle() >= l.boundary) {
			continue
		}
		distance := max(c.left-w.Right, w.Left-c.right, 0)*4 + abs(c.left+c.right-w.Left-w.Right)/2
		distance = min(distance, abs(c.right-w.Right)*2, abs(c.left-w.Left)*2)
		if distance < nearest {
			nearest, kind = distance, c.kind
		}
	}
	return kind
}

// assign gives the numbers to fields: by the named columns, else by units, grouping and order.
func (r *reader) assign(_ *layout, side string, c *cell, numbers []amountOf) {
	c.numbers = len(numbers)
	named := len(numbers) > 0
	for _, n := range numbers {
		named = named && slices.Contains([]string{weightColumn, touchColumn, fineColumn, amountColumn}, n.kind)
	}
	if !named {
		infer(numbers)
		c.inferred = len(numbers) > 0
	}
	above, given := r.above[side], map[string]bool{}
	for _, n := range numbers {
		if n.repeats {
			repeat(c, above, n.kind)
			continue
		}
		c.doubtful = c.doubtful || n.doubtful
		v := n.thousandths
		if n.unit == "kg" && v <= int64(unit.MaxGrams) { // more would overflow, and is refused as it is
			v *= 1000
		}
		if given[n.kind] || n.kind == "" {
			r.warnf("a number of the line %q has no column of its own", c.raw)
			c.doubtful = true
		}
		given[n.kind] = true
		switch n.kind {
		case weightColumn:
			c.weight = new(unit.Grams(v))
		case touchColumn:
			c.touch = new(unit.Percent(v))
			c.doubtful = c.doubtful || *c.touch > unit.Whole
		case fineColumn:
			c.fine = new(unit.Grams(v))
		case amountColumn:
			if v%10 != 0 && n.grouping() { // money has no third place: the point was a comma
				v *= 1000
				c.doubtful = true
			}
			c.amount = new(unit.Money(v / 10))
		}
	}
	if c.weight != nil && c.touch != nil && c.fine != nil {
		c.doubtful = !follows(*c.weight, *c.touch, *c.fine) && !c.repaired()
	}
}

// follows reports whether the fine weight is that of the weight and the touch, or nearly (CONTRACT.md 6.2).
func follows(weight unit.Grams, touch unit.Percent, fine unit.Grams) bool {
	computed := weight * unit.Grams(touch) / unit.Grams(unit.Whole)
	return max(computed-fine, fine-computed) <= max(10, computed/200)
}

// repaired moves points that were read as commas or not at all, where only one reading of the numbers gives the fine weight.
func (c *cell) repaired() bool {
	type reading struct {
		weight, fine unit.Grams
		touch        unit.Percent
	}
	var found []reading
	for _, w := range []unit.Grams{1, 10, 100, 1000} {
		for _, t := range []unit.Percent{1, 10, 100} {
			for _, f := range []unit.Grams{1, 10, 100, 1000} {
				one := reading{*c.weight / w, *c.fine / f, *c.touch / t}
				exact := one.weight*w == *c.weight && one.touch*t == *c.touch && one.fine*f == *c.fine
				computed := one.weight * unit.Grams(one.touch) / unit.Grams(unit.Whole)
				if exact && one.touch >= unit.Whole/10 && one.touch <= unit.Whole && one.fine > 0 && max(computed-one.fine, one.fine-computed) <= 1 {
					found = append(found, one)
				}
			}
		}
	}
	if len(found) == 0 {
		return false
	}
	*c.weight, *c.touch, *c.fine = found[0].weight, found[0].touch, found[0].fine // the fewest points moved
	c.inferred = true
	return true
}

// grouping reports whether the text is of one point and three digits behind it.
func (n amountOf) grouping() bool {
	_, after, found := strings.Cut(n.Text, ".")
	return found && len(after) == 3 && !strings.Contains(n.Text, ",")
}

// repeat copies a value of the entry above.
func repeat(c *cell, above *Entry, kind string) {
	if above == nil {
		return
	}
	switch kind {
	case weightColumn:
		c.weight = above.Weight
	case touchColumn:
		c.touch = above.Touch
	case fineColumn:
		c.fine = above.Fine
	case amountColumn:
		c.amount = above.Amount
	}
}

// infer finds the fields of numbers without named columns.
func infer(numbers []amountOf) {
	var open []*amountOf
	for i := range numbers {
		n := &numbers[i]
		n.kind = ""
		switch {
		case n.unit == "g" || n.unit == "kg":
			n.kind = weightColumn
		case n.unit == "rs" || n.grouped:
			n.kind = amountColumn
		case n.unit == "%":
			n.kind = touchColumn
		default:
			open = append(open, n)
		}
	}
	kinds := []string{weightColumn, touchColumn, fineColumn, amountColumn}
	switch len(open) {
	case 1:
		kinds = []string{amountColumn}
		if open[0].places() == 3 || len(numbers) > 1 && numbers[0].kind == "" {
			kinds = []string{weightColumn}
		}
	case 2:
		if open[1].thousandths > int64(unit.Whole) {
			kinds = []string{weightColumn, amountColumn}
		}
	}
	for i, n := range open[:min(len(open), len(kinds))] {
		n.kind = kinds[i]
	}
}

func (n amountOf) places() int {
	_, after, _ := strings.Cut(n.Text, ".")
	return len(after)
}

// number reads a word as a number: digits with Indian grouping, a currency before it, /- or a unit behind it.
// column says that it is in a column of numbers, so that all of its digits may have been taken for letters.
func number(w Word, column bool) (n amountOf, ok bool) {
	text := strings.ToLower(w.Text)
	n.Word = w
	for _, before := range []string{"₹", "rs.", "rs", "रु.", "रु", "રૂ.", "રૂ"} {
		if rest, found := strings.CutPrefix(text, before); found && rest != "" {
			text, n.unit = rest, "rs"
		}
	}
	for _, after := range []string{"/-", "/=", "/"} {
		if rest, found := strings.CutSuffix(text, after); found {
			text, n.unit = rest, "rs"
			break
		}
	}
	text = strings.TrimRight(text, ".,;:'\"|_-")
	end := strings.LastIndexFunc(text, func(c rune) bool { return c >= '0' && c <= '9' }) + 1
	if kind := unitOf(text[end:]); end > 0 && kind != "" {
		text, n.unit = text[:end], kind
	}
	text = strings.TrimLeft(text, ".,:;'\"|_")
	plain := confused.Replace(text)
	if count := digits(text); !column && (count == 0 || 2*count < len([]rune(text))) || digits(plain) == 0 || unitOf(text) != "" {
		return n, false
	}
	n.doubtful = plain != text
	whole, fraction, point := strings.Cut(plain, ".")
	if strings.Count(plain, ".") > 1 { // points that were commas
		at := strings.LastIndex(plain, ".")
		whole, fraction, n.doubtful = strings.ReplaceAll(plain[:at], ".", ""), plain[at+1:], true
		if len(fraction) == 3 {
			whole, fraction = whole+fraction, ""
		}
	}
	if groups := strings.Split(whole, ","); len(groups) > 1 {
		n.grouped = true
		if last := groups[len(groups)-1]; len(last) == 2 && !point { // 1,234,50: its point was taken for a comma
			groups, fraction, n.doubtful = groups[:len(groups)-1], last, true
		} else if len(last) != 3 {
			n.doubtful = true
		}
		whole = strings.Join(groups, "")
	}
	if len(whole) > 13 || len(fraction) > 3 {
		return n, false
	}
	v, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	n.thousandths = v
	return n, err == nil
}

// confused replaces letters that are often read in the place of digits, of all three scripts.
var confused = strings.NewReplacer("o", "0", "l", "1", "i", "1", "s", "5", "b", "8", "z", "2",
	"ર", "2", "પ", "5", "ડ", "6", "લ", "9", "€", "9", "$", "6", "प", "5", "र", "2", "ड", "6", "घ", "8", "ट", "8")

// day is a date as it is written. Year is 0 where there is none.
type day struct{ year, month, day int }

// dateOf reads d/m, d-m-yy or dd.mm.yyyy.
func dateOf(text string) (d day, ok bool) {
	if 2*digits(text) >= len([]rune(text))/2 && strings.ContainsAny(text, "/-.") {
		text = confused.Replace(text)
	}
	text = strings.Trim(text, ".,;:|'\"()")
	parts := strings.FieldsFunc(text, func(c rune) bool { return c == '/' || c == '-' || c == '.' })
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 2 && strings.Contains(text, ".") || strings.ContainsFunc(text, unicode.IsLetter) {
		return d, false
	}
	var numbers []int
	for _, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || len(part) > 4 {
			return d, false
		}
		numbers = append(numbers, n)
	}
	d.day, d.month = numbers[0], numbers[1]
	if len(numbers) == 3 {
		if d.year = numbers[2]; len(parts[2]) <= 2 {
			d.year += 2000
		}
	}
	at := time.Date(max(d.year, 2000), time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC) // 2000 has a 29 February
	return d, d.month >= 1 && d.month <= 12 && at.Day() == d.day && d.day > 0
}

// resolve returns the date of a day. A missing year is the sheet's, or the latest before it, or without one the latest, that is not after
// tomorrow; a year beyond the next is not believed (CONTRACT.md I19).
func (r *reader) resolve(d day) *unit.Date {
	today := r.Today.Time()
	of := func(year int) (unit.Date, bool) {
		at := time.Date(year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
		return unit.DateOf(at), at.Day() == d.day
	}
	if d.year != 0 {
		if date, exists := of(d.year); exists && d.year <= today.Year()+1 && d.year >= 1900 {
			return &date
		}
		r.warnf("the year %d is not believed", d.year)
	}
	year := today.Year()
	if r.year != 0 {
		year = r.year
		if d.month < 4 { // a year of the books begins in April
			if date, exists := of(year + 1); exists && r.fiscal && date <= r.Today+1 {
				return &date
			}
		}
	}
	for range 8 {
		if date, exists := of(year); exists && date <= r.Today+1 {
			return &date
		}
		year--
	}
	return nil
}

// date returns the date of an entry: a blank or repeated one is that above.
func (r *reader) date(side string, c cell) *unit.Date {
	if c.date == nil {
		if r.dates[side] == nil && !c.dated {
			for _, other := range []string{In, Out} { // a date that both sides share
				if r.dates[other] != nil {
					return r.dates[other]
				}
			}
		}
		if r.dates[side] == nil {
			r.warnf("an entry has no date")
		}
		return r.dates[side]
	}
	r.dates[side] = c.date
	return c.date
}
