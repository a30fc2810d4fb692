// Package ordertext reads orders that people write in chats, by rules and without a model. It makes no mistake expensive: what it returns
// is a proposal that somebody reviews (section 4 of the contract).
package ordertext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/unit"
)

// Order is what a text orders.
type Order struct {
	Slip    string // of the paper slip; empty: none
	Entries []Entry
	Cut     bool // the text has more entries than are read
}

// Entry is one item of an order.
type Entry struct {
	Item       string
	Weight     unit.Grams // 0: unknown
	Quantity   int64      // 0: unknown
	Client     string     // empty: unknown
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
)

// Parse returns what a text orders. It never fails: a text without an order has no entries.
func Parse(text string) Order {
	p := parser{}
	for _, line := range joined(strings.Split(deadline.ReplaceAllString(normal(text), " "), "\n")) {
		for _, segment := range segments(line) {
			p.segment(segment)
		}
	}
	p.finish()
	return p.order
}

type parser struct {
	order     Order
	client    string // holds until the next
	marked    bool   // the client was marked; otherwise it is a guess
	guess     string // the last line before the first item that may be a client
	began     bool   // an item was read
	guessable []int  // entries without a marked client
}

// joined appends lines without letters, other than units, to the lines before.
func joined(lines []string) (all [][]token) {
	for _, line := range lines {
		tokens := tokenize(line)
		if len(tokens) == 0 {
			continue
		}
		if len(all) > 0 && onlyQuantities(tokens) {
			all[len(all)-1] = append(all[len(all)-1], tokens...)
			continue
		}
		all = append(all, tokens)
	}
	return all
}

// onlyQuantities reports whether a line has numbers and no words but units.
func onlyQuantities(tokens []token) bool {
	found := false
	for _, t := range tokens {
		if t.number {
			found = true
		}
		if t.word() && !unitWord(t.folded) && t.folded != "x" {
			return false
		}
	}
	return found
}

func unitWord(word string) bool { return weights[word] != 0 || counts[word] != 0 }

// segments splits a line at semicolons and at its numbered bullets, and drops bullets.
func segments(line []token) (all [][]token) {
	var (
		current []token
		bullet  int64
	)
	flush := func() {
		if len(current) > 0 {
			all = append(all, current)
		}
		current = nil
	}
	for i := 0; i < len(line); i++ {
		t := line[i]
		if t.text == ";" || t.text == "|" {
			flush()
			continue
		}
		if n, isBullet := bulletAt(line, i); isBullet && (len(current) == 0 || bullet != 0 && n == bullet+1) {
			flush()
			bullet = n
			i++ // its mark
			continue
		}
		if len(current) == 0 && (t.text == "-" || t.text == "*" || t.text == "•" || t.text == "·" || t.text == ">") {
			continue
		}
		current = append(current, t)
	}
	flush()
	return all
}

const mostBullet = 500

// bulletAt returns the number of a bullet such as 2) or 2. before a word.
func bulletAt(line []token, i int) (n int64, is bool) {
	if i+2 >= len(line) || !line[i].number || !line[i].whole || line[i].value < 0 {
		return 0, false
	}
	mark, next := line[i+1], line[i+2]
	n = line[i].value / 1000
	return n, n >= 1 && n <= mostBullet && mark.glued && (mark.text == "." || mark.text == ")") && (next.word() || next.number) && (!next.word() || !unitWord(next.folded))
}

// segment reads one segment.
func (p *parser) segment(tokens []token) {
	tokens = p.slip(tokens)
	tokens, own, consumed := p.mark(tokens)
	if consumed {
		return
	}
	tokens, inline := inlineClient(tokens)
	made := false
	for _, part := range parts(tokens) {
		if p.entry(part, first(inline, own)) {
			made = true
		}
	}
	if !made && !p.began && !hasNumber(tokens) {
		p.candidate(tokens)
	}
}

// slip takes a slip number from the head of a segment, before the first item.
func (p *parser) slip(tokens []token) []token {
	i := 0
	switch {
	case len(tokens) > 0 && slipMarks[tokens[0].folded]:
		i = 1
	case len(tokens) > 0 && tokens[0].text == "#":
	default:
		return tokens
	}
	for i < len(tokens) && !tokens[i].number && i < 5 && (!tokens[i].word() || tokens[i].folded == "no" || tokens[i].folded == "number" || tokens[i].folded == "नंबर" || tokens[i].folded == "નંબર") {
		i++
	}
	if i >= len(tokens) || !tokens[i].number || !tokens[i].whole {
		return tokens
	}
	if p.order.Slip == "" && !p.began {
		p.order.Slip = strings.ReplaceAll(tokens[i].text, ",", "")
	}
	for i++; i < len(tokens) && !tokens[i].word() && !tokens[i].number; i++ {
	}
	return tokens[i:]
}

// mark reads a client that a word marks, or a colon at the end of a line without numbers. own is the client of this segment's items.
// consumed: nothing is left of the segment.
func (p *parser) mark(tokens []token) (rest []token, own string, consumed bool) {
	if len(tokens) == 0 {
		return tokens, "", true
	}
	if !clientMarks[tokens[0].folded] {
		last := tokens[len(tokens)-1].text
		if (last == ":" || last == "-") && !hasNumber(tokens) {
			if name := nameOf(tokens); name != "" {
				p.hold(name)
				return nil, "", true
			}
		}
		if i := colon(tokens); i > 0 && hasNumber(tokens[i:]) && !hasNumber(tokens[:i]) && i <= 4 && hasItem(tokens[i+1:]) {
			if name := nameOf(tokens[:i]); name != "" {
				p.hold(name)
				return tokens[i+1:], name, false
			}
		}
		return tokens, "", false
	}
	rest = tokens[1:]
	for len(rest) > 0 && (!rest[0].word() && !rest[0].number || rest[0].folded == "name" || rest[0].folded == "नाम" || rest[0].folded == "નામ") {
		rest = rest[1:]
	}
	end := len(rest)
	if hasNumber(rest) {
		end = 0
		for i, t := range rest {
			if t.number {
				break
			}
			if t.text == ":" || t.text == "-" || t.text == "," {
				end = i
				break
			}
		}
		if end == 0 { // nothing separates the name from the item: take one word
			end = min(1, len(rest))
		}
	}
	name := nameOf(rest[:end])
	if name == "" {
		return tokens, "", false
	}
	p.hold(name)
	return rest[end:], name, end == len(rest)
}

// hold makes a client that of the items that follow.
func (p *parser) hold(name string) { p.client, p.marked = name, true }

func colon(tokens []token) int {
	for i, t := range tokens {
		if t.text == ":" {
			return i
		}
	}
	return -1
}

// hasItem reports whether a word is not a unit.
func hasItem(tokens []token) bool {
	for _, t := range tokens {
		if t.word() && !unitWord(t.folded) && !noise[t.folded] && !weightMarks[t.folded] && !countMarks[t.folded] {
			return true
		}
	}
	return false
}

// inlineClient takes "for <name>" from within a segment. The name ends at a number or a mark.
func inlineClient(tokens []token) (rest []token, name string) {
	for i := 1; i+1 < len(tokens); i++ {
		if tokens[i].folded != "for" && tokens[i].folded != "party" && tokens[i].folded != "पार्टी" && tokens[i].folded != "પાર્ટી" {
			continue
		}
		end := i + 1
		for end < min(len(tokens), i+mostTokens) && (tokens[end].word() && !ands[tokens[end].folded] || end == i+1 && tokens[end].text == ":") {
			end++
		}
		if name = nameOf(tokens[i+1 : end]); name != "" {
			return append(append([]token(nil), tokens[:i]...), tokens[end:]...), name
		}
	}
	return tokens, ""
}

// candidate remembers a line that may be a client.
func (p *parser) candidate(tokens []token) {
	if name := nameOf(tokens); name != "" && utf8.RuneCountInString(name) <= MaxClient {
		p.guess = name
	}
}

const mostNameWords = 5

// nameOf returns the words of a name, "" if they are none.
func nameOf(tokens []token) string {
	var words []string
	whole := ""
	for _, t := range tokens {
		switch {
		case t.number:
			return ""
		case t.word() && (noise[t.folded] || unitWord(t.folded)):
			return ""
		case t.word():
			words, whole = append(words, t.text), whole+t.folded
		case t.text == "&" || t.text == ".":
			if len(words) > 0 && t.text == "&" {
				words = append(words, t.text)
			}
		}
	}
	if len(words) > mostNameWords || greetings[whole] {
		return ""
	}
	return cut(strings.Trim(strings.Join(words, " "), " &"), MaxClient)
}

func hasNumber(tokens []token) bool {
	for _, t := range tokens {
		if t.number {
			return true
		}
	}
	return false
}

// parts splits a segment where a second number with a unit follows a mark or an "and", with letters between.
func parts(tokens []token) (all [][]token) {
	start, counted := 0, false
	for i, t := range tokens {
		if i > start && counted && (t.text == "," || t.text == "+" || ands[t.folded]) && opens(tokens[i+1:]) {
			all, start, counted = append(all, tokens[start:i]), i+1, false
			continue
		}
		counted = counted || withUnit(tokens, i)
	}
	return append(all, tokens[start:])
}

// mostTokens bounds how far is looked for what belongs together, so that no text takes a time of its length squared.
const mostTokens = 40

// opens reports whether the tokens up to the next mark have a word and then a number with a unit, or the other way round.
func opens(tokens []token) bool {
	words, counted := false, false
	tokens = tokens[:min(len(tokens), mostTokens)]
	for i, t := range tokens {
		if i > 0 && (t.text == "," || t.text == "+" || ands[t.folded]) && words && counted {
			return true
		}
		counted = counted || withUnit(tokens, i)
		words = words || t.word() && !unitWord(t.folded) && t.folded != "x"
	}
	return words && counted
}

func withUnit(tokens []token, i int) bool {
	return tokens[i].number && i+1 < len(tokens) && unitWord(tokens[i+1].folded)
}

// finish gives the guessed client to the entries before which no client was marked.
func (p *parser) finish() {
	if p.guess == "" {
		return
	}
	for _, i := range p.guessable {
		p.order.Entries[i].Client = p.guess
	}
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// Tidy returns a text of a message as an entry has it: one line without control characters, of at most so many characters.
func Tidy(text string, most int) string {
	return cut(strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.In(c, unicode.Cc, unicode.Cf) && c != joiner && c != nonJoiner || c == utf8.RuneError
	}), " "), most)
}

// joiner and nonJoiner join the letters of Indian scripts, or part them.
const joiner, nonJoiner = '\u200d', '\u200c'

// cut returns at most so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most]))
}
