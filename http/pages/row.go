package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// rowPage is the content of the page of a row.
type rowPage struct {
	Account                  map[string]any
	Link, ID, Revision, Date string // Link: of the account
	Row                      rowLine
	History                  []change
	Fields                   []field
	Wrong                    []string
	Theirs                   []difference // another person's changes, beside this one's
	Preview                  *preview
	Do                       string // refused or tried operation
	Reason                   string
	Key                      string
	Undo                     bool   // the newest change is an edit that was made just now
	Locked                   string // last day of the lock, if it covers the row
	Editable, Reversible     bool   // a reversed or void row cannot be changed
}

func (v *visit) row() page { return v.showRow(rowPage{}, nil, nil, 0) }

// showRow shows a row, with the body and the faults of a refused edit.
func (v *visit) showRow(shown rowPage, body map[string]any, faults map[string]string, status int) page {
	kind := v.kind()
	account, id := v.r.PathValue("id"), v.r.PathValue("row")
	shown.Link, shown.ID, shown.Account = accountPath(kind, account), id, v.accountOf(kind, account)
	var row map[string]any
	var versions []map[string]any
	v.read("read-"+kind+"-row-history", request{vars: []string{account, id}}, &versions)
	shown.History = v.lang.history("row", versions, nil, v.actor())
	_, refused := v.ask("get-"+kind+"-row", request{vars: []string{account, id}}, &row)
	switch {
	case refused != nil && refused.Status == http.StatusNotFound: // deleted: only its history remains
		return page{template: "row", title: "Row", status: status, body: shown}
	case refused != nil:
		return v.deny(refused)
	case len(versions) == 0:
		return page{}
	}
	shown.Row, shown.Revision, shown.Date = v.lang.lineOf(kind, row), plain(row["revision"]), v.Today()
	if status == http.StatusPreconditionFailed && body != nil {
		shown.Theirs = v.lang.recordDifferences(row, body)
	}
	if body == nil {
		body = row
	}
	shown.Undo = v.r.URL.Query().Get("done") == "edited" && textOf(versions[len(versions)-1]["change"]) == "edited"
	shown.Reversible = !shown.Row.Void && shown.Row.ReversedBy == ""
	if shown.Reversible && v.permissions()["ledger:write"] {
		var lock map[string]any
		v.read("get-books-lock", request{}, &lock)
		if through := textOf(lock["locked_through"]); shown.Row.Date <= through {
			shown.Locked = through
		}
	}
	shown.Editable = shown.Reversible && shown.Row.Reverses == "" && shown.Locked == ""
	shown.Fields = v.schemaOf("edit-"+kind+"-row").fields("", body, faults, 1)
	shown.Wrong = append(shown.Wrong, misplaced(shown.Fields, faults)...)
	return page{template: "row", title: "Row", status: status, body: shown}
}

// editRow edits, voids, reverses or deletes a row, or shows the effect.
func (v *visit) editRow() page {
	kind := v.kind()
	form, account, id := v.r.PostForm, v.r.PathValue("id"), v.r.PathValue("row")
	do := form.Get("do")
	in := request{
		vars: []string{account, id}, key: form.Get("key"), match: form.Get("revision"), dry: form.Get("preview") != "",
		reason: strings.TrimSpace(form.Get("reason")),
	}
	operation, word := do+"-"+kind+"-row", do
	var body map[string]any
	switch do {
	case "undo":
		body = v.before(kind, account, id)
		do, operation, word = "edit", "edit-"+kind+"-row", "put-back"
		in.vars, in.query, in.body, in.reason = in.vars[:1], url.Values{"row_id": {id}}, body, "undone"
	case "edit":
		body, word = v.schemaOf(operation).read(form, true), "edited"
		in.vars, in.query, in.body = in.vars[:1], url.Values{"row_id": {id}}, body
	case "delete":
	case "void":
		in.body = map[string]any{}
	case "unpair":
		operation, in.vars, in.body = "unpair-row", nil, map[string]any{"row": json.Number(id)}
	case "reverse":
		in.body = map[string]any{"date": form.Get("reversed_on")}
	default:
		return v.deny(errNoPage)
	}
	if in.reason == "" && !in.dry {
		return v.showRow(rowPage{Do: do, Key: in.key, Wrong: []string{v.lang.t("Say why.")}}, body, nil, http.StatusUnprocessableEntity)
	}
	reason := in.reason
	if in.dry {
		in.reason = cmp.Or(reason, "tried") // it is stored nowhere
	}
	var row map[string]any
	out, refused := v.ask(operation, in, &row)
	switch {
	case in.dry:
		p := v.previewOf(kind, row, refused)
		return v.previewed(p, func() page {
			return v.showRow(rowPage{Preview: p, Do: do, Reason: reason, Key: in.key}, body, refused.faults(), 0)
		})
	case refused != nil:
		shown := rowPage{Do: do, Reason: reason, Key: in.key}
		if do != "edit" || len(refused.Errors) == 0 {
			shown.Wrong = []string{detail(refused)}
		}
		return v.showRow(shown, body, refused.faults(), refused.Status)
	}
	to := accountPath(kind, account)
	if do == "edit" || do == "void" {
		to += "/rows/" + id
	}
	if do == "delete" && in.reason == "undone" {
		word = "undone"
	}
	return page{redirect: after(out, to, word)}
}

// before returns a row as it was before its newest change, as the body of an edit.
func (v *visit) before(kind, account, id string) map[string]any {
	var versions []map[string]any
	v.read("read-"+kind+"-row-history", request{vars: []string{account, id}}, &versions)
	newest := map[string]any{}
	if len(versions) > 0 {
		newest = versions[len(versions)-1]
	}
	was, is := newest["before"].(map[string]any)
	if !is || textOf(newest["change"]) != "edited" {
		v.deny(errNoPage)
	}
	return map[string]any{"date": was["date"], "in_entries": given(was["in_entries"]), "out_entries": given(was["out_entries"])}
}
