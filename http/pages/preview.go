package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// preview is what a change would do.
type preview struct {
	Balances []balance
	Computed []choice // the inputs' names and their values
	Says     []string // what it comes to, in words
	Warnings []string
	Wrong    []string
}

// tried returns what a row would do.
func (v *visit) tried(kind, account string, body map[string]any) *preview {
	var row map[string]any
	_, refused := v.ask("add-"+kind+"-row", request{vars: []string{account}, body: body, dry: true}, &row)
	return v.previewOf(kind, row, refused)
}

// previewed shows what a change would do: only that part for a script, otherwise with the whole page.
func (v *visit) previewed(p *preview, whole func() page) page {
	if v.r.PostForm.Get("preview") == "part" {
		return page{template: "record", part: "preview", body: p}
	}
	return whole()
}

// previewOf returns what the answer of a dry run says, or why it would be refused.
func (v *visit) previewOf(kind string, row map[string]any, refused *problem) *preview {
	p := &preview{Balances: v.lang.balancesOf(kind, row)}
	if refused != nil {
		p.Wrong = v.refusedPreview(refused).Wrong
	}
	for _, side := range []string{"in_entries", "out_entries"} {
		for i, e := range entriesOf(row[side]) {
			for _, f := range entryFields {
				if slices.Contains(computedOf(e), f.key) {
					p.Computed = append(p.Computed, choice{Value: fmt.Sprintf("%s[%d].%s", side, i, f.key), Text: textOf(e[f.key])})
				}
			}
		}
	}
	for _, w := range entriesOf(row["warnings"]) {
		at := textOf(w["field"])
		for _, f := range entryFields {
			if strings.HasSuffix(at, "."+f.key) {
				p.Warnings = append(p.Warnings, v.lang.tf("%s: %s is written, the other values give %s",
					v.lang.pathWords(at), f.format(w["given"]), f.format(w["computed"])))
			}
		}
	}
	return p
}

// refusedPreview says why a change would be refused.
func (v *visit) refusedPreview(refused *problem) *preview {
	if refused.Status != http.StatusUnprocessableEntity {
		return &preview{Wrong: []string{detail(refused)}}
	}
	p := &preview{Wrong: []string{v.lang.t("Not complete yet.")}}
	for _, f := range refused.Errors {
		p.Wrong = append(p.Wrong, v.lang.pathWords(f.Field)+": "+v.lang.said(f.Message))
	}
	return p
}
