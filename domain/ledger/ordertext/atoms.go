package ordertext

import (
	"cmp"
	"strings"
)

// kind is the kind of an atom.
type kind int

const (
	word     kind = iota // word in an item's or a client's name
	mark                 // punctuation
	noise                // a word without meaning here
	named                // a number of an item's name, such as 22k or size 2.6
	weight               // a weight with its unit; the value is in milligrams
	count                // a count with its unit; the value is in pieces
	bare                 // a number without a unit, in thousandths
	unclear              // a quantity that the reviewer must interpret
	aside                // understood, but without a field in a draft: a price, a deadline
	slip                 // the number of a slip
	client               // a client's name
	partyIs              // a word before a client's name, such as "party"
	partyWas             // a word after a client's name
)

// atom is a smallest part of a message with a meaning.
type atom struct {
	kind   kind
	text   string // as written; for a name or a slip only its value
	folded string // the first token, folded; for a client, the words after which the name may end; empty: any word
	value  int64
	whole  bool // a bare number without a decimal point
}

func (a atom) quantity() bool { return a.kind >= weight && a.kind <= unclear }

// rules find an atom at an index. Each returns the number of tokens of the atom, 0 for none. The first match wins.
var rules = []func(tokens tokens, i int) (atom, int){
	slipAt, deadlineAt, priceAt, nameNumberAt, tornAt, unclearAt, amountAt, clientMarkAt, plainAt,
}

// scan returns the atoms of a text.
func scan(all tokens) (atoms []atom) {
	for i := 0; i < len(all); {
		for _, rule := range rules {
			a, n := rule(all, i)
			if n == 0 {
				continue
			}
			if a.text == "" {
				a.text = all[i : i+n].written()
			}
			a.folded = all[i].folded
			if a.folded == "" {
				a.folded = all[i].text
			}
			atoms = append(atoms, a)
			i += n
			break
		}
	}
	return atoms
}

type tokens []token

// at returns the token at an index, or an empty token outside the text.
func (all tokens) at(i int) token {
	if i < 0 || i >= len(all) {
		return token{}
	}
	return all[i]
}

// written returns the tokens as they were written.
func (all tokens) written() string {
	var b strings.Builder
	for i, t := range all {
		if i > 0 && !t.glued {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// past returns the index of the first token from i on that is in none of the sets. It skips at most maxMarks tokens.
func (all tokens) past(i int, sets ...map[string]bool) int {
	for most := i + maxMarks; i < min(len(all), most); i++ {
		found := false
		for _, s := range sets {
			found = found || s[all[i].folded] || s[all[i].text]
		}
		if !found {
			return i
		}
	}
	return i
}

const maxMarks = 8 // between related tokens

var punctuation = set(". : - = # ( )")

const longestShortWord = 2 // letters in a slip's number, as in 214/A

// slipAt matches "slip no. 214", "no 214", "#214".
func slipAt(all tokens, i int) (atom, int) {
	j := i + 1
	switch t := all[i]; {
	case slipMarks[t.folded]:
		j = all.past(j, numberMarks, punctuation)
	case t.folded == "no" || t.text == "#" || t.folded == "नं" || t.folded == "નં":
		j = all.past(j, punctuation)
	default:
		return atom{}, 0
	}
	end, found := j, false
	for ; end < len(all) && (end == j || all[end].glued); end++ {
		t := all[end]
		if t.word() && (len([]rune(t.text)) > longestShortWord || unitWord(t.folded) || end+1 == len(all) && end == j) || !t.word() &&
			!t.number && t.text != "/" && t.text != "-" {
			break
		}
		found = found || t.number
	}
	for end > j && !all[end-1].word() && !all[end-1].number {
		end--
	}
	if !found || all.at(j).value < 0 || unitWord(all.at(end).folded) || ofTheName[all.at(end).folded] {
		return atom{}, 0
	}
	and, next := cmp.Or(all.at(end).folded, all.at(end).text), all.at(end+2)
	if all.at(end+1).number && (ands[and] && !next.word() && !next.number || ranges[and] && !unitWord(next.folded)) {
		end += 2 // 214 and 215, 214 to 216
	}
	return atom{kind: slip, text: cut(all[j:end].written(), MaxSlip)}, end - i
}

// deadlineAt matches the deadline of an order, as in "before 5 Nov" or "दिवाली से पहले", and a date or time.
func deadlineAt(all tokens, i int) (atom, int) {
	if until[all[i].folded] {
		from := all.past(i+1, fillers)
		if n := moment(all, from, true); n > 0 {
			return atom{kind: aside}, from + n - i
		}
		end := i + 1
		for strict[all[i].folded] && end <= i+2 && all.at(end).word() && !unitWord(all.at(end).folded) {
			end++
		}
		if end > i+1 {
			return atom{kind: aside}, end - i
		}
		return atom{}, 0
	}
	from := all.past(i, fillers)
	n := moment(all, from, false)
	known := n > 0
	if n == 0 && all.at(from).word() && moments[all.at(from).folded] || months[all.at(from).folded] && n == 0 {
		n = 1
	}
	end := all.past(from+n, se)
	if n > 0 && behindIt[all.at(end).folded] {
		return atom{kind: aside}, end + 1 - i
	}
	if known && !moments[all.at(from).folded] || n > 0 && (from > i || !all.at(i+1).word()) {
		return atom{kind: aside}, from + n - i
	}
	return atom{}, 0
}

// moment returns the number of tokens from i on that are a date, a time or a span of days. asked reports whether the
// previous word announces one, such as "before".
func moment(all tokens, i int, asked bool) int {
	t, next := all.at(i), all.at(i+1)
	day := func(t token) bool { return t.number && t.whole && t.value >= 1_000 && t.value <= 31_000 }
	ordinal := func(k int) int { return k + boolean(all.at(k).glued && ordinals[all.at(k).folded]) }
	year := func(k int) int {
		return k + boolean(all.at(k).number && len(all.at(k).text) == 4 && !unitWord(all.at(k+1).folded))
	}
	switch {
	case day(t) && months[all.at(ordinal(i+1)).folded]:
		return year(ordinal(i+1)+1) - i
	case day(t) && (ordinal(i+1) > i+1 || tarikh[next.folded]):
		return 2
	case t.number && t.whole && spans[next.folded]:
		return 2
	case months[t.folded] && day(next) && !unitWord(all.at(i+2).folded):
		return year(ordinal(i+2)) - i
	case asked && (moments[t.folded] || months[t.folded]):
		return 1
	}
	if !t.number {
		return 0
	}
	parts := 1
	for all.at(i+2*parts-1).glued && all.at(i+2*parts).glued && all.at(i+2*parts).number &&
		strings.Contains("/-.:", all.at(i+2*parts-1).text) {
		parts++
	}
	end := i + 2*parts - 1
	clock := parts == 2 && next.text == ":" && t.value < 24_000 && len(all.at(i+2).text) == 2
	switch {
	case t.whole && parts <= 2 && hours[all.at(end).folded]:
		return end + 1 - i
	case parts == 3 && next.text != ":" && (day(t) && len(all.at(end-1).text) != 1 || len(t.text) == 4) && all.at(i+2).value <= 31_000:
		return end - i
	case parts == 2 && next.text == "." && !t.whole && len(all.at(i+2).text)%2 == 0: // 12.11.25 is the number 12.11, a dot and 25
		return end - i
	case asked && parts == 2 && (clock || next.text != ":" && day(t) && day(all.at(i+2))) && !unitWord(all.at(end).folded):
		return end - i
	}
	return 0
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// priceAt matches a number with a price word before or after it. It also matches words that mark a weight as the weight of each piece.
func priceAt(all tokens, i int) (atom, int) {
	t, next := all[i], all.at(i+1)
	switch {
	case papers[t.folded] && all.at(all.past(i+1, numberMarks, punctuation)).number:
		return atom{kind: aside}, all.past(i+1, numberMarks, punctuation) + 1 - i
	case prices[t.folded] || prices[t.text]:
		j := all.past(i+1, prices, punctuation)
		if n := all.at(j + 1); !all.at(j).number || ofTheName[n.folded] || ofTheName[n.text] {
			if t.word() {
				return atom{kind: aside}, 1
			}
			if !all.at(j).number {
				return atom{kind: aside}, 1
			}
			return atom{kind: noise}, 1 // @ 92 touch
		}
		return atom{kind: aside}, priceEnd(all, j+1) - i
	case t.number && (rupees[next.folded] || rupees[next.text]), t.number && next.text == "/" && all.at(i+2).text == "-":
		return atom{kind: aside}, priceEnd(all, i+1) - i
	case t.number && (each[next.folded] || next.text == "/") && unitWord(all.at(i+2).folded): // 95 per gm
		return atom{kind: aside}, 3
	case each[t.folded]:
		return atom{kind: aside}, 1 + boolean(counts[next.folded] != 0)
	}
	return atom{}, 0
}

// priceEnd returns the end of a price with its number before i.
func priceEnd(all tokens, i int) int {
	if all.at(i).text == "/" && all.at(i+1).text == "-" {
		i += 2
	}
	if rupees[all.at(i).folded] || rupees[all.at(i).text] {
		i++
	}
	if (each[all.at(i).folded] || all.at(i).text == "/") && unitWord(all.at(i+1).folded) {
		i += 2
	}
	return i
}

// nameNumberAt matches a number that is part of an item's name.
func nameNumberAt(all tokens, i int) (atom, int) {
	t, next := all[i], all.at(i+1)
	switch {
	case sizes[t.folded]:
		if j := all.past(i+1, numberMarks, punctuation); all.at(j).number && !unitWord(all.at(j+1).folded) {
			end := all.rangeEnd(j)
			return atom{kind: named, text: t.text + " " + all[j:end].written()}, end - i
		}
	case t.word() && next.number && next.glued && !unitWord(all.at(i+2).folded) && !lone(t.folded) && !countMarks[t.folded] &&
		!weightMarks[t.folded]:
		return atom{kind: named}, 2 // A12
	case t.number && all.rangeEnd(i) > i+1 && ofTheName[all.at(i+3).folded]:
		return atom{kind: named, text: all[i:i+3].written() + all[i+3].text}, 4 // 2-8 size
	case t.number && (ofTheName[next.folded] || ofTheName[next.text]):
		return atom{kind: named, text: t.text + next.text}, 2
	case t.number && assays[t.text] && !unitWord(next.folded):
		return atom{kind: named}, 1
	}
	return atom{}, 0
}

// rangeEnd returns the index after a number, or after a range such as 12-14.
func (all tokens) rangeEnd(i int) int {
	if all.at(i+1).glued && all.at(i+1).text == "-" && all.at(i+2).glued && all.at(i+2).number {
		return i + 3
	}
	return i + 1
}

// tornAt matches a number with a sign or letter that no rule knows, as in 250..5, 1'250, 1e3 and o.5, and thousands after a blank, which
// may be pieces.
func tornAt(all tokens, i int) (atom, int) {
	t, end := all[i], i+1
	if len(t.text) == 1 && t.word() && !lone(t.folded) { // a letter in place of a digit
		for ; all.at(end).glued && all.at(end).text == "."; end++ {
		}
		if all.at(end).glued && all.at(end).number && unitWord(all.at(end+1).folded) {
			return atom{kind: unclear}, end + 2 - i
		}
	}
	if !t.number {
		return atom{}, 0
	}
	for ; all.at(end).glued && tears(all[end]); end++ {
	}
	blank := all.at(end)
	switch thousands := !blank.glued && t.whole && len(t.text) <= 3 && blank.whole && len(blank.text) == 3; {
	case !all.at(end).number:
	case end > i+1 && all.at(end).glued, end == i+1 && thousands && weights[all.at(end+1).folded] != 0:
		return atom{kind: unclear}, end + 1 + boolean(unitWord(all.at(end+1).folded)) - i
	}
	return atom{}, 0
}

// tears reports whether a token between two digits makes a number unclear.
func tears(t token) bool {
	if t.word() {
		return !lone(t.folded) && !ofTheName[t.folded]
	}
	return !t.number && strings.Contains(".'’`_٫٬", t.text)
}

var (
	ranges = set("- to or ya se thi से या થી કે")
	sums   = set("+ / *")
)

const (
	phoneDigits = 10
	minGrams    = 100_000 // thousandths: a larger number of kilograms may be grams, or pieces
)

// unclearAt matches quantities with two possible readings, and phones.
func unclearAt(all tokens, i int) (atom, int) {
	t, second := all[i], all.at(i+2)
	if !t.number {
		return atom{}, 0
	}
	digits, end := len(t.text), i+1
	for ; all.at(end).number && all.at(end).whole && len(all.at(end).text) > 2; end++ {
		digits += len(all.at(end).text)
	}
	unit := weights[all.at(i+3).folded]
	switch between := all.at(i + 1); {
	case otherUnits[between.folded]:
		return atom{kind: unclear}, 2
	case unitWord(between.folded) && (ranges[second.folded] || ranges[second.text]) && all.at(i+3).number && t.value < all.at(i+3).value &&
		between.folded == all.at(i+4).folded: // 250 gm to 300 gm
		return atom{kind: unclear}, 5
	case t.value < 0 && unitWord(between.folded):
		return atom{kind: unclear}, 2
	case t.value < 0 || t.whole && digits >= phoneDigits && !unitWord(all.at(end).folded):
		return atom{kind: aside}, end - i
	case !second.number:
	case (ranges[between.folded] || ranges[between.text]) && t.value < second.value && second.value <= 2*t.value: // 250-300 gm
		return atom{kind: unclear}, 3 + boolean(unit != 0)
	case between.text == "," && between.glued && second.glued, // 2,50
		unit != 0 && (sums[between.text] || between.folded == "x" && t.whole): // 3/2 tola, 2 x 5 gm
		return atom{kind: unclear}, 3 + boolean(unit != 0)
	}
	if next := all.at(i + 1); weights[next.folded] == microgramsOfKilo && second.number && second.whole && second.value >= minGrams &&
		!unitWord(all.at(i+3).folded) {
		return atom{kind: unclear}, 3 // 1 kg 250
	}
	return atom{}, 0
}

// amountAt matches a weight or a count. It adds the units of one quantity.
func amountAt(all tokens, i int) (atom, int) {
	t, next := all[i], all.at(i+1)
	if marks := countMarks[t.folded] || counts[t.folded] != 0 || t.folded == "x"; marks || weightMarks[t.folded] {
		j := i + 1 + boolean(!next.word() && !next.number)
		switch n, unit := all.at(j), all.at(j+1).folded; {
		case weightMarks[t.folded] && counts[unit] != 0 && n.number && all.at(all.past(j+2, punctuation)).number: // weight: 250 pcs: 4
			return atom{kind: weight, value: n.value}, j + 1 - i
		case !n.number || n.value < 0 || unitWord(unit):
		case marks && n.whole && counts[t.folded] <= 1:
			return atom{kind: count, value: n.value / 1000}, j + 1 - i
		case weightMarks[t.folded]:
			return atom{kind: weight, value: n.value}, j + 1 - i
		}
	}
	if n := t.amount(next); n >= 0 && weights[next.folded] != 0 {
		return sum(all, i, weight, weights, 1_000_000)
	} else if n >= 0 && counts[next.folded] != 0 && n%1000 == 0 {
		return sum(all, i, count, counts, 1_000)
	}
	if t.number && t.whole && (next.folded == "x" || next.folded == "no") && !all.at(all.past(i+2, punctuation)).number {
		return atom{kind: count, value: t.value / 1000}, 2
	}
	return atom{}, 0
}

// amount returns the value of a token before a unit in thousandths, or -1.
func (t token) amount(unit token) int64 {
	if t.number {
		return t.value
	}
	if n := spelled[t.folded]; n != 0 && unitWord(unit.folded) {
		return n
	}
	return -1
}

// sum adds the parts of a quantity with descending units, such as 1 kg 250 gm. It divides the sum by a number, rounded.
func sum(all tokens, i int, of kind, units map[string]int64, by int64) (atom, int) {
	a, j, total := atom{kind: of}, i, int64(0)
	for {
		factor := units[all[j+1].folded]
		total += all[j].amount(all[j+1]) * factor
		j += 2
		for units[all.at(j).folded] != 0 && all.at(j-1).word() { // 2 dozen pcs
			j++
		}
		next := j
		if ands[all.at(j).folded] && !plain(all.at(j+3)) { // 1 kg and 250 gm
			next++
		}
		unit := units[all.at(next+1).folded]
		if all.at(next).amount(all.at(next+1)) < 0 || unit == 0 || unit >= factor {
			a.value = (total + by/2) / by
			return a, j - i
		}
		j = next
	}
}

// plain reports whether a token is a word of a name.
func plain(t token) bool { return t.word() && !noiseWord(t) }

func noiseWord(t token) bool {
	return noiseWords[t.folded] || hails[t.folded] || weightMarks[t.folded] || countMarks[t.folded] || ands[t.folded] || t.folded == "x"
}

// clientMarkAt matches a word before a client's name or after it.
func clientMarkAt(all tokens, i int) (atom, int) {
	t := all[i]
	switch {
	case clientMarks[t.folded] && (!all.at(i-1).word() || inlineMarks[t.folded]):
		return atom{kind: partyIs}, 1
	case accounts[t.folded+all.at(i+1).text+all.at(i+2).folded] && all.at(i+2).glued:
		return atom{kind: partyIs}, 3
	case t.folded == "to" && i == 0 && all.at(1).text == ":":
		return atom{kind: partyIs}, 2
	case liye[t.folded]:
		return atom{kind: partyWas}, 1
	case ke[t.folded] && liye[all.at(i+1).folded]:
		return atom{kind: partyWas}, 2
	}
	return atom{}, 0
}

// plainAt matches any token.
func plainAt(all tokens, i int) (atom, int) {
	switch t := all[i]; {
	case t.number:
		return atom{kind: bare, value: t.value, whole: t.whole}, 1
	case t.text == "-" && !t.glued && all.at(i+1).glued && all[i+1].number: // a minus
		return atom{kind: aside, text: "-" + all[i+1].text}, 1
	case strings.Contains("~<>≈≤≥±?", t.text) && !t.word():
		return atom{kind: aside}, 1
	case !t.word():
		return atom{kind: mark}, 1
	case noiseWord(t):
		return atom{kind: noise}, 1
	case refusals[t.folded], asides[t.folded], slipMarks[t.folded]:
		return atom{kind: aside}, 1
	case unitWord(t.folded):
		return atom{kind: aside}, 1
	}
	return atom{kind: word}, 1
}
