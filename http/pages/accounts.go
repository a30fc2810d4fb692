package pages

import (
	"encoding/json"
	"net/url"
)

// accountResource has the pages of the accounts of a kind, and of their rows.
func accountResource(kind string) *resource {
	return &resource{
		base: Path + "/accounts", word: kind, get: "get-" + kind, own: (*desk).account, cells: "account",
		each: []action{
			{
				operation: "rename-" + kind, button: "Change", did: "changed", fields: []string{"name", "metal"},
				starts: func(_ *desk, of map[string]any) map[string]any {
					return map[string]any{"name": of["name"], "metal": of["metal"]}
				},
			},
			{
				operation: "delete-" + kind, button: "Delete the account", did: "delete", reason: required, danger: true,
				to: func(*desk, map[string]any) string { return Path + "/accounts" },
			},
		},
		parts: []*resource{rowResource(kind)},
	}
}

// Kind returns the kind of the account of the page in words.
func (d *desk) Kind() string { return kindName(d.of.word) }

// rowResource has the pages of the rows of a ledger. The page of the account has their list.
func rowResource(kind string) *resource {
	editable := func(row map[string]any) bool {
		return reversible(row) && row["reverses"] == nil && row["locked"] == nil
	}
	never := func(map[string]any) bool { return false } // the pages have buttons of their own
	toAccount := func(d *desk, _ map[string]any) string { return pagePath("accounts", kind, d.parent) }
	toNextRow := func(d *desk, row map[string]any) string {
		query := url.Values{"date": {textOf(row["date"])}, "row": {plain(row["id"])}, "side": {d.r.PostForm.Get("side")}}
		return withQuery(pagePath("accounts", kind, d.parent), query)
	}
	number := func(d *desk, _ map[string]any) map[string]any { return map[string]any{"row_id": json.Number(d.id)} }
	says := func(d *desk, row map[string]any) *preview { return d.previewOf(kind, row) }
	return &resource{
		word: "rows", get: "get-" + kind + "-row", find: (*desk).ledgerRow, own: (*desk).row, cells: "rows", more: (*desk).line,
		history: func(d *desk, _ map[string]any) []change {
			return d.changes("row", "read-"+kind+"-row-history", d.parent, d.id)
		},
		actions: []action{{operation: "add-" + kind + "-row", did: "added", preview: says, to: toNextRow}},
		each: []action{
			{
				name: "edit", operation: "edit-" + kind + "-row", button: "Correct", did: "edited", edit: true, reason: required, when: editable,
				fields: []string{"date", "in_entries", "out_entries"}, starts: number, without: []string{"row_id"},
				preview: says,
			},
			{
				name: "void", operation: "void-" + kind + "-row", button: "Make void", about: "The row stays and counts nothing.", did: "void",
				reason: required, danger: true, when: editable, preview: says, body: func(map[string]any) any { return map[string]any{} },
			},
			{
				name: "reverse", operation: "reverse-" + kind + "-row", button: "Reverse", about: "A new row takes this one back.",
				did: "reverse", reason: required, danger: true, when: reversible, preview: says, fields: []string{"date"}, starts: startsToday,
				to: toAccount,
			},
			{
				name: "unpair", operation: "unpair-row", button: "Unpair", about: "The two rows stay. They no longer name each other.",
				did: "unpair", reason: required, when: func(row map[string]any) bool { return row["paired_with"] != nil }, to: toAccount,
				body: func(row map[string]any) any { return map[string]any{"row": row["id"]} },
			},
			{
				name: "delete", operation: "delete-" + kind + "-row", button: "Delete", about: "The row goes. Its history stays.",
				did: "delete", reason: required, danger: true, when: editable, to: toAccount,
			},
			{name: "undone", operation: "delete-" + kind + "-row", did: "undone", reason: required, when: never, to: toAccount},
			{name: "undo", operation: "edit-" + kind + "-row", did: "put-back", reason: required, when: never,
				body: func(row map[string]any) any { // as it was before its newest change
					was := inner(inner(row, "newest"), "before")
					in, out := given(was["in_entries"]), given(was["out_entries"])
					return map[string]any{"id": row["id"], "date": was["date"], "in_entries": in, "out_entries": out}
				}},
		},
	}
}

// reversible reports whether a row counts.
func reversible(row map[string]any) bool { return row["void"] != true && row["reversed_by"] == nil }

// versions returns the history of the row of the page.
func (d *desk) versions() (all []map[string]any) {
	d.read("read-"+d.of.parent.word+"-row-history", request{vars: []string{d.parent, d.id}}, &all)
	return all
}

// ledgerRow returns the row of the page, with its newest change and the last day of the lock that covers it.
func (d *desk) ledgerRow() (row map[string]any, refused *problem) {
	_, refused = d.ask(d.of.get, request{vars: []string{d.parent, d.id}}, &row)
	if versions := d.versions(); row != nil && len(versions) > 0 {
		row["newest"] = versions[len(versions)-1]
	}
	if row != nil && reversible(row) && d.permissions()["ledger:write"] {
		if through := textOf(d.one("get-books-lock")["locked_through"]); textOf(row["date"]) <= through {
			row["locked"] = through
		}
	}
	return row, refused
}

// row shows a row, or the account after a new row was refused.
func (d *desk) row(in sent) page {
	switch {
	case d.id != "":
		return d.record(in)
	case in.do == "":
		return d.deny(errNoPage)
	}
	account := d.visit.desk(d.of.parent, false)
	account.id = d.parent
	return account.account(in)
}

// line returns the row of the page as a list shows it, and whether its newest change was just made.
func (d *desk) line(row map[string]any) any {
	edited := d.r.URL.Query().Get("done") == "edited" && inner(row, "newest")["change"] == "edited"
	return map[string]any{"Line": d.lang.lineOf(d.of.parent.word, row), "Undo": edited && d.permissions()["ledger:write"]}
}

// transferResource is the page of transfers: the form of a transfer, and the rows that are not paired.
func transferResource() *resource {
	return &resource{
		base: Path, word: "transfers", title: "Transfers", list: "list-unpaired-rows", flat: true,
		oldest: true, refs: map[string]string{"from": "", "to": ""},
		about: "A transfer is two rows that name each other. These rows are not paired yet.", counts: "Unpaired rows",
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
				about: "Choose two of the rows below. One of them gives what the other takes.",
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
				p.Says = append(p.Says, textOf(r["account_name"])+" · "+d.lang.t(side)+" · "+e.Text)
			}
		}
	}
	return p
}

// anyRow redirects to the page of the row with a number.
func (v *visit) anyRow() page {
	id := v.r.PathValue("row")
	row := v.one("find-row", id)
	return page{redirect: pagePath("accounts", row["kind"], row["account_id"], "rows", id)}
}

// partiesResource are the contacts who can confirm the balances of accounts.
func partiesResource() *resource {
	return &resource{
		word: "parties", title: "Parties", about: "The contact of an account is asked to confirm its balance.", list: "list-accounts",
		columns: []string{"name", "kind", "contact_id"}, inline: true, refs: map[string]string{"contactId": "contact"},
		each: []action{{
			operation: "set-account-contact", button: "Set the contact", did: "changed", another: true, // the account itself is unchanged
			fields: []string{"contactId"}, about: "Type a part of the name, or the phone. Without one, the account has no contact.",
			starts: func(d *desk, account map[string]any) map[string]any {
				if account["contact_id"] == nil {
					return nil
				}
				return map[string]any{"contactId": d.NameOf("contacts", plain(account["contact_id"]))}
			},
		}},
	}
}

// confirmationResource are the requests to parties to confirm their balances.
func confirmationResource() *resource {
	return &resource{
		base: Path, word: "confirmations", title: "Confirmations", about: "Parties are asked whether they agree with their balances.",
		list: "list-confirmations", get: "get-confirmation", columns: []string{"name", "counts", "created_at"},
		cells: "confirmations", live: []string{"counts", "as_of", "channelId", "templateId", "document", "created_at"},
		note: func(c map[string]any) string {
			if counts := inner(c, "counts"); textOf(counts["parties"]) != textOf(counts["skipped"]) {
				return ""
			}
			return "Nobody gets a message, because no party can be reached. The counts say why."
		},
		actions: []action{{
			operation: "request-confirmations", button: "Ask parties", did: "requested",
			fields: []string{"kind", "as_of", "templateId"}, fills: (*desk).channelOfTemplate,
			about: "Each party with a phone that has consented gets a message with its balances and a link to its statement.",
			to:    func(d *desk, made map[string]any) string { return d.of.address("", plain(made["id"])) },
		}},
		again: secondsBetweenCounts,
		parts: []*resource{{
			word: "parties", title: "Parties", list: "list-confirmation-parties", inline: true,
			columns: []string{"name", "kind", "status", "reason", "balance", "contactId", "note"}, cells: "asked", weights: []string{"balance"},
			each: []action{{
				operation: "decide-confirmation", button: "Decide", did: "changed", fields: []string{"outcome", "note"},
				about: "The reply is in the conversation with the contact. Your decision counts in place of it.",
				when:  inStatus("open", "failed", "silent", "answered", "confirmed", "disputed"),
			}},
		}},
	}
}

// channelOfTemplate adds the channel of a body's template.
func (d *desk) channelOfTemplate(body map[string]any) {
	templates := d.visit.desk(resourceOf("templates"), false)
	templates.id = textOf(body["templateId"])
	if template, refused := templates.find(); refused == nil {
		body["channelId"] = template["channelId"]
	}
}

// Asked returns the names of the parties that a confirmation asks: of its ledger, or of its first account.
func (d *desk) Asked(confirmation map[string]any) string {
	if kind := textOf(confirmation["kind"]); kind != "" {
		return d.lang.t(english["ledgers"][kind])
	}
	parties, total, _ := d.paged("list-confirmation-parties", request{vars: []string{plain(confirmation["id"])}}, 1, 1)
	name := ""
	for _, p := range parties {
		name = textOf(p["name"])
	}
	if total > 1 {
		name = d.lang.tf("%s and %s more", name, total-1)
	}
	return name
}

// Counts returns the counts of a confirmation that are not zero.
func (d *desk) Counts(confirmation map[string]any) []display {
	return d.pairs(d.rowSchema().of("counts"), positive(inner(confirmation, "counts")), nil)
}

// positive returns an object without its zeros.
func positive(counts map[string]any) map[string]any {
	rest := map[string]any{}
	for name, value := range counts {
		if part, is := value.(map[string]any); is {
			if part = positive(part); len(part) > 0 {
				rest[name] = part
			}
		} else if nonzero(value) != nil {
			rest[name] = value
		}
	}
	return rest
}

// secondsBetweenCounts is the time after which a page reads the counts again.
const secondsBetweenCounts = 5
