package khatapage

import (
	"slices"
	"strconv"
	"strings"

	"bahi/domain/wording"
)

// name is an account's name in the form for comparison.
type name struct {
	Account

	words []string
}

func namesOf(accounts []Account) []name {
	all := make([]name, 0, len(accounts))
	for _, a := range accounts {
		n := name{Account: a, words: wording.Words(oneScript(a.Name))}
		if len(n.words) > 0 {
			all = append(all, n)
		}
	}
	// If two names begin alike, the longer is matched first.
	slices.SortStableFunc(all, func(a, b name) int { return len(b.words) - len(a.words) })
	return all
}

// find returns the account that a text names, or nil for none or several.
func (r *reader) find(text string) *Account {
	words := wording.Words(oneScript(text))
	if found := r.one(func(n name) bool { return slices.Equal(n.words, words) }); found != nil || !r.Similar {
		return found
	}
	var best *Account
	most, second := 0, 0
	for i, n := range r.names {
		switch alike := wording.Similarity(oneScript(text), oneScript(n.Name)); {
		case r.ledger != "" && n.Ledger != r.ledger:
		case alike > most:
			best, most, second = &r.names[i].Account, alike, most
		case alike > second:
			second = alike
		}
	}
	if most < minAlike || most-second < minApart {
		return nil
	}
	r.warnf("%q is taken for %s %q", text, best.Ledger, best.Name)
	return best
}

// The minimum similarity of the best name, and its minimum lead over the second best name, see [wording.Similarity].
const (
	minAlike = 400
	minApart = 100
)

// one returns the only matching account. If the title names a ledger, it considers only that ledger.
func (r *reader) one(fits func(name) bool) (found *Account) {
	for i, n := range r.names {
		if r.ledger != "" && n.Ledger != r.ledger || !fits(n) {
			continue
		}
		if found != nil {
			r.warnf("several accounts are named %q", n.Name)
			return nil
		}
		found = &r.names[i].Account
	}
	return found
}

// inline removes an account's name from the beginning of a text and sets the entry's account.
func (r *reader) inline(e *Entry, text string) string {
	words := wording.Words(oneScript(text))
	if len(words) == 0 {
		return text
	}
	found := r.one(func(n name) bool { return len(words) >= len(n.words) && slices.Equal(words[:len(n.words)], n.words) })
	if found == nil {
		return text
	}
	e.Party, e.Ledger, e.Account = &found.Name, &found.Ledger, &found.ID
	rest := strings.Fields(text)
	return strings.Join(rest[min(len(rest), len(strings.Fields(found.Name))):], " ")
}

// heading uses a text without numbers as the party of the following lines if the text is marked as a party or names an account.
func (r *reader) heading(text string) bool {
	var rest []string
	marked, ledger := false, r.ledger
	for word := range strings.FieldsSeq(text) {
		kind, title := titles[folded(word)]
		switch {
		case parties[folded(word)] != "":
			marked = true
		case title && kind != "":
			ledger, marked = kind, true
		case title, digits(word) > 0:
		case letters(word) > 0:
			rest = append(rest, word)
		}
	}
	party := strings.Trim(strings.Join(rest, " "), " .,:;-")
	if party == "" {
		r.ledger = ledger
		return marked
	}
	before := r.ledger
	r.ledger = ledger
	found := r.find(party)
	if found == nil && !marked {
		r.ledger = before
		return false
	}
	r.party, r.account = &party, found
	if found == nil {
		r.warnf("no account is named %q", party)
	}
	return true
}

// isTitle reports whether a line above the entries is the page's title. A title has no numbers except years, dates and
// page numbers. isTitle sets the party and the ledger from the title.
func (r *reader) isTitle(line []Word) bool {
	if r.above[In] != nil || r.above[Out] != nil {
		return false
	}
	var text []string
	known, counted := false, false // known: the previous word is a title word; counted: a number may follow it, as in "page 12"
	for i, w := range line {
		date := isDate(w.Text)
		_, numeric := number(w, false)
		_, title := titles[folded(w.Text)]
		switch {
		case openings[folded(w.Text)] != "", totals[folded(w.Text)] != "", date && i == 0 && len(line) > 2,
			numeric && !date && yearIn(w.Text) == 0 && !counted:
			return false
		}
		known, counted = known || title || yearIn(w.Text) != 0, title
		text = append(text, w.Text)
	}
	return r.heading(strings.Join(text, " ")) || known
}

// findYear sets the year from the lines above the entries, and the first complete date of the page.
func (r *reader) findYear(lines [][]Word) {
	for i, line := range lines {
		for _, w := range line {
			year := yearIn(w.Text)
			if d, formed := dateOf(w.Text); formed && d.exists() && d.year > 0 && r.near == 0 {
				r.resolve(d)
			}
			if i > 3 || year == 0 || r.year != 0 {
				continue
			}
			if year > r.Today.Time().Year()+1 {
				r.warnf("the year %d is not plausible", year)
				continue
			}
			r.year, r.fiscal = year, strings.Contains(w.Text, "-") && len(w.Text) <= 9
		}
	}
}

// yearIn returns the year in texts such as 2025, 2025-26 and 2025-2026, or 0.
func yearIn(text string) int {
	text = strings.Trim(text, ".,;:()")
	first, _, _ := strings.Cut(strings.ReplaceAll(text, "/", "-"), "-")
	year, err := strconv.Atoi(first)
	if err != nil || len(first) != 4 || year < 1950 || year > 2199 || len(text) > 9 || digits(text) < len(text)-1 {
		return 0
	}
	return year
}
