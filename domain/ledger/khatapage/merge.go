package khatapage

import (
	"slices"
	"strconv"

	"bahi/domain/unit"
)

// Merge combines a model's entries of pages with the result from recognised words. seen has nil for a page that the model did not read. An
// entry with the same numbers from the words confirms an entry of the model. Merge drops the model's entries without a side or a number,
// and entries only from the words, with a warning. For a page without entries of the model, it uses the words. used reports whether the
// result has an entry of the model.
func Merge(read Result, seen [][]Entry, o Options) (result Result, used bool) {
	r := &reader{Options: o, names: namesOf(o.Accounts), Result: Result{Entries: []Entry{}, Warnings: read.Warnings}}
	for i, entries := range seen {
		r.page = i + 1
		var words []Entry
		for _, e := range read.Entries {
			if e.Page == r.page {
				words = append(words, e)
			}
		}
		if entries = slices.DeleteFunc(slices.Clone(entries), r.isLeftOut); len(entries) == 0 {
			for _, e := range words {
				e.ID = int64(len(r.Entries) + 1)
				r.Entries = append(r.Entries, e)
			}
			continue
		}
		r.see(entries, words)
		used = true
	}
	if len(r.Entries) > MaxEntries {
		r.Entries = r.Entries[:MaxEntries]
		r.warnf("more than %d entries: the others are left out", MaxEntries)
	}
	return r.Result, used
}

// The confidence of a model's entries, in thousandths of a percent.
const (
	confirmed   = 9 * unit.Whole / 1000
	unconfirmed = 5 * unit.Whole / 1000
)

func (r *reader) see(entries, words []Entry) {
	alone := 0
	taken := make([]bool, len(words))
	for _, e := range entries {
		e.ID, e.Page, e.Confidence = int64(len(r.Entries)+1), r.page, unconfirmed
		if e.Date != nil {
			at := e.Date.Time()
			e.Date, _ = r.resolve(day{year: at.Year(), month: int(at.Month()), day: at.Day()})
		}
		e.Fine = computed(e.Weight, e.Touch, e.Fine)
		for i, w := range words {
			if !taken[i] && sameNumbers(e, w) {
				taken[i] = true
				e.Raw, e.Confidence = w.Raw, confirmed
				if w.Side != e.Side {
					r.warnf("the model has %q on the %s side, the text on the other", w.Raw, e.Side)
					e.Confidence = unconfirmed
				}
				if e.Date != nil && w.Date != nil && *e.Date != *w.Date {
					r.warnf("the model has another date for %q than the text", w.Raw)
					e.Confidence = unconfirmed
				}
				break
			}
		}
		if e.Confidence == unconfirmed {
			alone++
		}
		if e.Party != nil {
			if found := r.find(*e.Party); found != nil {
				e.Ledger, e.Account = &found.Ledger, &found.ID
			}
		}
		r.Entries = append(r.Entries, e)
	}
	if alone > 0 {
		r.warnf("%d entries that the model saw are not confirmed by the text", alone)
	}
	if i := slices.Index(taken, false); i >= 0 {
		r.warnf("the text has entries that the model did not see, among them %q", words[i].Raw)
	}
}

// isLeftOut reports whether an entry of a model is unusable, and adds a warning.
func (r *reader) isLeftOut(e Entry) bool {
	text := "without a text"
	for _, known := range []*string{e.Party, e.Item} {
		if known != nil {
			text = strconv.Quote(*known)
		}
	}
	switch {
	case e.Weight == nil && e.Fine == nil && e.Amount == nil:
		r.warnf("an entry that the model saw is left out, as no number of it can be read: %s", text)
	case e.Side == "":
		r.warnf("an entry that the model saw is left out, as its side is unknown: %s", text)
	default:
		return false
	}
	return true
}

func sameNumbers(a, b Entry) bool {
	return equal(a.Weight, b.Weight) && equal(a.Touch, b.Touch) && equal(a.Fine, b.Fine) && equal(a.Amount, b.Amount) &&
		(a.Weight != nil || a.Fine != nil || a.Amount != nil)
}

func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
