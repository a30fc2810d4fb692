package pages

import (
	"cmp"
	"slices"
	"time"

	"bahi/domain/fault"
)

const settings = Path + "/settings"

// settingsParts are the lists and records of settings.
var settingsParts = []place{
	{Name: "You", Link: settings},
	{Name: "Members", Link: settings + "/members", needs: "marketplace:read"},
	{Name: "Invitations", Link: settings + "/invitations", needs: "marketplace:read"},
	{Name: "API keys", Link: settings + "/keys", needs: "marketplace:read"},
	{Name: "Company", Link: Path + "/list/companies", needs: "marketplace:read"},
	{Name: "Books lock", Link: settings + "/books", needs: "ledger:read"},
	{Name: "Metal", Link: settings + "/metal", needs: "ledger:read"},
	{Name: "Closed periods", Link: settings + "/periods", needs: "ledger:read"},
}

// settingsResources returns the resources of settings.
func settingsResources() []*resource {
	all := []*resource{
		{
			base: Path, word: "settings", title: "Settings", single: true, get: "get-me", own: (*desk).self, columns: []string{"email"},
			cells: "settings",
			each: []action{
				{
					operation: "update-me", button: "Change", did: "profile", edit: true,
					about: "Another address counts at once. The one before gets a mail that can take the change back.",
				},
				{
					operation: "change-password", button: "Change the password", about: "Your other devices are signed out.", did: "password",
					when: func(me map[string]any) bool { return me["auth_provider"] == "email" },
				},
				{operation: "upload-picture", button: "Upload a picture", did: "picture"},
				{
					operation: "request-deletion", button: "Delete my account", danger: true, did: "deletion",
					when: func(me map[string]any) bool { return me["delete_after"] == nil },
					about: "Within 30 days your name, your address, your picture and your sessions are deleted, and you cannot sign in any " +
						"more. Until then the operator can keep your account. The books of the workspace stay, with what you wrote in them. " +
						"You and the administrator get a mail.",
				},
			},
		},
		{
			word: "members", title: "Members", list: "list-members", columns: []string{"name", "email", "permissions", "joined_at"},
			live: []string{"email", "permissions", "joined_at"}, cells: "members",
			each: []action{
				{
					operation: "change-member", button: "Change the rights", did: "member", fields: rightsFields,
					starts: func(_ *desk, member map[string]any) map[string]any {
						levels := map[string]any{}
						for _, area := range areas {
							levels[area] = cmp.Or(textOf(inner(member, "permissions")[area]), "none")
						}
						return map[string]any{"permissions": levels}
					},
				},
				{
					operation: "remove-member", button: "Remove the member", danger: true, did: "removed",
					to: func(d *desk, _ map[string]any) string {
						if d.id == d.who.ID { // no longer a member, who may read the page
							return Path + "/"
						}
						return d.of.address("", "")
					},
					about: "The person sees nothing of the workspace any more. What they wrote stays. Another invitation brings them back.",
				},
			},
		},
		{
			word: "invitations", title: "Invitations", list: "list-invitations", inline: true, cells: "invitations", mails: true,
			about:   "A mail brings a link, which works for seven days. The one who opens it signs in or registers, and joins.",
			columns: []string{"email", "permissions", "invited_by", "expires_at"},
			actions: []action{{
				operation: "invite-member", button: "Invite somebody", did: "invited", fields: append([]string{"email"}, rightsFields...),
				starts: readsBooks,
			}},
			each: []action{{operation: "withdraw-invitation", button: "Withdraw", did: "withdrawn"}},
		},
		{
			word: "keys", title: "API keys", list: "list-api-keys", inline: true,
			about:   "A key opens the interface to a program, as far as its rights go and as long as its maker has them.",
			columns: []string{"name", "permissions", "created_by", "created_at", "expires_at", "state"},
			cells:   "keys",
			actions: []action{{
				operation: "create-api-key", button: "Make a key", shows: true, says: "made", starts: readsBooks,
				fields: append(append([]string{"name"}, rightsFields...), "expires_at"),
			}},
			each: []action{{
				operation: "revoke-api-key", button: "Revoke", danger: true, did: "revoked",
				about: "The key, and all keys that were made with it, open nothing any more. This cannot be undone.",
				when:  func(k map[string]any) bool { return k["revoked_at"] == nil },
			}},
		},
		{
			word: "books", title: "Books lock", single: true, get: "get-books-lock", columns: []string{"locked_through"},
			about: "Rows of locked days cannot be added, changed or deleted. A locked row can be reversed today.",
			live:  []string{"locked_through"},
			cells: "lock",
			each: []action{{
				operation: "set-books-lock", button: "Move the lock", did: "lock", reason: &reasonInput{Hint: "Required to unlock days."},
				fields: []string{"locked_through"},
				starts: func(_ *desk, lock map[string]any) map[string]any {
					return map[string]any{"locked_through": lock["locked_through"]}
				},
			}},
			links: func(*desk, map[string]any) []choice {
				return []choice{{Value: settings + "/periods", Text: "Close the year"}}
			},
		},
		{
			word: "metal", title: "Metal", single: true, get: "get-books-metal", columns: []string{"metal"},
			live: []string{"metal"}, cells: "metal",
			each: []action{{operation: "set-books-metal", button: "Change", did: "changed", edit: true}},
		},
		{
			word: "periods", title: "Closed periods", list: "list-periods", inline: true, without: []string{"known_at"},
			about: "A closed period has a seal: the digest of all closing balances and the root of the log. Its rows do not change any more. " +
				"Only the operator can open the newest one again.",
			columns: []string{"through", "from", "closed_at", "closed_by", "state"},
			cells:   "periods",
			actions: []action{{
				operation: "close-period", button: "Close the year", did: "period",
				about: "It locks the books through the last day and seals all balances. Drafts of orders and pages of the khata come first.",
				says:  "seal",
			}},
			each: []action{{
				operation: "reopen-period", button: "Open it again", did: "period_reopened", danger: true, reason: required, fields: []string{},
				about: "The lock moves back to the end of the period before. The seal stays in the trail.",
				when:  func(period map[string]any) bool { return period["reopened"] == nil },
			}},
		},
	}
	for _, r := range all {
		r.base = cmp.Or(r.base, settings)
		r.sections = func(v *visit) []place { return allowed(settingsParts, v.permissions()) }
	}
	return all
}

// self shows the page on the visitor. An API key has no account.
func (d *desk) self(in sent) page {
	if d.who.Type == "user" {
		return d.record(in)
	}
	b := &recordPage{deskPage: d.page(sent{}), Word: d.of.word, Record: map[string]any{"Key": d.Actor(d.who.String())}}
	b.Title = d.lang.t(d.of.title)
	return page{template: "record", title: d.of.title, body: b}
}

// IsSelf reports whether an id is the visitor's.
func (v *visit) IsSelf(id string) bool { return id == v.who.ID }

// Ended reports whether an API key was revoked or has expired.
func (d *desk) Ended(key map[string]any) bool {
	until, err := time.Parse(time.RFC3339, textOf(key["expires_at"]))
	return key["revoked_at"] != nil || err == nil && !d.Now().Before(until)
}

// areas are the areas of permissions, in display order.
var areas = []string{"ledger", "messaging", "marketplace", "audit"}

// rightsFields are the fields of permissions, without what only operators give.
var rightsFields = []string{"permissions.ledger", "permissions.messaging", "permissions.marketplace", "permissions.audit"}

func readsBooks(*desk, map[string]any) map[string]any {
	return map[string]any{"permissions": map[string]any{"ledger": "read"}}
}

// rights returns permissions in words.
func (d *desk) rights(of map[string]any) (words []display) {
	if of["operator"] == true {
		return []display{{Text: d.lang.t("Everything, as an operator")}}
	}
	for _, area := range areas {
		if level := textOf(of[area]); slices.Contains([]string{"read", "write"}, level) {
			words = append(words, display{Text: d.lang.t(labelOf(area)) + ": " + d.lang.t(wordOf(level))})
		}
	}
	return words
}

// openItems are the address prefixes of items that keep a period open, by the field of the refusal. The id follows.
var openItems = map[string]string{
	"order_drafts": Path + "/drafts/", "khata_uploads": Path + "/khata/", "projections": operatePath + "/projections/",
}

// todo returns links to the items that the user must settle first, or nil.
func (d *desk) todo(faults []fault.Field) (links []choice) {
	for _, f := range faults {
		if path := openItems[f.Field]; path != "" && f.ID != nil {
			links = append(links, choice{Value: path + cmp.Or(plain(f.ID), textOf(f.ID)), Text: d.lang.said(f.Message)})
		}
	}
	return links
}
