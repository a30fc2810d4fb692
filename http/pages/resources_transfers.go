package pages

import (
	"net/url"
)

// transferResource is the page of transfers: the form of a transfer, and the rows that are not paired.
func transferResource() *resource {
	return &resource{
		base: Path, word: "transfers", title: "Transfers", list: "list-unpaired-rows", flat: true, refs: map[string]string{"from": "", "to": ""},
		about:   "What moves from one account to another is two rows that name each other. Below are the rows that name no other.",
		columns: []string{"date", "account", "received", "given"},
		cells:   "transfers",
		actions: []action{
			{
				operation: "post-transfer", button: "Post a transfer", did: "added", preview: (*desk).sayTransfer, starts: startsToday,
				fields: []string{"from", "to", "amount", "fine_weight", "metal", "date", "description"},
				to: func(d *desk, made map[string]any) string {
					for _, r := range entriesOf(made["rows"]) {
						return d.lang.entered(r).Link
					}
					return Path + "/transfers"
				},
			},
			{
				operation: "pair-rows", button: "Pair two rows", did: "done", fields: []string{"rows"},
				about: "One of them gives what the other takes. Their numbers are on their pages.",
				to:    func(*desk, map[string]any) string { return Path + "/transfers" },
			},
		},
	}
}

// sayTransfer returns the preview of a transfer.
func (d *desk) sayTransfer(answer map[string]any) *preview {
	p := &preview{}
	for _, r := range entriesOf(answer["rows"]) {
		line := d.lang.entered(r)
		for side, entries := range map[string][]entryLine{"Received": line.Received, "Given": line.Given} {
			for _, e := range entries {
				p.Says = append(p.Says, line.Account+" · "+d.lang.t(side)+" · "+e.Text)
			}
		}
	}
	return p
}

// anyRow redirects to the page of the row with a number.
func (v *visit) anyRow() page {
	var row map[string]any
	v.read("find-row", request{vars: []string{v.r.PathValue("row")}}, &row)
	return page{redirect: accountPath(textOf(row["kind"]), plain(row["account_id"])) + "/rows/" + url.PathEscape(v.r.PathValue("row"))}
}
