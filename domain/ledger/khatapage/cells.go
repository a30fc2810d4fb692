package khatapage

import (
	"slices"
	"strconv"
	"strings"

	"bahi/domain/unit"
)

// cell is one side of a line.
type cell struct {
	words []Word
	raw   string
	text  string // without numbers
	date  *unit.Date
	dated bool // begins with a date or a ditto mark
	ditto bool // a ditto mark in place of the text

	weight, fine *unit.Grams
	touch        *unit.Percent
	amount       *unit.Money
	numbers      int

	unread   bool // the date cannot be parsed
	inferred bool // no header names the columns of the numbers
	doubtful bool // a part was not understood
	struck   bool
	scaled   bool // the size of a weight is certain

	unclear string // the date, if it is hard to read

	total, opening bool
}

func (c cell) numbersOnly() bool { return c.numbers > 0 && c.text == "" && !c.dated && !c.ditto }

// amountOf is a number in a cell.
type amountOf struct {
	Word

	thousandths int64
	places      int    // after the point
	unit        string // g, kg, rs, %; "": none
	grouped     bool   // grouped as amounts are, or with /- at the end
	doubtful    bool
	unclear     bool   // ends with a hyphen or has one bracket: it may be negative
	cut         bool   // ends with a mark, which may have been more digits
	kind        string // column
	repeats     bool   // a ditto mark
	proven      bool   // confirmed by other numbers, see prove
}

// doubt adds a warning about a cell. Its entry gets a low confidence.
func (r *reader) doubt(c *cell, format string, args ...any) {
	c.doubtful = true
	r.warnf(format, args...)
}

// cell parses the words of one side of a line.
func (r *reader) cell(l *layout, side string, words []Word) (c cell) {
	words = joined(words)
	c.words = words
	var raw, text []string
	var numbers []amountOf
	struck := 0
	for _, w := range words {
		raw = append(raw, w.Text)
		if w.Struck {
			struck++
		}
	}
	c.raw, c.struck = strings.Join(raw, " "), 2*struck > len(words) && struck > 0
	for i := 0; i < len(words); i++ {
		w := words[i]
		kind := l.columnAt(w)
		begins := letters(strings.Join(text, "")) == 0 && len(numbers) == 0 && !c.dated
		count, date, unread := 0, day{}, 0
		if begins {
			if count, date = leadingDate(words[i:]); count == 0 && len(text) == 0 {
				unread = l.dateWords(words[i:])
			}
		}
		switch {
		case count > 0:
			c.dated = true
			written := strings.Join(raw[i:i+count], " ")
			unclear := slices.ContainsFunc(words[i:i+count], func(w Word) bool { return w.Confidence < sureNumber })
			if unclear || date.doubtful || strings.IndexFunc(written, sign) == 0 {
				r.doubt(&c, "the date %q of the line %q is hard to read", written, c.raw)
				c.unclear = written
			}
			r.setDate(&c, date, written)
			i += count - 1
		case begins && len(text) == 0 && (likeDate(w.Text) || kind == dateColumn && digits(w.Text) > 0):
			c.dated, c.unread = true, true
			r.doubt(&c, "the date %q of the line %q cannot be read", w.Text, c.raw)
		case unread > 0:
			c.dated, c.unread = true, true
			r.doubt(&c, "the date %q of the line %q cannot be read", strings.Join(raw[i:i+unread], " "), c.raw)
			i += unread - 1
		case begins && isDitto(w.Text) && len(text) == 0 && (kind == dateColumn || kind == "" && i == 0 && len(words) > 1):
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
			if len(numbers) > 0 && letters(w.Text) > 1 && kind != otherColumn { // numbers before it belong to the text
				for _, n := range numbers {
					text = append(text, n.Text)
					if !counting[folded(w.Text)] {
						r.doubt(&c, "the number %q of the line %q is taken for text", n.Text, c.raw)
					}
				}
				numbers = nil
			}
			if letters(w.Text) > 0 || digits(w.Text) > 0 {
				text = append(text, w.Text)
				if likeDate(w.Text) && letters(w.Text) == 0 || len(numbers) > 0 {
					r.doubt(&c, "%q of the line %q is taken for text", w.Text, c.raw)
				}
			}
		}
	}
	c.text = strings.Trim(strings.Join(text, " "), " .,:;-")
	for _, word := range append(slices.Clone(text), c.text) {
		c.total = c.total || totals[folded(word)] != ""
		c.opening = c.opening || openings[folded(word)] != ""
	}
	r.assign(l, side, &c, numbers)
	remains := letters(c.text) == 1 && digits(c.text) < 2 || letters(c.text) == 0 && len(text) > 1
	if c.numbers > 0 && (remains || slices.ContainsFunc(text, misread)) {
		r.doubt(&c, "the text %q of the line %q is hard to read", c.text, c.raw)
	}
	return c
}

func (r *reader) setDate(c *cell, d day, text string) {
	believed := false
	if d.exists() {
		c.date, believed = r.resolve(d)
	}
	if !believed {
		r.doubt(c, "the date %q of the line %q cannot be read", text, c.raw)
	}
	c.unread = c.date == nil
}

// joined joins words that text recognition split inside numbers, as in "2,29,737., 66" and "45 ,826". It splits words
// that were joined after a date.
func joined(words []Word) (all []Word) {
	for _, w := range words {
		if n := len(all); n > 0 && w.Left-all[n-1].Right < w.Bottom-w.Top && unitOf(w.Text) == "" {
			before := &all[n-1]
			head, tail := strings.TrimRight(before.Text, ".,"), strings.TrimLeft(w.Text, ".,")
			separated := head != before.Text || tail != w.Text && head == before.Text
			if separated && digits(head) > 0 && letters(head) == 0 && !isDate(head) && tail != "" && tail[0] >= '0' && tail[0] <= '9' &&
				letters(tail) == 0 {
				separator := ","
				if digits(tail) == len(tail) && len(tail) <= 3 && (len(tail) < 3 || !strings.HasSuffix(before.Text, ",")) {
					separator = "."
				}
				before.Text, before.Right, before.Confidence = head+separator+tail, w.Right, min(before.Confidence, w.Confidence)
				continue
			}
		}
		if m := leading.FindStringSubmatch(w.Text); len(m) > 0 && isDate(m[1]) {
			date := w
			date.Text, w.Text = m[1], m[2]
			date.Right = w.Left + (w.Right-w.Left)*len([]rune(m[1]))/len([]rune(m[1]+m[2]))
			w.Left = date.Right
			all = append(all, date)
		}
		all = append(all, w)
	}
	return all
}

// columnAt returns the kind of the nearest named column on a word's side, or "" if none is named.
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

// dateWords returns the number of leading words that are apart in the column of dates. Ditto marks, or what was read in their place, are
// none.
func (l *layout) dateWords(words []Word) (n int) {
	written := 0
	for n < len(words) && l.columnAt(words[n]) == dateColumn && !isDitto(words[n].Text) {
		written += letters(words[n].Text)
		n++
	}
	if written < 2 || n == len(words) || words[n].Left-words[n-1].Right < words[n].Bottom-words[n].Top {
		return 0
	}
	return n
}

// assign assigns the numbers to fields: first numbers that confirm one another, then by named columns, else by units,
// grouping and order.
func (r *reader) assign(l *layout, side string, c *cell, numbers []amountOf) {
	c.numbers = len(numbers)
	numbers, proven := prove(numbers)
	var rest []amountOf
	named := true
	for _, n := range numbers {
		if n.kind == otherColumn {
			r.doubt(c, "the column of %q in the line %q has an unknown name", n.Text, c.raw)
			continue
		}
		rest = append(rest, n)
		named = named && slices.Contains(order[2:], n.kind)
	}
	if !named {
		guessed := l.infer(rest, proven)
		c.inferred = true
		if guessed {
			r.doubt(c, "the numbers of the line %q have no headers: their order determines the fields", c.raw)
		}
	}
	above, given := r.above[side], map[string]bool{}
	for _, n := range rest {
		if n.repeats {
			repeat(c, above, n.kind)
			continue
		}
		r.checkKind(l, c, &n)
		v := n.thousandths
		if n.unit == "kg" && v <= int64(unit.MaxGrams) { // a greater value would overflow, and is refused later
			v *= 1000
		}
		if given[n.kind] || n.kind == "" {
			r.doubt(c, "a number of the line %q has no column of its own: %q", c.raw, n.Text)
			continue
		}
		given[n.kind] = true
		switch n.kind {
		case weightColumn:
			c.weight, c.scaled = new(unit.Grams(v)), c.scaled || n.scaled()
		case touchColumn:
			c.touch = new(unit.Percent(v))
		case fineColumn:
			c.fine, c.scaled = new(unit.Grams(v)), c.scaled || n.scaled()
		case amountColumn:
			if v%10 != 0 && n.grouping() { // money has at most two decimals: the point was a comma
				v *= 1000
				r.doubt(c, "the point of %q in the line %q is taken for a comma", n.Text, c.raw)
			} else if v%10 != 0 {
				r.doubt(c, "%q of the line %q has too many decimals for an amount", n.Text, c.raw)
			}
			c.amount = new(unit.Money(v / 10))
		}
	}
	if missing := slices.IndexFunc(order[2:5], func(kind string) bool { return l.named(kind) && !given[kind] }); missing >= 0 &&
		(c.weight != nil || c.fine != nil) {
		r.doubt(c, "the line %q has metal, and no %s", c.raw, order[2+missing])
	} else if c.inferred && c.weight != nil && c.fine != nil && c.touch == nil {
		r.doubt(c, "the line %q has metal, and no %s", c.raw, touchColumn)
	}
	c.checkMetal(r)
}

// sureNumber is the minimum confidence of a date, and of an unconfirmed number, in an entry without doubt.
const sureNumber = 85

// checkKind adds a warning about a number that is hard to read or does not fit its column. It moves a number that fits another column to
// that column.
func (r *reader) checkKind(l *layout, c *cell, n *amountOf) {
	kind := n.kind
	switch {
	case n.unit == "rs" || strings.Count(n.Text, ",") > 1:
		kind = amountColumn
	case (n.unit == "g" || n.unit == "kg") && kind != fineColumn:
		kind = weightColumn
	case n.unit == "%":
		kind = touchColumn
	}
	if kind != n.kind {
		r.doubt(c, "%q of the line %q is under %s and is taken for %s", n.Text, c.raw, n.kind, kind)
		n.kind = kind
	}
	long := l.groups > 2 && !n.grouped && n.thousandths >= 100_000_000
	cut := n.Cut || n.kind == amountColumn && (n.cut || n.places == 1)
	if n.unclear || n.doubtful || !n.proven && (n.Confidence < sureNumber || long || cut) {
		r.doubt(c, "the number %q of the line %q is hard to read", n.Text, c.raw)
	}
	if n.thousandths < 0 {
		r.doubt(c, "the number %q of the line %q is negative, which rows do not allow", n.Text, c.raw)
	}
}

// grouping reports whether the text has one point with three digits after it.
func (n amountOf) grouping() bool {
	_, after, found := strings.Cut(n.Text, ".")
	return found && len(after) == 3 && !strings.Contains(n.Text, ",")
}

// scaled reports whether the number's size is certain: the comma of 82,065 may be a misread point.
func (n amountOf) scaled() bool { return !n.grouped || n.places > 0 }

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

// infer finds the fields of numbers without named columns. It returns guessed if only their order determines the fields.
func (l *layout) infer(numbers []amountOf, proven bool) (guessed bool) {
	var open []*amountOf
	known := map[string]bool{}
	for i := range numbers {
		n := &numbers[i]
		switch {
		case n.proven:
		case n.unit == "g" || n.unit == "kg":
			n.kind = weightColumn
		case n.unit == "rs" || n.grouped:
			n.kind = amountColumn
		case n.unit == "%":
			n.kind = touchColumn
		default:
			if n.kind = l.learned(*n); n.kind == "" {
				open = append(open, n)
				continue
			}
		}
		known[n.kind] = true
	}
	kinds := []string{weightColumn, touchColumn, fineColumn, amountColumn}
	switch {
	case proven:
		kinds = kinds[3:]
	case len(open) == 1 && open[0].places != 3 && (len(numbers) == 1 || open[0].Left != numbers[0].Left):
		kinds = kinds[3:]
	case len(open) == 2 && open[1].thousandths > int64(unit.Whole):
		kinds = []string{weightColumn, amountColumn}
	}
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return known[kind] })
	for i, n := range open[:min(len(open), len(kinds))] {
		n.kind = kinds[i]
	}
	return len(open) > 0
}

// number parses a word as a number: digits with Indian grouping, a currency before them, /- or a unit after them. If column is true, the
// word is in a column of numbers, so all of its digits may have been misread as letters.
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
	opens, closes := strings.HasPrefix(text, "("), strings.HasSuffix(text, ")")
	negative, open := opens && closes, opens != closes
	text = strings.TrimRight(strings.Trim(text, "()"), "|_")
	n.unclear = open || strings.HasSuffix(text, "-")
	text = strings.TrimRight(text, "|_-")
	marked := text
	text = strings.TrimRight(text, ".,;:'\"|_-")
	n.cut = text != marked
	end := strings.LastIndexFunc(text, func(c rune) bool { return c >= '0' && c <= '9' }) + 1
	if kind := unitOf(text[end:]); end > 0 && kind != "" {
		text, n.unit = text[:end], kind
	}
	text = strings.TrimLeft(text, ".,:;'\"|_")
	plain := confused.Replace(text)
	if count := digits(text); !column && (count == 0 || 2*count < len([]rune(text))) || digits(plain) == 0 || unitOf(text) != "" {
		return n, false
	}
	ok = n.parse(plain)
	if plain != text {
		if once := n; n.doubtful && once.parse(confused.Replace(undoubled(text))) && !once.doubtful {
			n = once
		}
		n.doubtful = true
	}
	if negative {
		n.thousandths = -n.thousandths
	}
	return n, ok
}

// parse parses a number of digits, commas and points. It is doubtful if its groups are not those of Indian numbers.
func (n *amountOf) parse(plain string) bool {
	n.doubtful, n.grouped = false, false
	if strings.Contains(plain, ".,") || strings.Contains(plain, ",.") { // one point
		plain, n.doubtful = strings.NewReplacer(".,", ".", ",.", ".").Replace(plain), true
	}
	whole, fraction, point := strings.Cut(plain, ".")
	if strings.Count(plain, ".") > 1 { // points that were misread commas
		at := strings.LastIndex(plain, ".")
		whole, fraction, n.doubtful = strings.ReplaceAll(plain[:at], ".", ""), plain[at+1:], true
		if len(fraction) == 3 {
			whole, fraction = whole+fraction, ""
		}
	}
	if groups := strings.Split(whole, ","); len(groups) > 1 {
		n.grouped = true
		if last := groups[len(groups)-1]; len(last) == 2 && !point { // 1,234,50: a comma in place of the point
			groups, fraction, n.doubtful = groups[:len(groups)-1], last, true
		} else if len(last) != 3 {
			n.doubtful = true
		}
		for i, group := range groups[:len(groups)-1] { // 1,25,000
			n.doubtful = n.doubtful || len(group) > 3 || len(group) != 2 && i > 0
		}
		whole = strings.Join(groups, "")
	}
	n.doubtful = n.doubtful || len(whole) > 1 && whole[0] == '0'
	if len(whole) > 13 || len(fraction) > 3 {
		return false
	}
	v, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	n.thousandths, n.places = v, len(fraction)
	return err == nil
}

// undoubled returns a text without letters next to the digit that they resemble: text recognition may read one digit as both.
func undoubled(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i, c := range runes {
		digit := confused.Replace(string(c))
		if digit != string(c) && (i > 0 && string(runes[i-1]) == digit || i+1 < len(runes) && string(runes[i+1]) == digit) {
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// misread reports whether a word is a number with digits that were read as letters.
func misread(text string) bool {
	plain := confused.Replace(strings.ToLower(text))
	return digits(text) > 0 && letters(text) > 0 && letters(plain) == 0 && strings.Trim(plain, "0123456789.,/-") == ""
}

// confused replaces letters of all three scripts by the digits that are often misread as these letters.
var confused = strings.NewReplacer("o", "0", "l", "1", "i", "1", "s", "5", "b", "8", "z", "2",
	"ર", "2", "પ", "5", "ડ", "6", "લ", "9", "€", "9", "$", "6", "प", "5", "र", "2", "ड", "6", "घ", "8", "ट", "8")
