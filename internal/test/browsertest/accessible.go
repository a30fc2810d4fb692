package browsertest

import (
	_ "embed"
	"encoding/json"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe is axe-core 4.14.1 (npm axe-core, MPL-2.0), unmodified.
//
//go:embed testdata/axe.min.js
var axe string

// violation is a rule of axe that a page violates.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Accessible checks the page against the automatically testable rules of WCAG up to level AA and axe's best practices, or only against the
// given rules.
func (p *Page) Accessible(rules ...string) {
	p.t.Helper()
	options := map[string]any{"resultTypes": []string{"violations"}} // axe describes no node of a rule that the page keeps
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	only, err := json.Marshal(options)
	require.NoError(p.t, err)
	if !p.Is(`window.axe`) {
		p.run(chromedp.Evaluate(axe+`; undefined`, nil))
	}
	var found []violation
	p.Evaluate(`axe.run(document, `+string(only)+`).then(r => r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => `+
		`({html: n.html, failureSummary: n.failureSummary}))})))`, &found)
	for _, v := range found {
		for _, n := range v.Nodes {
			p.t.Errorf("%s: %s (%s): %s\n%s", p.URL(), v.ID, v.Help, n.HTML, n.Summary)
		}
	}
}
