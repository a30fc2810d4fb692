// Package ordertext parses orders in chat messages by rules, without a model. Its result is a proposal that a user
// reviews (CONTRACT.md, section 4).
package ordertext

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/unit"
)

// Order is the parsed content of a text.
type Order struct {
	Entries []Entry
	Unused  []string // parts of the text without a field, as written
	Cut     bool     // the text has more entries than the limit
}

// Entry is one item of an order.
type Entry struct {
	Item       string
	Weight     unit.Grams // 0: unknown
	Quantity   int64      // 0: unknown
	Client     string     // empty: unknown
	Slip       string     // number of the paper slip; empty: unknown
	Confidence int        // in percent
}

// The limits of an entry (CONTRACT.md I13).
const (
	MaxEntries  = 500
	MaxItem     = 200 // characters
	MaxClient   = 120
	MaxSlip     = 40
	MaxWeight   = 100_000_000 // milligrams
	MaxQuantity = 100_000
	MaxUnused   = 20
)

// doubted is the maximum confidence in percent if a part of the text was not used (CONTRACT.md R1).
const doubted = 60

// Parse parses a text. It never fails: a text without an order has no entries.
func Parse(text string) Order {
	p, lines := parser{}, joined(strings.Split(normal(text), "\n"))
	if numbered(lines) {
		p.unused("1 to " + strconv.Itoa(len(lines)))
		p.doubts = true
	}
	for _, line := range lines {
		p.line = len(p.order.Entries)
		for _, segment := range p.segments(line) {
			p.segment(segment)
		}
	}
	if p.alone {
		p.number(p.slip, true, false)
	}
	if p.guess != "" {
		for i, guessable := range p.guessable {
			if guessable && p.order.Entries[i].Client == "" {
				p.order.Entries[i].Client = p.guess
			}
		}
	}
	for i := range p.order.Entries {
		if p.doubts {
			p.order.Entries[i].Confidence = min(p.order.Entries[i].Confidence, doubted)
		}
	}
	return p.order
}

type parser struct {
	order     Order
	line      int    // the first entry of this line
	client    string // applies until the next client
	guess     string // a line before the first item that may be a client
	guessable []bool // the entry has no marked client
	slip      string // applies until the next slip
	inherited []bool // the entry's slip is written after an earlier entry
	behind    bool   // the slip was after its entries
	alone     bool   // the slip was alone on its line, and no entry has followed
	doubts    bool   // a line was not used
	bullet    int64  // number of the last bullet
}

// numbered reports whether the lines begin with 1, 2, 3 and so on. The numbers may be of the lines, or of pieces.
func numbered(lines []tokens) bool {
	for i, line := range lines {
		if first := line[0]; !first.number || first.value != int64(i+1)*1000 || !plain(line.at(1)) {
			return false
		}
	}
	return len(lines) > 2
}

// joined appends lines with only quantities to the previous line.
func joined(lines []string) (all []tokens) {
	for _, text := range lines {
		line := tokens(offset(tokenize(text)))
		if len(line) == 0 {
			continue
		}
		if len(all) > 0 && line.onlyQuantities() {
			all[len(all)-1] = append(all[len(all)-1], line...)
			continue
		}
		all = append(all, line)
	}
	return all
}

// onlyQuantities reports whether a line has numbers and no words except units.
func (all tokens) onlyQuantities() bool {
	found := false
	for _, t := range all {
		if t.word() && !unitWord(t.folded) && !ofTheName[t.folded] && t.folded != "x" || t.text == "#" {
			return false
		}
		found = found || t.number
	}
	return found
}

// segments splits a line at semicolons and at numbered bullets, and removes bullets. It reports a number that does not
// continue a list: it may be the number of a slip.
func (p *parser) segments(line tokens) (all []tokens) {
	var current tokens
	first := true
	for i := 0; i < len(line); i++ {
		t := line[i]
		n, isBullet := line.bulletAt(i)
		switch {
		case isBullet && (len(current) == 0 || !first && n == p.bullet+1):
			if n != 1 && n != p.bullet+1 {
				p.unused(line[i : i+2].written())
				p.doubts = true
			}
			p.bullet, first = n, false
			i++ // its mark
			all, current = append(all, current), nil
		case t.text == ";" || t.text == "|":
			all, current = append(all, current), nil
		case len(current) == 0 && bulletMarks[t.text]:
		default:
			current = append(current, t)
		}
	}
	return append(all, current)
}

var bulletMarks = set("- * • · >")

const maxBullet = 500

// bulletAt returns the number of a bullet such as 2) or 2. before a word.
func (all tokens) bulletAt(i int) (n int64, is bool) {
	t, mark, next := all.at(i), all.at(i+1), all.at(i+2)
	n = t.value / 1000
	return n, t.number && t.whole && n >= 1 && n <= maxBullet && mark.glued && (mark.text == "." || mark.text == ")") &&
		(next.number || next.word() && !unitWord(next.folded))
}

// segment parses one segment.
func (p *parser) segment(all tokens) {
	all = all[:all.farewell()]
	n := all.salutation()
	atoms := scan(all[n:])
	if n > 0 && !has(atoms, func(a atom) bool { return a.quantity() || a.kind == slip || a.kind == partyIs || a.kind == partyWas }) {
		p.ignore(atoms)
		return
	}
	heads := len(atoms) > 0 && atoms[0].kind == slip
	if heads {
		if p.alone { // two slips in turn
			p.unused(p.slip)
			p.doubts = true
		}
		p.number(atoms[0].text, len(atoms) == 1 && p.line < len(p.order.Entries), false)
		atoms = atoms[1:]
		p.alone = len(atoms) == 0
		for len(atoms) > 0 && atoms[0].kind == mark {
			atoms = atoms[1:]
		}
	}
	for _, part := range parts(atoms, heads) {
		p.part(part)
	}
}

func has(atoms []atom, is func(atom) bool) bool { return slices.ContainsFunc(atoms, is) }

// salutation returns the number of tokens of a greeting at the beginning of a text.
func (all tokens) salutation() (n int) {
	for n < len(all) {
		i := n
		switch t := all[i]; {
		case starters[t.folded]:
			i = all.past(all.past(i, starters), deities)
			if !deities[all.at(i-1).folded] {
				return n
			}
		case deities[t.folded] && all.at(all.past(i+1, bulletMarks)).folded == t.folded:
			i = all.past(i+1, bulletMarks) + 1
		case all.couple(i) > 0:
			i = all.couple(i)
		case n > 0 && ki[t.folded] && starters[all.at(i+1).folded]: // Sita Ram ji ki jai
			i += 2
		case hails[strings.ReplaceAll(t.folded, "-", "")]:
			i++
		case n > 0 && all[n-1].folded == "happy" && moments[t.folded]:
			i++
		case n > 0 && (courtesy[t.folded] || !t.word() && !t.number):
			i++
		case n == 0 && courtesy[t.folded] && all.past(i, courtesy) == len(all):
			return len(all)
		default:
			return n
		}
		if ofANames[all.at(i).folded] && !courtesy[all.at(i).folded] { // Jai Ambe Jewellers
			return n
		}
		n = i
	}
	return n
}

// couple returns the index after a goddess and a god, as in Sita Ram ji, or 0. Before other words they may be a name, as in Sita Ram
// Sharma, or an item, as in Radha Krishna pendant.
func (all tokens) couple(i int) (end int) {
	from, first, second := i+1, strings.ReplaceAll(all[i].folded, "-", ""), all.at(i+1).folded
	switch {
	case couples[first]:
	case couples[first+second], radhas[first] && krishnas[second] && courtesy[all.at(i+2).folded]:
		from++
	default:
		return 0
	}
	end = all.past(from, courtesy)
	if next := all.at(end); end == from && (next.word() || next.number) || next.text == ":" || toPerson[next.folded] {
		return 0
	}
	return end
}

// maxFarewell is the maximum number of tokens of a greeting at the end of a line.
const maxFarewell = 6

// farewell returns the index of a greeting at the end of a text, behind a quantity or a comma. Behind other words it may be a name.
func (all tokens) farewell() int {
	for i := len(all) - 1; i > max(0, len(all)-maxFarewell); i-- {
		before := all[i-1]
		behind := before.number || unitWord(before.folded) || before.text == "," || before.text == "."
		if behind && !courtesy[all[i].folded] && all[i:].salutation() == len(all)-i {
			return i
		}
	}
	return len(all)
}

// names reports whether an atom can be part of an item's name.
func (a atom) names() bool { return a.kind == word || a.kind == named }

// refuses reports whether an atom excludes an item from the order.
func (a atom) refuses() bool { return a.kind == aside && refusals[a.folded] }

const (
	maxNameWords = 5
	maxAtoms     = 40 // bounds the search for related atoms; otherwise the time would be quadratic in the text
)

// nameAt returns the client's name that begins at i, and its number of atoms. If item is true, an item's name follows before a quantity.
func nameAt(atoms []atom, i int, item bool) (name atom, n int) {
	from := i
	for i < len(atoms) && (atoms[i].kind == mark || atoms[i].folded == "name" || atoms[i].folded == "नाम" || atoms[i].folded == "નામ") {
		i++
	}
	begin := i
	for i < min(len(atoms), begin+maxAtoms) &&
		(atoms[i].kind == word || i > begin && i+1 < len(atoms) && (atoms[i].text == "&" || atoms[i].text == ".") && atoms[i+1].kind == word) {
		i++
	}
	end, all := i, i
	for all < len(atoms) && (atoms[all].kind == noise || atoms[all].kind == named) {
		all++
	}
	if item && all < len(atoms) && atoms[all].quantity() && i > begin {
		for end = begin + 1; end < i && (ofANames[atoms[end].folded] || ofANames[atoms[end-1].folded] && atoms[end].text == "&" ||
			atoms[end].text == "&" || atoms[end-1].text == "&"); end++ {
		}
		if end == i && i > begin+1 && all == i { // all of it may be the name, without an item
			end--
		}
	}
	var words []string
	for _, a := range atoms[begin:end] {
		if a.text != "." {
			words = append(words, a.text)
		}
	}
	name = atom{kind: client, text: cut(strings.Join(words, " "), MaxClient)}
	if end < i-1 { // the name may have ended elsewhere
		name.folded = written(atoms[begin:i])
	}
	if len(words) > maxNameWords {
		name.text = ""
	}
	return name, end - from
}

func written(atoms []atom) string {
	all := make([]string, len(atoms))
	for i, a := range atoms {
		all[i] = a.text
	}
	return strings.Join(all, " ")
}

// only reports whether all names are in a set.
func only(atoms []atom, of map[string]bool) bool {
	return !has(atoms, func(a atom) bool { return a.names() && !of[a.folded] })
}

// parts splits a segment into parts with one entry each, and finds the names of clients.
func parts(atoms []atom, heads bool) (all [][]atom) {
	var (
		part    []atom
		seen    [unclear + 1]bool
		tail    int   // index in part: after the last quantity, client or slip
		between []int // indexes of parts that have a number without a unit before the next part
	)
	flush := func(keep int) {
		all = append(all, part[:keep])
		part, seen, tail = part[keep:], [unclear + 1]bool{}, 0
	}
	complete := func() bool { return has(part, atom.quantity) && has(part, atom.names) }
	for i := 0; i < len(atoms); i++ {
		a := atoms[i]
		switch {
		case a.kind == partyIs:
			name, n := nameAt(atoms, i+1, complete() || !has(part, atom.names))
			if name.text == "" {
				a.kind = aside
				break
			}
			a, i = name, i+n
		case a.kind == partyWas:
			words := len(part)
			for words > tail && part[words-1].kind == word {
				words--
			}
			if words > 0 && words == tail && part[words-1].kind == mark || len(part) == words {
				a.kind = aside
				break
			}
			if i+1 < len(atoms) && atoms[i+1].quantity() && !has(part[:words], atom.names) && len(part) > words+1 {
				words = len(part) - 1
			}
			a, _ = nameAt(part, words, false)
			part = part[:words]
		case a.text == ":" && complete() && only(part, totals):
			flush(len(part))
		case a.kind == mark && (a.text == ":" || a.text == "-"):
			behind, colon := i+1 == len(atoms), a.text == ":"
			if (!behind || has(part, atom.quantity)) && (!colon || !opens(atoms[i+1:]) || only(part, articles)) {
				break
			}
			if name, n := nameAt(part, 0, false); name.text != "" && !has(part[n:], func(a atom) bool { return a.kind != aside }) {
				a, part = name, append([]atom(nil), part[n:]...)
			}
		case a.kind == slip && heads:
			flush(len(part))
		case honorifics[a.folded] && len(part) > tail && !has(part[tail:], func(a atom) bool { return a.kind != word }) &&
			(complete() && tail > 0 || tail == 0 && i+1 < len(atoms) && atoms[i+1].kind == word):
			a, part = atom{kind: client, text: written(append(part[tail:], a))}, part[:tail]
		case a.kind == mark && strings.Contains(",.&+", a.text) || ands[a.folded]:
			if complete() && opens(atoms[i+1:]) || !has(part, atom.quantity) && has(part, atom.refuses) {
				flush(len(part))
			}
		case a.quantity() && seen[a.kind] && complete() && (has(part[tail:], atom.names) || !part[0].quantity()):
			if has(part[tail:], func(a atom) bool { return a.kind == word }) {
				if part[0].quantity() && !has(part[:tail], atom.names) {
					tail = len(part)
				}
				if part[tail-1].kind == bare && has(part[:tail-1], atom.quantity) {
					between = append(between, len(all))
				}
				flush(tail)
			}
		}
		part = append(part, a)
		if a.quantity() {
			seen[a.kind] = true
		}
		if a.quantity() || a.kind == client || a.kind == slip {
			tail = len(part)
		}
	}
	all = append(all, part)
	assign(all, between)
	return all
}

// assign decides which of two parts a number between them counts. It counts the later one if numbers are before the items, as in 2 payal
// 250 gm 3 kada 300 gm, and the earlier one if they are behind all of them. Otherwise it is unclear in both.
func assign(all [][]atom, between []int) {
	for _, i := range between {
		if one, n := all[i], len(all[i])-1; one[0].kind == bare {
			all[i], all[i+1] = one[:n], slices.Concat(one[n:], all[i+1])
		}
	}
	for _, i := range slices.Backward(between) {
		number, behind := &all[i][len(all[i])-1], all[i+1][len(all[i+1])-1].kind
		if number.kind == bare && behind != bare && behind != count {
			number.kind, all[i+1] = unclear, slices.Concat(all[i+1], []atom{{kind: unclear}})
		}
	}
}

// opens reports whether a new entry begins: words and a quantity before the next mark, or only words and, after a mark, only a quantity.
func opens(atoms []atom) bool {
	words, counted, wordsBefore := false, false, false
	for _, a := range atoms[:min(len(atoms), maxAtoms)] {
		switch {
		case a.kind == mark && strings.Contains(",.&+", a.text) || ands[a.folded]:
			if counted || wordsBefore {
				return words != wordsBefore && counted
			}
			words, wordsBefore = false, words
		default:
			words, counted = words || a.kind == word, counted || a.quantity()
		}
	}
	return words != wordsBefore && counted
}

// Tidy returns a text in the form for entries: one line without control characters, with at most the given number of characters.
func Tidy(text string, most int) string {
	return cut(strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.In(c, unicode.Cc, unicode.Cf) && c != joiner && c != nonJoiner || c == utf8.RuneError
	}), " "), most)
}

// joiner and nonJoiner join or separate the letters of Indian scripts.
const joiner, nonJoiner = '\u200d', '\u200c'

// cut returns at most the given number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most]))
}
