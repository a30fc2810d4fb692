package pages

import (
	"cmp"

	"bahi/domain/fault"
)

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

// periodResource is the list of closed periods.
func periodResource() *resource {
	return &resource{
		base: settings, word: "periods", title: "Closed periods", list: "list-periods", inline: true, without: []string{"known_at"},
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
			operation: "reopen-period", button: "Open it again", did: "period_reopened", danger: true, reason: true, fields: []string{},
			about: "The lock moves back to the end of the period before. The seal stays in the trail.",
			when:  func(period map[string]any) bool { return period["reopened"] == nil },
		}},
	}
}
