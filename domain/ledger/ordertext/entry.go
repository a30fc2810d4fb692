package ordertext

import (
	"slices"
	"strings"

	"bahi/domain/unit"
)

// item has the values of one part of a segment.
type item struct {
	name            []string
	client, slip    string
	held, slipFirst bool // the client, or the slip, is before the item
	weight, count   *atom
	bare            []atom
	unclear, extent bool // a quantity is left to the reviewer; the part has a quantity
	amid            bool // a number follows the first words of the name, without a unit
	behind          bool // a further word follows the name and a quantity, as size in: payal 250 gm size 12
	unused          []atom
}

// part reads an entry.
func (p *parser) part(atoms []atom) {
	it := item{}
	for i := range atoms {
		it.take(&atoms[i])
	}
	it.settle()
	name := cut(strings.Join(it.name, " "), MaxItem)
	switch {
	case !it.extent || name == "" || only(atoms, totals):
		if it.slip != "" {
			p.number(it.slip, true, false)
		}
		p.noEntry(atoms, it, name)
		return
	case len(p.order.Entries) == MaxEntries:
		p.order.Cut = true
		return
	}
	e := Entry{Item: name, Client: it.client}
	if it.weight != nil && it.weight.value > 0 && it.weight.value <= MaxWeight {
		e.Weight = unit.Grams(it.weight.value)
	} else if it.weight != nil {
		it.unused = append(it.unused, *it.weight)
	}
	if it.count != nil && it.count.value > 0 && it.count.value <= MaxQuantity {
		e.Quantity = it.count.value
	} else if it.count != nil {
		it.unused = append(it.unused, *it.count)
	}
	e.Confidence = it.confidence(e)
	for _, a := range it.unused {
		p.unused(a.text)
		e.Confidence = min(e.Confidence, doubted)
	}
	p.setClient(it)
	p.guessable = append(p.guessable, e.Client == "" && p.client == "")
	if e.Client == "" {
		e.Client = p.client
	}
	e.Slip = p.slip
	p.order.Entries, p.inherited, p.alone = append(p.order.Entries, e), append(p.inherited, p.behind), false
	if it.slip != "" {
		p.number(it.slip, !it.slipFirst, true)
	}
}

// take adds an atom.
func (it *item) take(a *atom) {
	it.extent = it.extent || a.quantity()
	switch a.kind {
	case word, named:
		switch {
		case len(it.name) == 0 && courtesy[a.folded]:
		case it.extent && len(it.name) > 0 && a.kind == word && (it.client != "" || it.another(a)):
			it.unused = append(it.unused, *a)
		default:
			if it.amid { // receipt 214 payal
				last := len(it.bare) - 1
				it.bare, it.unused, it.amid = it.bare[:last], append(it.unused, it.bare[last]), false
			}
			it.behind = it.behind || it.extent && len(it.name) > 0
			it.name = append(it.name, strings.Trim(a.text, "'"))
		}
	case weight:
		it.amid = false
		it.first(&it.weight, a)
	case count:
		it.amid = false
		it.first(&it.count, a)
	case bare:
		if it.behind { // the number may belong to that word
			it.unused = append(it.unused, *a)
			break
		}
		it.bare, it.amid = append(it.bare, *a), len(it.name) > 0 && len(it.bare) == 0 && it.weight == nil && it.count == nil
	case unclear:
		it.unclear, it.unused = true, append(it.unused, *a)
	case aside:
		it.behind = it.behind || it.extent && len(it.name) > 0
		it.unused = append(it.unused, *a)
	case client:
		if it.client != "" {
			it.unused = append(it.unused, *a)
			break
		}
		it.client, it.held = a.text, !it.extent && len(it.name) == 0
		if a.folded != "" {
			it.unused = append(it.unused, atom{text: a.folded})
		}
	case slip:
		it.slip, it.slipFirst = a.text, !it.extent && len(it.name) == 0
	case mark, noise, partyIs, partyWas:
	}
}

// another reports whether a word behind a quantity names another article: kada 50 gm, payal, ring 3 pcs.
func (it *item) another(a *atom) bool {
	return articles[a.folded] && !materials[a.folded] &&
		slices.ContainsFunc(it.name, func(name string) bool { return articles[strings.ToLower(name)] && !materials[strings.ToLower(name)] })
}

// first stores the first quantity of a kind.
func (it *item) first(of **atom, a *atom) {
	if *of != nil {
		it.unused = append(it.unused, *a)
		return
	}
	*of = a
}

const minWeight = 5_000 // thousandths: a smaller bare number counts pieces

// settle assigns numbers without a unit: first to the weight, then to the pieces (CONTRACT.md 4.3).
func (it *item) settle() {
	bare := it.bare
	it.unclear = it.unclear || len(bare) == 2 && bare[0].whole && !bare[1].whole // 4 250.5
	if len(bare) > 0 && it.weight == nil && !it.unclear && (len(bare) > 1 || it.count != nil || !bare[0].whole || bare[0].value >= minWeight) {
		it.weight, bare = &bare[0], bare[1:]
	}
	if len(bare) == 1 && it.count == nil && bare[0].whole {
		it.count, bare = &bare[0], nil
		it.count.value /= 1000
	}
	it.unused = append(it.unused, bare...)
}

// confidence returns the confidence of an entry in percent. Numbers with units are certain, numbers without units are
// guesses.
func (it *item) confidence(e Entry) int {
	sure := 50
	if it.weight != nil && it.weight.kind == weight {
		sure += 30
	}
	if it.count != nil && (it.count.kind == count || sure > 50) {
		sure += 15
	}
	if e.Weight == 0 {
		sure -= 20
	}
	return sure
}

// setClient applies a client. A client before its item applies until the next client. A client after its item applies to
// the entries since the previous client of the line.
func (p *parser) setClient(it item) {
	if it.held {
		p.client = it.client
	}
	for i := len(p.order.Entries) - 1; !it.held && it.client != "" && i >= p.line && p.guessable[i]; i-- {
		p.order.Entries[i].Client, p.guessable[i] = it.client, false
	}
}

// noEntry handles a part without an entry: a total, a line that may be the client's name, or unknown text.
func (p *parser) noEntry(atoms []atom, it item, name string) {
	switch {
	case name != "" && only(atoms, totals) && p.sumsUp(it):
	case !it.extent && it.client != "" && name == "":
		it.held = p.line == len(p.order.Entries)
		p.setClient(it)
		p.ignore(atoms)
	case !it.extent && it.client == "" && len(p.order.Entries) == 0 && name != "" && !only(atoms, articles) &&
		!has(atoms, func(a atom) bool { return a.kind == noise || a.kind == named }):
		if found, n := nameAt(atoms, 0, false); found.text != "" {
			if p.guess != "" {
				p.unused(p.guess)
				p.doubts = true
			}
			p.guess = found.text
			atoms = atoms[n:]
		}
		p.ignore(atoms)
	default:
		p.ignore(atoms)
	}
}

// sumsUp reports whether a total equals the sum of the entries before it.
func (p *parser) sumsUp(it item) bool {
	var grams, pieces int64
	for _, e := range p.order.Entries {
		grams, pieces = grams+int64(e.Weight), pieces+e.Quantity
	}
	return len(it.unused) == 0 && (it.weight == nil || it.weight.value == grams) && (it.count == nil || it.count.value == pieces)
}

// number applies a slip number to the entries after it. If behind is true, it also applies to the entries since the previous number. If own
// is true, it applies only to the last entry.
func (p *parser) number(slip string, behind, own bool) {
	all := p.order.Entries
	p.slip, p.behind = slip, behind
	for i := len(all) - 1; i >= 0 && (own || behind && (all[i].Slip == "" || p.inherited[i])); i-- {
		all[i].Slip, p.inherited[i], own = slip, false, false
	}
}

// ignore reports atoms that no rule used, except noise words.
func (p *parser) ignore(atoms []atom) {
	var run []string
	flush := func() {
		if len(run) > 0 {
			p.unused(strings.Join(run, " "))
			p.doubts = true
		}
		run = nil
	}
	for _, a := range atoms {
		switch {
		case a.kind == noise, a.kind == mark && len(run) == 0, a.kind == slip, a.kind == client && a.folded == "":
			flush()
		case a.kind == mark:
		case a.kind == client:
			run = append(run, a.folded)
		default:
			run = append(run, a.text)
		}
	}
	flush()
}

const maxQuote = 100

// unused records an unused part of the text.
func (p *parser) unused(text string) {
	if text != "" && len(p.order.Unused) < MaxUnused {
		p.order.Unused = append(p.order.Unused, cut(text, maxQuote))
	}
}
