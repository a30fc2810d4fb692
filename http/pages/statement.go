package pages

import (
	"html/template"
	"strconv"
	"strings"
)

// statementPage is the content of the statement that is printed.
type statementPage struct {
	Account                 map[string]any
	Company, Link, From, To string
	Files                   string       // address of the files, without their ending
	Query                   template.URL // for the files
	Rows                    []rowLine
	More                    bool // the page omits rows of the period; the files have all
}

const statementRows = 500

// statement shows an account for print, the oldest row first.
func (v *visit) statement() page {
	kind := v.kind()
	id, q := v.r.PathValue("id"), v.r.URL.Query()
	query := v.past()
	for _, name := range []string{"from", "to"} {
		if day := q.Get(name); day != "" {
			query.Set(name, day)
		}
	}
	shown := statementPage{
		Account: v.accountOf(kind, id), Link: accountPath(kind, id), From: query.Get("from"), To: query.Get("to"), Company: v.company(),
		Query: template.URL(query.Encode()), //nolint:gosec // G203: it is encoded
	}
	shown.Files = strings.TrimSuffix(v.address("get-"+kind+"-statement", request{vars: []string{id}}).Path, ".pdf")
	query.Set("page_size", strconv.Itoa(statementRows))
	var rows []map[string]any
	out := v.read("read-"+kind+"-ledger", request{vars: []string{id}, query: query}, &rows)
	shown.More = totalOf(out) > len(rows)
	for _, r := range rows {
		shown.Rows = append(shown.Rows, v.lang.lineOf(kind, r))
	}
	return page{template: "statement", title: "Statement", body: shown}
}
