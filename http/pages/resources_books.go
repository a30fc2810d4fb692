package pages

// partiesResource are the contacts who can confirm the balances of accounts.
func partiesResource() *resource {
	return &resource{
		word: "parties", title: "Parties", about: "The contact of an account is asked to confirm its balance.", list: "list-accounts",
		columns: []string{"name", "kind", "contact_id"}, inline: true,
		each: []action{{
			operation: "set-account-contact", button: "Set the contact", did: "changed", another: true, // the account itself is unchanged
			starts: func(_ *desk, account map[string]any) map[string]any {
				return map[string]any{"contactId": account["contact_id"]}
			},
		}},
	}
}

// confirmationResource are the requests to parties to confirm their balances.
func confirmationResource() *resource {
	return &resource{
		base: Path, word: "confirmations", title: "Confirmations", about: "Parties are asked whether they agree with their balances.",
		list: "list-confirmations", get: "get-confirmation", columns: []string{"id", "as_of", "kind", "counts"},
		actions: []action{{
			operation: "request-confirmations", button: "Ask parties", did: "sent", fields: []string{"kind", "as_of", "channelId", "templateId"},
			about: "Each party with a phone that has consented gets a message with its balances and a link to its statement.",
			to:    func(d *desk, made map[string]any) string { return d.of.address("", plain(made["id"])) },
		}},
		again: secondsBetweenCounts,
		parts: []*resource{{
			word: "parties", title: "Parties", list: "list-confirmation-parties", inline: true,
			columns: []string{"name", "kind", "status", "reason", "cash_balance", "crystal_balance", "overtaken", "note"},
			each: []action{{
				operation: "decide-confirmation", button: "Decide", did: "changed",
				when: inStatus("open", "failed", "silent", "answered", "confirmed", "disputed"),
			}},
		}},
	}
}

// secondsBetweenCounts is the time after which a page reads the counts again.
const secondsBetweenCounts = 5
