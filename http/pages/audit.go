package pages

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bahi/domain/actor"
)

// trailLine is a change with the changed fields.
type trailLine struct {
	change

	Account, Kind, Link, Date string
	Whole                     bool // the lines are the whole record, not the differences
}

// memberChoices returns the workspace's members as choices. It returns none if the visitor lacks the permission to read them.
func (v *visit) memberChoices(chosen string) (found []choice) {
	var members []map[string]any
	v.ask("list-members", request{vars: []string{v.who.Workspace.String()}}, &members)
	for _, m := range members {
		id := "user:" + textOf(m["user_id"])
		found = append(found, choice{id, cmp.Or(fullName(m), textOf(m["email"])), id == chosen})
	}
	return found
}

// linkOf returns a link to a ledger if the visitor may read it.
func (v *visit) linkOf(path string) string {
	if v.who.May(actor.Ledger, actor.Read) {
		return path
	}
	return ""
}

func (v *visit) trailLine(c map[string]any, name func(string) string) trailLine {
	noun, change, ledger, id := textOf(c["kind"]), textOf(c["change"]), textOf(c["ledger"]), textOf(c["id"])
	of := inner(c, "account")
	line := trailLine{change: changeOf(c, name), Date: textOf(c["date"]), Account: textOf(of["name"]), Kind: kindName(ledger)}
	account := accountPath(ledger, plain(of["id"]))
	switch noun {
	case ledger + "row":
		noun, line.Link = "row", v.linkOf(account+"/rows/"+url.PathEscape(id))
	case ledger:
		noun, line.Link = "account", v.linkOf(account)
	case "clientorder":
		line.Link = v.linkOf(orderPath(id))
	}
	after := map[string]any{}
	for _, f := range entriesOf(c["fields"]) {
		after[textOf(f["field"])] = f["to"]
	}
	line.Sentence = v.lang.sentence(noun, change, line.Actor, line.Date, after)
	line.Lines, line.Whole = v.lang.changed(change, entriesOf(c["fields"])), change == "opened" || change == "added" || change == "deleted"
	if line.Whole { // the sentence has the name and the date
		line.Lines = slices.DeleteFunc(line.Lines, func(d difference) bool { return d.What == v.lang.t("Name") || d.What == v.lang.t("Date") })
	}
	return line
}

// restated returns a closing balance that changes altered, as display text.
func (l language) restated(of map[string]any, n any) string {
	shown := rupees(n)
	if of["unit"] == "fine" {
		shown = grams(n)
	}
	return strings.TrimSpace(shown + " " + l.signed(textOf(of["ledger"]), n))
}

var entryPath = regexp.MustCompile(`^(in_entries|out_entries|items)\[(\d{1,3})\]\.(\w+)$`)

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
		if m := entryPath.FindStringSubmatch(name); m != nil {
			at, _ := strconv.Atoi(m[2])
			put(before, m[1], at, m[3], f["from"])
			put(after, m[1], at, m[3], f["to"])
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
	if field == "type" { // of a polisher
		for i, work := range []string{"Regular", "Meena", "Rodium"} {
			if plain(value) == strconv.Itoa(i) {
				return l.t(work)
			}
		}
	}
	return l.day(textOf(value))
}
