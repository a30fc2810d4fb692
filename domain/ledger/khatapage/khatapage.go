// Package khatapage converts the recognised words of a khata page to entries: words to lines, lines to columns, columns
// to fields (CONTRACT.md 5.2). The result is a proposal with a warning for each guess.
package khatapage

import (
	"fmt"
	"slices"
	"strings"

	"bahi/domain/unit"
)

// Word is a recognised word and its rectangle, in pixels or points from the top left corner.
type Word struct {
	Left, Top, Right, Bottom int

	Text       string
	Confidence int  // 0 to 100
	Struck     bool // struck out
	Cut        bool // at the edge of the picture
}

func (w Word) middle() int  { return (w.Left + w.Right) / 2 }
func (w Word) middleY() int { return (w.Top + w.Bottom) / 2 }

// Page has the words of one page.
type Page struct {
	Width int
	Words []Word
}

// Account is an account whose name a page may contain.
type Account struct {
	Ledger string
	ID     int64
	Name   string
}

// Options has the known facts about the pages.
type Options struct {
	Accounts []Account
	Today    unit.Date
	OutLeft  bool // the OUT side of an unmarked page is at the left
	Similar  bool // similar names match accounts too, and a line of text continues the entry above
}

// The sides of an entry.
const (
	In  = "in"
	Out = "out"
)

// Entry is one line of a page. Unknown fields are nil.
type Entry struct {
	ID         int64         `json:"id" doc:"Number of the entry on these pages, from 1"`
	Page       int           `json:"page" doc:"Number of the page, from 1"`
	Side       string        `json:"side" enum:"in,out" doc:"Side: in or out"`
	Date       *unit.Date    `json:"date" doc:"Date; null: not read"`
	Party      *string       `json:"party_name" doc:"Name of the party as written"`
	Ledger     *string       `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger; null: no account has this name"`
	Account    *int64        `json:"account_id" doc:"ID of the account"`
	Item       *string       `json:"item_name" doc:"Name of the item"`
	Weight     *unit.Grams   `json:"weight" doc:"Weight in grams"`
	Touch      *unit.Percent `json:"touch" doc:"Purity in percent"`
	Fine       *unit.Grams   `json:"fine_weight" doc:"Fine weight in grams"`
	Amount     *unit.Money   `json:"amount" doc:"Amount in rupees"`
	Confidence unit.Percent  `json:"confidence" doc:"0 to 1"`
	Raw        string        `json:"raw_text" doc:"Text as it was read"`
}

// Result is the result of reading pages.
type Result struct {
	Entries  []Entry  `json:"entries" nullable:"false"`
	Warnings []string `json:"warnings" nullable:"false"`
}

const (
	// MaxEntries is the maximum number of entries of one submit (CONTRACT.md I20).
	MaxEntries  = 1000
	maxWarnings = 100

	minConfidence = 30 // minimum confidence of a used word

	unsure = 6 * unit.Whole / 1000 // maximum confidence of an entry with doubts (CONTRACT.md R1)
)

// Read reads pages in their order.
func Read(pages []Page, o Options) Result {
	r := &reader{Options: o, names: namesOf(o.Accounts), Result: Result{Entries: []Entry{}, Warnings: []string{}}}
	for i, p := range pages {
		r.page = i + 1
		r.read(p)
	}
	if len(r.Entries) > MaxEntries {
		r.Entries = r.Entries[:MaxEntries]
		r.warnf("more than %d entries: the others are left out", MaxEntries)
	}
	return r.Result
}

type reader struct {
	Options
	Result

	names []name
	page  int

	party   *string // of the following lines
	account *Account
	ledger  string    // named by the title; "": none
	year    int       // of the sheet; 0: none
	fiscal  bool      // it is the first of two, as in 2025-26
	near    unit.Date // the last date with a year; 0: none
	dates   map[string]*unit.Date
	unclear map[string]string // by side: the date, if it is hard to read
	above   map[string]*Entry // by side
	sums    map[string]*sums
	carried map[string]*sums // sums of opening and closing lines
}

// sums are the sums of a side's entries, or of its opening and closing lines.
type sums struct {
	weight, fine unit.Grams
	amount       unit.Money
}

func (s *sums) add(weight, fine *unit.Grams, amount *unit.Money) {
	s.weight += value(weight)
	s.fine += value(fine)
	s.amount += value(amount)
}

func (r *reader) warnf(format string, args ...any) {
	text := fmt.Sprintf("page %d: "+format, append([]any{r.page}, args...)...)
	if len(r.Warnings) < maxWarnings && !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

func (r *reader) read(p Page) {
	r.dates, r.unclear, r.above = map[string]*unit.Date{}, map[string]string{}, map[string]*Entry{}
	r.sums, r.carried = map[string]*sums{In: {}, Out: {}}, map[string]*sums{In: {}, Out: {}}
	lines := linesOf(p.Words)
	for i, line := range lines {
		if heads := apart(line); r.isHeader(heads) {
			lines[i] = heads
		}
	}
	if len(lines) == 0 {
		r.warnf("no text was found")
		return
	}
	r.year, r.near = 0, 0
	r.findYear(lines)
	l := r.layout(p, lines)
	before := len(r.Entries)
	for _, line := range lines {
		r.readLine(l, line)
	}
	if len(r.Entries) == before {
		r.warnf("no entry was found")
	}
	r.checkOrder(r.Entries[before:])
}

func (r *reader) readLine(l *layout, line []Word) {
	if r.isHeader(line) || r.isTitle(line) {
		return
	}
	left, right := l.split(line)
	leftCell, rightCell := r.cell(l, l.leftSide, left), r.cell(l, l.rightSide, right)
	switch {
	case len(right) > 0 && rightCell.numbersOnly() && leftCell.text != "" && l.shared:
		// Both sides share one date and one text. Their numbers have separate columns.
		rightCell.text, rightCell.date, rightCell.ditto, rightCell.dated, rightCell.unread = leftCell.text, leftCell.date, leftCell.ditto,
			leftCell.dated, leftCell.unread
		rightCell.raw, rightCell.words = leftCell.raw+" "+rightCell.raw, append(slices.Clone(left), right...)
		rightCell.total, rightCell.opening = leftCell.total, leftCell.opening
		if leftCell.numbers > 0 {
			r.add(l, l.leftSide, leftCell)
		}
		r.add(l, l.rightSide, rightCell)
	default:
		if len(left) > 0 {
			r.add(l, l.leftSide, leftCell)
		}
		if len(right) > 0 {
			r.add(l, l.rightSide, rightCell)
		}
	}
}

// add adds the entry of a cell.
func (r *reader) add(l *layout, side string, c cell) {
	if c.total || c.opening {
		r.checkTotal(side, c)
		return
	}
	above := r.above[side]
	if c.numbers == 0 {
		r.textOnly(side, above, c)
		return
	}
	e := Entry{
		ID: int64(len(r.Entries) + 1), Page: r.page, Side: side, Party: r.party, Weight: c.weight, Touch: c.touch, Fine: c.fine, Amount: c.amount,
		Raw: c.raw,
	}
	if e.Weight == nil && e.Touch == nil && e.Fine == nil && e.Amount == nil {
		r.doubt(&c, "the numbers of the line %q are not known", c.raw)
	}
	text := c.text
	if c.ditto && text == "" && above != nil && above.Item != nil {
		text = *above.Item
	}
	text = r.inline(&e, text)
	if text != "" {
		e.Item = &text
	}
	e.Date = r.date(l, side, &c)
	e.Confidence = confidence(c, l)
	if e.Ledger == nil && r.account != nil {
		e.Ledger, e.Account = &r.account.Ledger, &r.account.ID
	}
	if c.struck {
		e.Confidence = min(e.Confidence, unit.Whole*struckConfidence/100/100)
		r.warnf("the line %q seems to be struck out", c.raw)
	}
	r.Entries = append(r.Entries, e)
	r.above[side] = &r.Entries[len(r.Entries)-1]
	r.sums[side].add(e.Weight, e.Fine, e.Amount)
}

const struckConfidence = 30

// textOnly handles a line without numbers: the name of a party, or the rest of the text above.
func (r *reader) textOnly(side string, above *Entry, c cell) {
	switch {
	case c.text == "" && (c.date != nil || c.unread):
		r.dates[side] = c.date
	case c.text == "":
	case r.heading(c.text):
	case r.Similar && above != nil && above.Item != nil && !c.dated:
		*above.Item += " " + c.text
		above.Raw += " " + c.raw
	default:
		if c.date != nil || c.unread {
			r.dates[side] = c.date
		}
		r.warnf("the line %q has no number and is left out", c.raw)
	}
}

// confidence returns the mean confidence of an entry's words. Guesses reduce it.
func confidence(c cell, l *layout) unit.Percent {
	sum := 0
	for _, w := range c.words {
		sum += w.Confidence
	}
	percent := sum / max(1, len(c.words))
	if l.guessed {
		percent = percent * 9 / 10
	}
	if c.inferred {
		percent = percent * 9 / 10
	}
	sure := unit.Percent(min(percent, 99)) * unit.Whole / 100 / 100
	if c.doubtful || l.unread {
		return min(sure, unsure)
	}
	return sure
}

// checkTotal compares a total with the sum of the entries before it, with or without carried balances.
func (r *reader) checkTotal(side string, c cell) {
	sum, carried := r.sums[side], r.carried[side]
	if !c.total {
		carried.add(c.weight, c.fine, c.amount)
		for word := range strings.FieldsSeq(c.text) {
			if c.numbers > 0 && openings[folded(word)] == "" {
				r.warnf("the line %q is taken for a balance and is left out", c.raw)
			}
		}
		return
	}
	check := func(what string, given, added fmt.Stringer, same bool) {
		if !same {
			r.warnf("the total of %s on the %s side is %s, but its entries add up to %s", what, side, given, added)
		}
	}
	if c.weight != nil {
		check("weight", *c.weight, sum.weight, *c.weight == sum.weight || *c.weight == sum.weight+carried.weight)
	}
	if c.fine != nil {
		check("fine weight", *c.fine, sum.fine, *c.fine == sum.fine || *c.fine == sum.fine+carried.fine)
	}
	if c.amount != nil {
		check("amount", *c.amount, sum.amount, *c.amount == sum.amount || *c.amount == sum.amount+carried.amount)
	}
}

func value[T ~int64](v *T) T {
	if v == nil {
		return 0
	}
	return *v
}
