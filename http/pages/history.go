package pages

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"bahi/domain/actor"
)

// change is a change of a row as display text. At is an RFC 3339 time.
type change struct {
	At, Actor, Reason, Position, Sentence string
	Lines                                 []difference
}

// difference is a changed figure or text. Before is empty for an added value, After for a removed one.
type difference struct{ What, Before, After string }

// entryFields are the fields of the entries of all ledgers and of items, in the order in which they are shown. A client and a karigar have
// names in place of ids.
var entryFields = slices.Concat([]string{"item_name", "slip_number", "kind"}, figures, []string{"description", "client_id", "karigar_id"})

// figures are the figures of entries in the order of a bill.
var figures = []string{
	"pieces", "quantity", "pure_weight", "weight", "loss_weight", "touch", "fine_percent", "fine_weight", "wastage_percent", "wastage_weight",
	"rate", "rate_unit", "other", "making_charge", "amount",
}

// entryText returns the value of a field of an entry as display text.
func (l language) entryText(key string, value any) string {
	switch key {
	case "kind", "rate_unit":
		return l.t(wordOf(value))
	case "making_charge":
		return charge(value)
	case "rate", "other", "amount":
		return rupees(value)
	case "pieces", "quantity":
		return plain(value)
	}
	switch unitOf(key, "", "") {
	case "g":
		return grams(value)
	case "%":
		return percent(value)
	default:
		return textOf(value)
	}
}

// history describes the versions of a row, an order or a takada, the newest first. It writes names in place of ids. The function actor
// returns the name of an actor.
func (l language) history(noun string, versions []map[string]any, names references, actor func(string) string) []change {
	changes := make([]change, 0, len(versions))
	for _, v := range slices.Backward(versions) {
		before, after := names.texts(inner(v, "before")), names.texts(inner(v, "after"))
		c := changeOf(v, actor)
		c.Sentence = l.sentence(noun, textOf(v["change"]), c.Actor, cmp.Or(textOf(after["date"]), textOf(before["date"])), after)
		c.Lines = l.recordDifferences(before, after)
		changes = append(changes, c)
	}
	return changes
}

// changeOf returns the time, the actor and the reason of a version.
func changeOf(v map[string]any, name func(string) string) change {
	at := cmp.Or(textOf(v["at"]), textOf(v["recorded_at"]))
	return change{At: at, Actor: name(textOf(v["actor"])), Reason: textOf(v["reason"]), Position: textOf(v["position"])}
}

// sentence describes a change of a record of a date.
func (l language) sentence(noun, change, actor, date string, after map[string]any) string {
	words := []any{actor}
	switch {
	case noun == "takada":
		words = append(words, l.day(date))
	case change == "added" && after["reverses"] != nil:
		change = "reversing"
	case change == "paired":
		words = append(words, plain(after["paired_with"]))
	}
	return l.tf(english["changes"][noun+" "+change], words...)
}

// recordDifferences compares two versions of a row, an order or a takada, both with names in place of ids.
func (l language) recordDifferences(before, after map[string]any) (found []difference) {
	for _, key := range []string{"client_id", "slip_number", "date", "delivery_date"} {
		if was, is := l.day(textOf(before[key])), l.day(textOf(after[key])); was != is {
			found = append(found, difference{l.t(labelOf(key)), was, is})
		}
	}
	for _, side := range []string{"in_entries", "out_entries", "items"} {
		found = append(found, l.differences(l.t(labelOf(side)), before[side], after[side])...)
	}
	return found
}

// differences compares a side of two versions entry by entry.
func (l language) differences(side string, before, after any) []difference {
	var found []difference
	was, is := entriesOf(before), entriesOf(after)
	for i := range max(len(was), len(is)) {
		line := l.tf("%s, line %s", side, i+1)
		if i >= len(was) {
			found = append(found, difference{What: line, After: l.line(is[i])})
			continue
		}
		if i >= len(is) {
			found = append(found, difference{What: line, Before: l.line(was[i])})
			continue
		}
		for _, key := range entryFields {
			if l.entryText(key, was[i][key]) != l.entryText(key, is[i][key]) {
				found = append(found, difference{line + " · " + l.t(fieldLabel(key)), l.value(key, was[i]), l.value(key, is[i])})
			}
		}
	}
	return found
}

// line returns the fields of an entry as one text.
func (l language) line(entry map[string]any) string {
	var parts []string
	for _, key := range entryFields {
		switch value := l.value(key, entry); {
		case value == "":
		case key == "item_name", key == "kind", key == "rate_unit", key == "description":
			parts = append(parts, value)
		default:
			parts = append(parts, strings.TrimSuffix(l.t(fieldLabel(key)), " %")+" "+value)
		}
	}
	return strings.Join(parts, " · ")
}

// entryLine is an entry as display text. Formulas has the formulas of its marked figures, in order.
type entryLine struct {
	Text     string
	Formulas []formula
}

// formula is the formula of a computed figure with the values put in. ID is its name in the page.
type formula struct{ ID, Text string }

// entryLines returns the entries of a side of a row.
func (l language) entryLines(kind, side string, row map[string]any) []entryLine {
	var lines []entryLine
	for i, e := range entriesOf(row[side+"_entries"]) {
		line := entryLine{Text: l.line(e)}
		for _, key := range entryFields {
			if l.entryText(key, e[key]) != "" && slices.Contains(computedOf(e), key) {
				id := fmt.Sprintf("formula-%s-%s-%d-%s", plain(row["id"]), side, i, key)
				line.Formulas = append(line.Formulas, formula{id, formulaOf(kind, side, key, e)})
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// worked marks a computed figure. The template "opened" explains it.
const worked = "\u00a0ƒ"

// figureWithUnit is a figure that stays on one line with its unit.
var figureWithUnit = regexp.MustCompile(`[\d,.]+ [g%]`)

// openedPart is a part of a text, up to a mark.
type openedPart struct {
	HTML   template.HTML
	Figure template.HTML // of the mark, which stays on its line
	Marked bool
	formula
}

// openedParts returns the parts of an entry or of a text. A mark with a formula opens it.
func openedParts(of any) (parts []openedPart) {
	e, is := of.(entryLine)
	if !is {
		e.Text = textOf(of)
	}
	escaped := strings.Split(figureWithUnit.ReplaceAllString(html.EscapeString(e.Text), `<span class="whole">$0</span>`), worked)
	for i, text := range escaped {
		part := openedPart{Marked: i < len(escaped)-1}
		if part.Marked {
			at := strings.LastIndexByte(text, ' ') + 1
			if strings.HasSuffix(text, "</span>") {
				at = strings.LastIndex(text, "<span")
			}
			text, part.Figure = text[:at], template.HTML(text[at:]) //nolint:gosec // the text is escaped
		}
		part.HTML = template.HTML(text) //nolint:gosec // the text is escaped
		if part.Marked && i < len(e.Formulas) {
			part.formula = e.Formulas[i]
		}
		parts = append(parts, part)
	}
	return parts
}

// value returns the value of a field of an entry, with a mark if the service computed it.
func (l language) value(key string, entry map[string]any) string {
	value := l.entryText(key, entry[key])
	if value != "" && slices.Contains(computedOf(entry), key) {
		value += worked
	}
	return value
}

func entriesOf(side any) []map[string]any {
	list, _ := side.([]any)
	entries := make([]map[string]any, len(list))
	for i := range list {
		entries[i], _ = list[i].(map[string]any)
	}
	return entries
}

// textsOf returns the values of an array as texts.
func textsOf(array any) []string {
	list, _ := array.([]any)
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = textOf(list[i])
	}
	return texts
}

// computedOf returns the fields of an entry that the service computed.
func computedOf(entry map[string]any) []string { return textsOf(entry["computed"]) }

// rateGrams are the grams that a rate refers to, where that is not one gram.
var rateGrams = map[string]string{"per_10g": "10 g", "per_kg": "1,000 g"}

// formulaOf returns the formula of a computed field as domain/ledger defines it, or "". The result is the server's.
func formulaOf(kind, side, key string, entry map[string]any) string {
	weight, share, result := "weight", "touch", grams(entry[key])
	if kind == "karigar" && side == "in" {
		weight, share = "pure_weight", "fine_percent"
	}
	fine, rate, amount := grams(entry["fine_weight"]), rupees(entry["rate"]), rupees(entry["amount"])
	per := rateGrams[textOf(entry["rate_unit"])]
	var parts []string // alternating values and signs
	switch key {
	case "fine_weight":
		parts = []string{grams(entry[weight]), " × ", percent(entry[share])}
		switch extra, added := percent(entry["wastage_percent"]), grams(entry["wastage_weight"]); {
		case kind != "client":
		case extra != "":
			parts = []string{grams(entry[weight]), " × (", percent(entry[share]), " + ", extra, ")"}
		case added != "":
			parts = append(parts, " + ", added)
		}
	case "wastage_weight":
		parts = []string{grams(entry[weight]), " × ", percent(entry["wastage_percent"])}
	case "amount":
		parts, result = []string{fine, " × ", rate}, amount
		if per != "" {
			parts = append(parts, " ÷ ", per)
		}
	case "rate":
		parts, result = []string{amount, " ÷ ", fine}, rate
		if per != "" {
			parts = append(parts, " × ", per)
		}
	}
	if result == "" || len(parts) == 0 || slices.Contains(parts, "") {
		return ""
	}
	return strings.Join(parts, "") + " = " + result
}

// trailLine is a change with the changed fields.
type trailLine struct {
	change

	Of    map[string]any // as the interface has it
	Link  string
	Whole bool // the lines are the whole record, not the differences
}

func (v *visit) trailLine(c map[string]any) trailLine {
	noun, change, ledger, id := textOf(c["kind"]), textOf(c["change"]), textOf(c["ledger"]), textOf(c["id"])
	line, account := trailLine{change: changeOf(c, v.Actor), Of: c}, pagePath("accounts", ledger, inner(c, "account")["id"])
	switch noun {
	case ledger + "row":
		noun, line.Link = "row", account+"/rows/"+url.PathEscape(id)
	case ledger:
		noun, line.Link = "account", account
	case "clientorder":
		line.Link = pagePath("orders", id)
	}
	if !v.who.May(actor.Ledger, actor.Read) {
		line.Link = ""
	}
	after := map[string]any{}
	for _, f := range entriesOf(c["fields"]) {
		after[textOf(f["field"])] = f["to"]
	}
	line.Sentence = v.lang.sentence(noun, change, line.Actor, textOf(c["date"]), after)
	line.Lines, line.Whole = v.lang.changed(change, entriesOf(c["fields"])), change == "opened" || change == "added" || change == "deleted"
	if line.Whole { // the sentence has the name and the date
		line.Lines = slices.DeleteFunc(line.Lines, func(d difference) bool { return d.What == v.lang.t("Name") || d.What == v.lang.t("Date") })
	}
	return line
}

// inSentence are the fields that the sentence of a change contains.
var inSentence = map[string]bool{"void": true, "reverses": true, "reversed_by": true, "paired_with": true}

// changed returns the fields of a change in words. It leaves out ids.
func (l language) changed(change string, fields []map[string]any) (lines []difference) {
	before, after := map[string][]any{}, map[string][]any{}
	put := func(into map[string][]any, side string, at int, key string, value any) {
		for len(into[side]) <= at {
			into[side] = append(into[side], map[string]any{})
		}
		if entry, _ := into[side][at].(map[string]any); value != nil {
			entry[key] = value
		}
	}
	for _, f := range fields {
		name := textOf(f["field"])
		if side, at, key := lineAt(name); at >= 0 && key != "" {
			put(before, side, at, key, f["from"])
			put(after, side, at, key, f["to"])
			continue
		}
		if !inSentence[name] && !strings.HasSuffix(name, "id") && !strings.ContainsAny(name, "[.") {
			lines = append(lines, difference{l.t(labelOf(name)), l.word(name, f["from"]), l.word(name, f["to"])})
		}
	}
	for _, side := range []string{"in_entries", "out_entries", "items"} {
		was, is := before[side], after[side]
		switch change {
		case "added":
			was = nil // whole lines
		case "deleted":
			is = nil
		}
		lines = append(lines, l.differences(l.t(labelOf(side)), was, is)...)
	}
	return lines
}

// word returns the value of a field outside the entries.
func (l language) word(field string, value any) string {
	switch field {
	case "warnings":
		return strings.Join(l.warnings(value), "; ")
	case "type": // of a polisher
		return l.t(cmp.Or(english["works"][textOf(value)], textOf(value)))
	}
	return l.day(textOf(value))
}
