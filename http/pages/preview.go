package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// preview is the effect of a change before it is made.
type preview struct {
	Balances []balance
	Computed []choice // the inputs' names and their values
	Says     []string // description of the effect
	Warnings []string
	Wrong    []string
}

// tried returns the effect of a row.
func (v *visit) tried(kind, account string, body map[string]any) *preview {
	var row map[string]any
	_, refused := v.ask("add-"+kind+"-row", request{vars: []string{account}, body: body, dry: true}, &row)
	if refused != nil {
		return v.refusedPreview(refused)
	}
	return v.previewOf(kind, row)
}

// previewed shows the effect of a change: only that part for a script, otherwise in the whole page.
func (v *visit) previewed(p *preview, whole func() page) page {
	if v.r.PostForm.Get("preview") == "part" {
		return page{template: "record", part: "preview", body: p}
	}
	return whole()
}

// previewOf returns the effect in a dry run's response.
func (v *visit) previewOf(kind string, row map[string]any) *preview {
	p := &preview{Balances: v.lang.balancesOf(kind, row)}
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

// refusedPreview returns the reason of a refused dry run.
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
