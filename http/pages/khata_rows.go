package pages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bahi/domain/fault"
)

// khataEntry is a read or checked entry of a khata page. Its line has the operation's format.
type khataEntry struct {
	Line     map[string]any
	Account  string // as the form names it
	Accepted bool
}

// khataRow is an entry as the page shows it.
type khataRow struct {
	khataEntry

	Name        string // JSON path
	Summary     string
	Account     field
	Fields      []field        // the others
	Read        map[string]any // nil: added by the user; the reading missed it
	Open, Focus bool           // Open: the inputs are shown; Focus: the row has the focus
	Wrong       string
}

// entriesRead returns the entries of the reading.
func entriesRead(upload khataUpload, accounts refs) []khataEntry {
	entries := make([]khataEntry, len(upload.read()))
	for i, read := range upload.read() {
		e := khataEntry{Line: map[string]any{}, Account: textOf(read["party_name"])}
		for _, name := range []string{"ledger", "account_id", "side", "date", "item_name", "weight", "touch", "fine_weight", "amount"} {
			if read[name] != nil {
				e.Line[name] = read[name]
			}
		}
		if id := read["account_id"]; id != nil {
			e.Account = accounts.Text(textOf(read["ledger"]) + "/" + plain(id))
		}
		e.Accepted = !unsure(read) && e.Line["account_id"] != nil && e.Line["date"] != nil
		entries[i] = e
	}
	return entries
}

// khataLines returns the schema of a line of a submission.
func (v *visit) khataLines() *schema {
	if entries := v.schemaOf("submit-khata").of("entries"); entries != nil {
		return entries.Items
	}
	v.deny(errors.New("submit-khata takes no entries"))
	return &schema{}
}

// entriesPosted returns the entries of the form.
func (v *visit) entriesPosted(count int) []khataEntry {
	lines, form := v.khataLines(), v.r.PostForm
	var accounts refs
	entries := make([]khataEntry, 0, count+1)
	for i := 0; i < count || i < maxLines && form.Has(fmt.Sprintf("entries[%d].account", i)); i++ {
		name := fmt.Sprintf("entries[%d]", i)
		entries = append(entries, khataEntry{
			Account: strings.TrimSpace(form.Get(name + ".account")), Accepted: form.Get(name+".accepted") != "",
		})
		e := &entries[i]
		e.Line, _ = reader{form: form}.object(lines, name, false)
		if e.Line["account_id"] != nil && e.Account == form.Get(name+".was") {
			continue
		}
		delete(e.Line, "ledger")
		delete(e.Line, "account_id")
		if e.Account == "" {
			continue
		}
		if accounts.List == "" {
			accounts = v.accountRefs("")
		}
		if found, wrong := accounts.find(v.lang, e.Account); wrong == "" {
			kind, id, _ := strings.Cut(found, "/")
			e.Line["ledger"], e.Line["account_id"], e.Account = kind, number(id, ""), accounts.Text(found)
		}
	}
	if last := len(entries) - 1; last >= count && entries[last].blank() {
		entries = entries[:last]
	}
	return entries
}

// blank reports whether the entry has no input. It ignores the side, which always has a value.
func (e khataEntry) blank() bool {
	return e.Account == "" && !e.Accepted && len(e.Line) <= 1 && (len(e.Line) == 0 || e.Line["side"] != nil)
}

// khataRows returns the rows of the page, then a blank one if the visitor may post.
func (v *visit) khataRows(upload khataUpload, lines *schema, entries []khataEntry, faults map[string]string) []khataRow {
	count, found, first := len(entries), len(upload.read()), -1
	if v.permissions()["ledger:write"] {
		entries = append(entries[:count:count], khataEntry{Line: map[string]any{}})
	}
	rows := make([]khataRow, len(entries))
	for i, e := range entries {
		var read map[string]any
		if i < found {
			read = upload.read()[i]
		}
		name := fmt.Sprintf("entries[%d]", i)
		r := khataRow{khataEntry: e, Name: name, Read: read, Wrong: faults[name]}
		parts := []string{v.lang.day(textOf(e.Line["date"])), e.Account, v.lang.t(enumWord(e.Line["side"])), v.lang.line(e.Line)}
		r.Summary = strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
		r.Account = field{Name: name + ".account", Label: "Account", Kind: "text", Value: e.Account, Error: faults[name+".account"]}
		r.Fields = drawing{faults: faults}.object(lines.without("ledger", "account_id"), name, any(e.Line), false)
		faulty := r.Wrong != "" || r.Account.Error != "" || slices.ContainsFunc(r.Fields, func(f field) bool { return f.Error != "" })
		r.Open = i < count && (faulty || e.Line["account_id"] == nil || e.Line["date"] == nil)
		if first < 0 && i < count && (faulty || len(faults) == 0 && !e.Accepted) {
			first = i
		}
		rows[i] = r
	}
	if len(rows) > 0 {
		rows[max(first, 0)].Focus = true
	}
	return rows
}

// entryFaults returns the faults of a refused submission by the paths of the page's entries. of has the numbers of the sent lines.
func entryFaults(l language, refused *problem, entries []khataEntry, of []int) *problem {
	found := &problem{}
	for _, f := range refused.Errors {
		entry := 0
		array, n, field := lineAt(f.Field)
		if array != "entries" || n < 0 || n >= len(of) {
			field = ""
		} else {
			entry = of[n]
		}
		if field == "ledger" || field == "account_id" {
			field = "account"
			switch at := entries[entry]; {
			case at.Account == "":
				f.Message = l.t("Name the account.")
			case at.Line["account_id"] == nil:
				f.Message = l.t("No account has this name.")
			}
		}
		f.Field = strings.TrimSuffix(fmt.Sprintf("entries[%d].%s", entry, field), ".")
		if !slices.ContainsFunc(found.Errors, func(other fault.Field) bool { return other.Field == f.Field }) {
			found.Errors = append(found.Errors, f)
		}
	}
	return found
}

// accountText returns an account's name with its kind.
func (v *visit) accountText(name, kind string) string {
	return name + " · " + v.lang.t(kindName(kind))
}

// keyOf returns the Idempotency-Key of one write of a form.
func keyOf(key string, parts ...string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(key+"\n"+strings.Join(parts, "\n"))).String()
}
