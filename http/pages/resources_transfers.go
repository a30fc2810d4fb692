package pages

import (
	"net/url"
	"strings"
)

// transferResource is the page of transfers: the form of a transfer, and the rows that are not paired.
func transferResource() *resource {
	return &resource{
		base: Path, word: "transfers", title: "Transfers", list: "list-unpaired-rows", flat: true, refs: map[string]string{"from": "", "to": ""},
		about:   "What moves from one account to another is two rows that name each other. Below are the rows that name no other.",
		columns: []string{"date", "account", "received", "given"},
		cells: map[string]cell{
			"date": func(d *desk, r map[string]any) display {
				line := d.enteredOf(r)
				return display{Text: d.lang.day(line.Date), Link: line.Link}
			},
			"account": func(d *desk, r map[string]any) display {
				line := d.enteredOf(r)
				return display{Text: line.Account, Link: line.AccountLink}
			},
			"received": func(d *desk, r map[string]any) display { return display{Lines: d.enteredOf(r).Received} },
			"given":    func(d *desk, r map[string]any) display { return display{Lines: d.enteredOf(r).Given} },
		},
		actions: []action{
			{
				operation: "post-transfer", button: "Post a transfer", did: "added", preview: (*desk).sayTransfer, starts: startsToday,
				fields: []string{"from", "to", "amount", "fine_weight", "metal", "date", "description"},
				to: func(d *desk, made map[string]any) string {
					for _, r := range entriesOf(made["rows"]) {
						return d.enteredOf(r).Link
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

func (d *desk) enteredOf(r map[string]any) rowLine {
	return d.entered(enteredRow{textOf(r["kind"]), r["account_id"], textOf(r["account_name"]), inner(r, "row")})
}

// sayTransfer returns the preview of a transfer.
func (d *desk) sayTransfer(answer map[string]any) *preview {
	p := &preview{}
	for _, r := range entriesOf(answer["rows"]) {
		line := d.enteredOf(r)
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

// trialBalancePage is the content of the trial balance.
type trialBalancePage struct {
	Company, AsOf, KnownAt string
	Files                  string // address of the files, without the format parameter
	Lines                  []trialLine
	Wrong                  []string
}

// trialLine is a line of a trial balance, or of one of its metals.
type trialLine struct {
	Kind, Name, Link, Unit, Debit, Credit string // Kind: before the first account of a ledger
	Total                                 bool
}

func (v *visit) trialBalance() page {
	past := v.past()
	shown := trialBalancePage{Company: v.company(), AsOf: past.Get("as_of"), KnownAt: past.Get("known_at")}
	var b struct {
		Accounts              []map[string]any
		Unpaired, Loss, Total map[string]any
	}
	var status int
	if shown.Wrong, status = v.asked("get-trial-balance", request{query: past}, &b); status != 0 {
		return page{template: "trial-balance", title: "Trial balance", status: status, body: shown}
	}
	past.Set("format", "")
	shown.Files = strings.TrimSuffix(v.address("get-trial-balance", request{query: past}).String(), "format=")
	kind := ""
	for _, a := range b.Accounts {
		line := trialLine{Name: textOf(a["name"]), Link: accountPath(textOf(a["kind"]), plain(a["id"]))}
		if of := textOf(a["kind"]); of != kind {
			kind, line.Kind = of, kindName(of)
		}
		shown.add(line, a)
	}
	unpaired := Path + "/transfers?" + v.past().Encode()
	shown.add(trialLine{Name: v.lang.t("Unpaired rows"), Link: unpaired, Total: true}, b.Unpaired)
	shown.add(trialLine{Name: v.lang.t("Loss in work"), Total: true}, b.Loss)
	shown.add(trialLine{Name: v.lang.t("In all"), Total: true}, b.Total)
	return page{template: "trial-balance", title: "Trial balance", body: shown}
}

// add adds the lines of a sum: money, and each metal below it.
func (p *trialBalancePage) add(line trialLine, sum map[string]any) {
	blank := func(n any, format func(any) string) string {
		if plain(n) == "0" {
			return ""
		}
		return format(n)
	}
	line.Debit, line.Credit = blank(sum["debit"], rupees), blank(sum["credit"], rupees)
	p.Lines = append(p.Lines, line)
	for _, m := range entriesOf(sum["metals"]) {
		p.Lines = append(p.Lines, trialLine{Unit: textOf(m["metal"]), Debit: blank(m["debit"], grams), Credit: blank(m["credit"], grams),
			Total: line.Total})
	}
}
