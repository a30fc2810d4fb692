package knowledge

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/wording"
)

// The weights of a question's words in the choice of items.
const (
	minItems = 10   // a word in fewer items has the weight of a word in this number of items
	unheld   = 2    // factor of the greatest weight, for a word in no item
	known    = 0.75 // part of a missing attribute's weight that an item with a number does not need
	nearly   = 1e-9
	maxPiece = 300 // maximum characters of a piece

	maxQuantity = 2 // digits
)

// Quoted is a reply that quotes passages.
type Quoted struct {
	Text string
	From []int // indexes of its passages
}

// Bounds are the minimum share of a question's words, weighted by rarity, and the maximum length of a quote.
type Bounds struct {
	Coverage   float64
	Characters int
}

// Quote returns the items of the passages that match a question best: paragraphs, rows or answers. An item must have more than the minimum
// share of the question's words. Quote returns all of several equal items, and none if no item has a thing that the question names.
func (s *Store) Quote(ctx context.Context, bot int64, question string, passages, titles []string, b Bounds) (q Quoted, err error) {
	words, _, err := s.words(ctx, bot, wording.WholeNumbers(question))
	if err != nil || len(words) == 0 {
		return q, err
	}
	var all []item
	_, aboutStatement := asksStatement(question)
	for i, p := range passages {
		for _, it := range items(p) {
			if aboutStatement && it.stated() { // no row has all words of the question
				continue
			}
			it.passage, it.outer = i, append(it.outer, titles[i])
			all = append(all, it)
		}
	}
	c := choice{words: words}
	for _, w := range words {
		c.days = append(c.days, weekday(w.text))
	}
	return q.of(&c, c.best(all, b.Coverage, several.MatchString(question)), b.Characters), nil
}

// choice chooses the items that a question names. Its lists are by the words of the question.
type choice struct {
	words []word
	days  []int // the weekday, or -1

	weights []float64
	sum     float64 // of the weights
	headed  []bool  // a heading has the word
	titled  []bool  // a heading of items is the word

	rows, columns matches // of the texts and of the column names of lists
}

// held is how well an item contains each word of the question.
type held struct {
	item

	own   []float64 // in its text
	whole []float64 // with its headings, column names and title
	score float64
}

// fits returns how well a text contains each word of the question.
func (c *choice) fits(text string) []float64 {
	fits := make([]float64, len(c.words))
	for term := range wording.Terms(wording.WholeNumbers(text)) {
		stem := term
		if !wording.IsNumbered(term) {
			stem = wording.Stem(term)
		}
		for i, w := range c.words {
			if term == w.text {
				fits[i] = 1
			}
			for _, m := range w.matches {
				if m.term == term || m.term == stem {
					fits[i] = max(fits[i], m.fit)
				}
			}
		}
	}
	if slices.Max(c.days) >= 0 {
		days := daysIn(text)
		for i, day := range c.days {
			if day >= 0 && days[day] {
				fits[i] = max(fits[i], dayFit)
			}
		}
	}
	return fits
}

// best returns the items that match the question best, in order, if the match exceeds the minimum. joined: the question
// names several items.
func (c *choice) best(items []item, least float64, joined bool) (best []held) {
	all := c.hold(items)
	c.weigh(all)
	top := 0.0
	for n := range all {
		if joined || !c.elsewhere(all[n]) {
			all[n].score = c.score(all[n])
		}
		top = max(top, all[n].score)
	}
	if top == 0 || !joined && top <= least && top < 1-nearly {
		return nil
	}
	loose := 0
	for _, h := range all {
		if h.score < top-nearly {
			continue
		}
		if best = append(best, h); !h.listed {
			loose++
		}
	}
	switch {
	case top < 1-nearly && loose > 1: // ambiguous
		return nil
	case joined:
		return c.others(all, best, least)
	}
	return best
}

// hold returns how well each item contains the words of the question.
func (c *choice) hold(items []item) []held {
	all := make([]held, len(items))
	c.headed, c.titled, c.rows, c.columns = make([]bool, len(c.words)), make([]bool, len(c.words)), matches{}, matches{}
	beneath := map[string]int{}
	for _, it := range items {
		beneath[it.place()]++
	}
	for n, it := range items {
		own := it.text
		if beneath[it.place()] == 1 && !it.listed && len(it.heads) > 0 {
			own += "\n" + it.heads[len(it.heads)-1]
		}
		h := held{item: it, own: c.fits(own)}
		h.whole = slices.Clone(h.own)
		for i, fit := range c.fits(strings.Join(append(it.heads, it.outer...), "\n")) {
			h.whole[i] = max(h.whole[i], fit)
			c.headed[i] = c.headed[i] || fit > 0
			c.titled[i] = c.titled[i] || fit > 0 && slices.ContainsFunc(it.heads, func(head string) bool {
				return len(strings.Fields(head)) == 1 && c.fits(head)[i] >= synonymFit
			})
		}
		inNames := c.fits(it.columns)
		for i, fit := range inNames {
			if fit > 0 && fit >= h.own[i] && !c.beside(it, i) {
				h.own[i] = 0
			}
		}
		c.columns.raise(it, inNames)
		c.rows.raise(it, h.own)
		all[n] = h
	}
	return all
}

// weigh sets the weights of the words by their rarity in the items. A word for the shop in no item has no weight: a bot's texts are the
// shop's.
func (c *choice) weigh(all []held) {
	total := float64(max(len(all), minItems))
	c.weights, c.sum = make([]float64, len(c.words)), 0
	for i, w := range c.words {
		has := 0
		for _, h := range all {
			if h.whole[i] > 0 {
				has++
			}
		}
		of := float64(max(has, 1))
		switch c.weights[i] = math.Log(1 + (total-of+0.5)/(of+0.5)); {
		case has == 0 && means(w.text, "shop"):
			c.weights[i] = 0
		case has == 0:
			c.weights[i] *= unheld
		}
		c.sum += c.weights[i]
	}
}

// score returns the share of the question's words in an item, by weight. It is 0 if the item lacks a word, and its text has no thing that
// the question names: only its headings match.
func (c *choice) score(h held) float64 {
	score, of := 0.0, c.sum
	complete, own := true, false
	for i, w := range c.words {
		score += c.weights[i] * h.whole[i]
		own = own || h.own[i] > 0 && w.isThing()
		switch {
		case h.whole[i] > 0 || c.weights[i] == 0:
			continue
		case attributes[stem(w.text)] && (digits.MatchString(h.text) || strings.Contains(h.text, "@")): // "Kada 300" has no word for a price
			of -= known * c.weights[i]
		case c.headed[i] && h.listed || c.titled[i] && w.isThing(): // the question names another list or section
			of += c.weights[i]
		}
		complete = false
	}
	if !complete && !own {
		return 0
	}
	return score / of
}

// elsewhere reports whether another row of the item's list has a thing that the question names and that the item lacks. It also reports
// whether the item's cell of the column that the question names is empty.
func (c *choice) elsewhere(h held) bool {
	for i, w := range c.words {
		if h.listed && (w.isThing() && h.own[i] == 0 && c.rows[h.place()][i] >= synonymFit ||
			h.whole[i] == 0 && c.columns[h.place()][i] >= synonymFit) {
			return true
		}
	}
	return false
}

// isThing reports whether a word is neither a word for an attribute, such as a price, nor an amount.
func (w word) isThing() bool { return !attributes[stem(w.text)] && !amount(w.text) }

// matches are the best matches of each word of a question in rows, by place.
type matches map[string][]float64

func (m matches) raise(row item, fits []float64) {
	if !row.listed {
		return
	}
	best := m[row.place()]
	if best == nil {
		best = make([]float64, len(fits))
		m[row.place()] = best
	}
	for i, fit := range fits {
		best[i] = max(best[i], fit)
	}
}

// amount reports whether a word is a number that may be a quantity. A larger number, such as 925, is the name of a thing.
func amount(word string) bool {
	return numerals[word] ||
		utf8.RuneCountInString(word) <= maxQuantity && !strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsDigit(c) })
}

var numerals = func() map[string]bool {
	all := map[string]bool{}
	for word := range wording.Terms(`two three four five six seven eight nine ten dozen teen char chaar panch paanch chhe saat aath nau das
		तीन चार पांच पाँच छह सात आठ नौ दस બે ત્રણ ચાર પાંચ
		છ સાત આઠ નવ દસ`) {
		all[word] = true
	}
	return all
}()

// others adds further items for a question that names several. They are from the lists of the best items. For each word that the best items
// lack, it adds those items with the word that have most of the missing words.
func (c *choice) others(all, best []held, least float64) []held {
	heads := best[0].heads
	covered, score := slices.Clone(best[0].whole), 0.0
	gain := func(h held) (n float64) {
		for i, fit := range h.own {
			if best[0].whole[i] == 0 {
				n += fit
			}
		}
		return n
	}
	for i := range covered {
		top, most := 0.0, 0.0
		for _, h := range all {
			if covered[i] == 0 && h.own[i] >= max(top, nearly) && h.listed && slices.Equal(h.heads, heads) {
				if h.own[i] > top {
					top, most = h.own[i], 0
				}
				most = max(most, gain(h))
			}
		}
		for _, h := range all {
			same := func(b held) bool { return b.text == h.text && b.passage == h.passage }
			if top > 0 && h.own[i] == top && gain(h) == most && h.listed && slices.Equal(h.heads, heads) && !slices.ContainsFunc(best, same) {
				best = append(best, h)
			}
		}
		covered[i] = max(covered[i], top)
		score += c.weights[i] * covered[i] / c.sum
	}
	if score <= least && score < 1-nearly {
		return nil
	}
	return best
}

// place returns a key of an item's passage and headings.
func (i item) place() string { return strconv.Itoa(i.passage) + "\n" + strings.Join(i.heads, "\n") }

// beside reports whether an item has a word of the question outside its column names.
func (c *choice) beside(it item, word int) bool {
	return c.fits(cell.ReplaceAllString(it.text, "; "))[word] > 0
}

// several matches the words and signs by which a question names several things.
var several = regexp.MustCompile(`[,+&/、،]|(?i)(?:^|[\s\pZ])(?:and|or|aur|ya|ane|और|या|તથા|અને|કે|व|आणि|किंवा|ও|এবং|ਅਤੇ|ਜਾਂ|` +
	`ଏବଂ|மற்றும்|అలాగే|మరియు|ಮತ್ತು|കൂടാതെ|اور|یا)(?:[\s\pZ]|$)`)

// of adds items to the reply, each after its headings.
func (q Quoted) of(c *choice, chosen []held, most int) Quoted {
	var text strings.Builder
	var heads []string
	left := most
	seen := map[string]bool{}
	for _, h := range chosen {
		head := strings.Join(h.heads, "\n\n")
		key := head + "\n" + h.text
		if seen[key] { // two passages overlap
			continue
		}
		seen[key] = true
		before := ""
		switch same := text.Len() > 0 && slices.Equal(h.heads, heads); {
		case same && h.listed:
			before = "\n"
		case same || text.Len() > 0 && head == "":
			before = "\n\n"
		case text.Len() > 0:
			before = "\n\n" + head + "\n\n"
		case head != "":
			before = head + "\n\n"
		}
		size := utf8.RuneCountInString(before)
		if text.Len() > 0 && size+utf8.RuneCountInString(h.text) > left {
			continue
		}
		said := c.around(h.text, left-size)
		text.WriteString(before + said)
		left -= size + utf8.RuneCountInString(said)
		heads = h.heads
		if !slices.Contains(q.From, h.passage) {
			q.From = append(q.From, h.passage)
		}
	}
	q.Text = text.String()
	return q
}

// around returns at most the given number of characters around the words of the question.
func (c *choice) around(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	most -= 2 // for the marks of omitted text
	pieces := piecesOf(text)
	best, score := 0, -1.0
	for i, p := range pieces {
		sum := 0.0
		for j, fit := range c.fits(p) {
			sum += fit * c.words[j].weight
		}
		if sum > score {
			best, score = i, sum
		}
	}
	from, to := best, best+1
	size := utf8.RuneCountInString(pieces[best])
	for grown := true; grown; {
		grown = false
		if to < len(pieces) && size+utf8.RuneCountInString(pieces[to]) <= most {
			size, to, grown = size+utf8.RuneCountInString(pieces[to]), to+1, true
		}
		if from > 0 && size+utf8.RuneCountInString(pieces[from-1]) <= most {
			size, from, grown = size+utf8.RuneCountInString(pieces[from-1]), from-1, true
		}
	}
	said := strings.TrimSpace(strings.Join(pieces[from:to], ""))
	if from > 0 {
		said = "…" + said
	}
	if to < len(pieces) {
		said += "…"
	}
	return said
}

// piecesOf splits a text at the ends of sentences and lines, and long sentences between words. The pieces together are
// the text.
func piecesOf(text string) (all []string) {
	runes := []rune(text)
	from, space := 0, 0
	for i, r := range runes {
		next := rune(' ')
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		if unicode.IsSpace(r) {
			space = i + 1
		}
		end := r == '\n' || strings.ContainsRune("。！？।॥۔", r) || strings.ContainsRune(".!?;", r) && unicode.IsSpace(next)
		cut := i + 1
		switch {
		case end:
		case i+1-from >= maxPiece && space > from:
			cut = space
		case i+1-from >= maxPiece && !unicode.In(next, unicode.M, unicode.Cf):
		default:
			continue
		}
		all = append(all, string(runes[from:cut]))
		from = cut
	}
	if from < len(runes) {
		all = append(all, string(runes[from:]))
	}
	return all
}
