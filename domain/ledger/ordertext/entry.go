package ordertext

import (
	"strings"

	"bahi/domain/unit"
)

// quantities are the numbers of an entry.
type quantities struct {
	weight, count     int64   // milligrams, pieces; 0: none
	weighted, counted bool    // a number had the unit, whatever its limits
	bare              []token // numbers without a unit
	numbers           int
	name              []string
}

// assay is a fineness that is written without a unit.
func assay(t token) bool {
	return t.whole && (t.text == "916" || t.text == "925" || t.text == "750" || t.text == "999")
}

// entry reads an entry, and reports whether there was one.
func (p *parser) entry(tokens []token, client string) bool {
	q := quantities{}
	for i := 0; i < len(tokens); i++ {
		i += q.take(tokens, i)
	}
	q.settle()
	item := cut(strings.Trim(strings.Join(q.name, " "), " -&'"), MaxItem)
	if q.numbers == 0 || item == "" || q.total() {
		return false
	}
	if len(p.order.Entries) == MaxEntries {
		p.order.Cut = true
		return true
	}
	e := Entry{Item: item, Client: client}
	if q.weight > 0 && q.weight <= MaxWeight {
		e.Weight = unit.Grams(q.weight)
	}
	if q.count > 0 && q.count <= MaxQuantity {
		e.Quantity = q.count
	}
	if e.Client == "" && p.marked {
		e.Client = p.client
	}
	e.Confidence = confidence(e, q)
	if e.Client == "" {
		p.guessable = append(p.guessable, len(p.order.Entries))
	}
	p.order.Entries, p.began = append(p.order.Entries, e), true
	return true
}

// total reports whether the entry is the sum of those before it.
func (q *quantities) total() bool {
	for _, word := range q.name {
		if !totals[fold.String(word)] {
			return false
		}
	}
	return true
}

// confidence says in percent how sure an entry is: units are sure, numbers without one are guesses.
func confidence(e Entry, q quantities) int {
	sure := 50
	if q.weighted {
		sure += 30
	}
	if q.counted || q.weighted && e.Quantity != 0 {
		sure += 15
	}
	if e.Weight == 0 {
		sure -= 20
	}
	return sure
}

// take reads the token at i and returns how many more it took.
func (q *quantities) take(tokens []token, i int) (more int) {
	t := tokens[i]
	at := func(k int) token {
		if k >= 0 && k < len(tokens) {
			return tokens[k]
		}
		return token{}
	}
	switch {
	case t.number:
		return q.number(tokens, i, at)
	case prices[t.folded] || prices[t.text]:
		for more = 0; more < 3 && at(i+1+more).text != "" && !at(i+1+more).word(); more++ {
			if found := at(i + 2 + more); at(i+1+more).number && (ofTheName[found.folded] || found.text == "%") { // a touch, no price
				return more
			} else if at(i + 1 + more).number {
				return more + 1
			}
		}
		return 0
	case t.folded == "x" && at(i+1).number && at(i+1).whole:
		q.pieces(at(i+1).value / 1000)
		return 1 + boolean(counts[at(i+2).folded] == 1)
	case (countMarks[t.folded] || counts[t.folded] == 1 && !q.counted) && nextNumber(tokens, i) > 0 && at(i+nextNumber(tokens, i)).whole && !unitWord(at(i+nextNumber(tokens, i)+1).folded):
		n := nextNumber(tokens, i)
		q.pieces(at(i+n).value / 1000)
		return n
	case weightMarks[t.folded] && nextNumber(tokens, i) > 0 && !unitWord(at(i+nextNumber(tokens, i)+1).folded):
		n := nextNumber(tokens, i)
		q.weigh(at(i+n).value, 1000)
		return n
	case t.word() && (noise[t.folded] || weightMarks[t.folded] || countMarks[t.folded] || slipMarks[t.folded] || unitWord(t.folded)):
	case t.word() && (ands[t.folded] || t.folded == "for" || t.folded == "no" || t.folded == "x"):
	case t.word() && (len(q.name) == 0 || !t.glued || at(i-1).number):
		q.name = append(q.name, t.text)
	case t.word(): // such as the second half of k-pin
		q.name[len(q.name)-1] += glue(at(i-1)) + t.text
	}
	return 0
}

// glue is what joins two words that are written as one.
func glue(between token) string {
	if between.text == "-" || between.text == "/" || between.text == "." || between.text == "&" {
		return between.text
	}
	return " "
}

// nextNumber returns how many tokens further a number is, after a mark at most; 0: there is none.
func nextNumber(tokens []token, i int) int {
	for k := 1; k <= 2 && i+k < len(tokens); k++ {
		if tokens[i+k].number {
			return k
		}
		if tokens[i+k].word() {
			return 0
		}
	}
	return 0
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (q *quantities) number(tokens []token, i int, at func(int) token) (more int) {
	t, next := tokens[i], at(i+1)
	switch {
	case moment(tokens, i) > 0:
		return moment(tokens, i)
	case next.text == "-" && next.glued && weights[at(i+3).folded] != 0 && t.value < at(i+2).value && at(i+2).value <= 2*t.value: // 250-300 gm
		q.weigh(unsure, 1)
		return 3
	case weights[next.folded] != 0:
		q.weigh(t.value, weights[next.folded])
		return 1
	case counts[next.folded] != 0 && t.whole:
		q.pieces(t.value / 1000 * counts[next.folded])
		return 1
	case ofTheName[next.folded] || next.text == "%" || next.text == `"`:
		q.name = append(q.name, t.text+next.text)
		return 1
	case sizes[at(i-1).folded] || assay(t) || t.glued && at(i-1).word():
		if t.glued && len(q.name) > 0 {
			q.name[len(q.name)-1] += t.text
			return 0
		}
		q.name = append(q.name, t.text)
		return 0
	case rupees[next.folded] || rupees[next.text]:
		return 1
	case next.text == "/" && at(i+2).text == "-": // 500/-
		return 2
	case next.folded == "x" && t.whole && !at(i+2).number:
		q.pieces(t.value / 1000)
		return 1
	case t.value < 0: // a phone
		return 0
	}
	q.numbers++
	q.bare = append(q.bare, t)
	return 0
}

// moment returns how many more tokens belong to a date or a time, such as 12/3/25 or 10:30; 0: it is none.
func moment(tokens []token, i int) (more int) {
	for i+more+2 < len(tokens) {
		mark, next := tokens[i+more+1], tokens[i+more+2]
		if !mark.glued || !next.glued || !next.number || mark.text != "/" && mark.text != ":" && mark.text != "." && mark.text != "-" {
			break
		}
		more += 2
	}
	if more == 2 && tokens[i+1].text == "-" { // 250-4 is no date
		return 0
	}
	return more
}

// unsure is a weight that a message leaves to who reads it: none is taken.
const unsure = -1

func (q *quantities) weigh(thousandths, milligrams int64) {
	q.numbers++
	if thousandths < 0 || q.weighted {
		q.weighted = true
		return
	}
	q.weight, q.weighted = (thousandths*milligrams+500)/1000, true
}

func (q *quantities) pieces(n int64) {
	q.numbers++
	if !q.counted {
		q.count, q.counted = n, true
	}
}

const leastWeight = 5_000 // thousandths: a smaller bare number counts pieces

// settle gives the numbers without a unit their meaning.
func (q *quantities) settle() {
	bare := q.bare
	if len(bare) > 0 && !q.weighted && (len(bare) > 1 || q.counted || !bare[0].whole || bare[0].value >= leastWeight) {
		q.weight, bare = bare[0].value, bare[1:]
	}
	if len(bare) > 0 && !q.counted && bare[0].whole {
		q.count = bare[0].value / 1000
	}
}
