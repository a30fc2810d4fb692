package pages

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bahi/domain/actor"
)

// trailPage is the content of the audit trail of the ledgers.
type trailPage struct {
	From, To string
	Members  []choice
	Files    string      // address of the files, without the format parameter
	Changes  []trailLine // the newest first
	Moved    []restated
	More     bool // the page omits changes of the period; the files have all
	Wrong    []string
}

// trailLine is a change with the changed fields.
type trailLine struct {
	change

	Account, Kind, Link, Date string
	Whole                     bool // the lines are the whole record, not the differences
}

// restated is a month's closing balance that the changes altered.
type restated struct{ Account, Link, Closing, From, To string }

const (
	trailDays    = 31
	trailChanges = 300
)

// trailChange is a change as the operation returns it.
type trailChange struct {
	At      string         `json:"recorded_at"`
	Actor   string         `json:"actor"`
	Reason  string         `json:"reason"`
	Change  string         `json:"change"`
	Kind    string         `json:"kind"`
	ID      string         `json:"id"`
	Ledger  string         `json:"ledger"`
	Account map[string]any `json:"account"`
	Date    string         `json:"date"`
	Fields  []struct {
		Field    string
		From, To any
	} `json:"fields"`
}

// trail shows the changes of a period.
func (v *visit) trail() page {
	var shown trailPage
	shown.From, shown.To, shown.More = v.period(trailDays)
	query, user := url.Values{"from": {shown.From}, "to": {shown.To}}, v.r.URL.Query().Get("user")
	if user != "" {
		query.Set("user", user)
	}
	if v.who.Permissions.Operator {
		query.Set("workspace", v.who.Workspace.String())
	}
	files := maps.Clone(query)
	if asked := v.r.URL.Query().Get("from"); asked != "" {
		files.Set("from", asked)
	}
	shown.Files = v.address("read-trail", request{query: files}).String()
	name := v.actor()
	shown.Members = v.memberChoices(user)
	var trail struct {
		Changes      []trailChange    `json:"changes"`
		Restatements []map[string]any `json:"restatements"`
	}
	var status int
	shown.Wrong, status = v.asked("read-trail", request{query: query}, &trail)
	for _, c := range slices.Backward(trail.Changes) {
		if len(shown.Changes) == trailChanges {
			shown.More = true
			break
		}
		shown.Changes = append(shown.Changes, v.trailLine(c, name))
	}
	for _, r := range trail.Restatements {
		account, kind := inner(r, "account"), textOf(r["ledger"])
		value := func(n any) string {
			shown := rupees(n)
			if r["unit"] == "fine" {
				shown = grams(n)
			}
			return strings.TrimSpace(shown + " " + v.lang.signed(kind, n))
		}
		shown.Moved = append(shown.Moved, restated{
			textOf(account["name"]), v.linkOf(accountPath(kind, plain(account["id"]))), textOf(r["closing"]), value(r["from"]), value(r["to"]),
		})
	}
	return page{template: "audit", title: "Trail", status: status, body: shown}
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

func (v *visit) trailLine(c trailChange, name func(string) string) trailLine {
	line := trailLine{change: change{At: c.At, Actor: name(c.Actor), Reason: c.Reason}, Date: c.Date}
	line.Account, line.Kind = textOf(c.Account["name"]), kindName(c.Ledger)
	account := accountPath(c.Ledger, plain(c.Account["id"]))
	noun := c.Kind
	switch c.Kind {
	case c.Ledger + "row":
		noun, line.Link = "row", v.linkOf(account+"/rows/"+url.PathEscape(c.ID))
	case c.Ledger:
		noun, line.Link = "account", v.linkOf(account)
	case "clientorder":
		line.Link = v.linkOf(orderPath(c.ID))
	}
	line.Sentence = v.lang.sentence(noun, c.Change, line.Actor, c.Date, c.after())
	line.Lines, line.Whole = v.lang.changed(c), c.Change == "opened" || c.Change == "added" || c.Change == "deleted"
	if line.Whole { // the sentence has the name and the date
		line.Lines = slices.DeleteFunc(line.Lines, func(d difference) bool { return d.What == v.lang.t("Name") || d.What == v.lang.t("Date") })
	}
	return line
}

// after returns the fields of a change after it.
func (c trailChange) after() map[string]any {
	fields := map[string]any{}
	for _, f := range c.Fields {
		fields[f.Field] = f.To
	}
	return fields
}

var entryPath = regexp.MustCompile(`^(in_entries|out_entries|items)\[(\d{1,3})\]\.(\w+)$`)

// inSentence are the fields that the sentence of a change contains.
var inSentence = map[string]bool{"void": true, "reverses": true, "reversed_by": true, "paired_with": true}

// changed returns the fields of a change in words. It leaves out ids.
func (l language) changed(c trailChange) (lines []difference) {
	before, after := map[string][]any{}, map[string][]any{}
	put := func(into map[string][]any, side string, at int, key string, value any) {
		for len(into[side]) <= at {
			into[side] = append(into[side], map[string]any{})
		}
		if entry, _ := into[side][at].(map[string]any); value != nil {
			entry[key] = value
		}
	}
	for _, f := range c.Fields {
		if m := entryPath.FindStringSubmatch(f.Field); m != nil {
			at, _ := strconv.Atoi(m[2])
			put(before, m[1], at, m[3], f.From)
			put(after, m[1], at, m[3], f.To)
			continue
		}
		if !inSentence[f.Field] && !strings.HasSuffix(f.Field, "id") && !strings.ContainsAny(f.Field, "[.") {
			lines = append(lines, difference{l.t(labelOf(f.Field)), l.word(f.Field, f.From), l.word(f.Field, f.To)})
		}
	}
	for _, side := range []string{"in_entries", "out_entries", "items"} {
		was, is := before[side], after[side]
		switch c.Change {
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
