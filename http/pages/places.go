package pages

import (
	"slices"
	"strings"
)

// place is a page linked in the head of each page.
type place struct {
	Name, Link string
	needs      string // permission; empty: everybody
	More       bool   // shown in the menu
	Here       bool   // the current page is below it
}

var places = []place{
	{Name: "Today", Link: Path + "/"},
	{Name: "Accounts", Link: Path + "/accounts", needs: "ledger:read"},
	{Name: "Orders", Link: Path + "/orders", needs: "ledger:read"},
	{Name: "Inbox", Link: Path + "/inbox", needs: "messaging:read"},
	{Name: "Operate", Link: Path + "/operate", needs: "operator"},
	{Name: "Daybook", Link: Path + "/daybook", needs: "ledger:read", More: true},
	{Name: "Transfers", Link: Path + "/transfers", needs: "ledger:read", More: true},
	{Name: "Trial balance", Link: Path + "/trial-balance", needs: "ledger:read", More: true},
	{Name: "Drafts", Link: Path + "/drafts", needs: "ledger:read", More: true},
	{Name: "Khata pages", Link: Path + "/khata", needs: "ledger:read", More: true},
	{Name: "Parties", Link: Path + "/list/parties", needs: "ledger:read", More: true},
	{Name: "Confirmations", Link: Path + "/confirmations", needs: "ledger:read", More: true},
	{Name: "Trail", Link: Path + "/audit", needs: "audit:read", More: true},
	{Name: "Enquiries", Link: Path + "/enquiries", needs: "marketplace:read", More: true},
	{Name: "Companies", Link: Path + "/list/companies", needs: "marketplace:read", More: true},
	{Name: "Products", Link: Path + "/list/products", needs: "marketplace:read", More: true},
	{Name: "Contacts", Link: Path + "/list/contacts", needs: "messaging:read", More: true},
	{Name: "Campaigns", Link: Path + "/campaigns", needs: "messaging:read", More: true},
	{Name: "Channels", Link: Path + "/list/channels", needs: "messaging:read", More: true},
	{Name: "Bots", Link: Path + "/list/bots", needs: "messaging:read", More: true},
	{Name: "Settings", Link: Path + "/settings", More: true},
}

// places returns the pages that the visitor may see.
func (v *visit) places(may map[string]bool) []place {
	seen := allowed(places, may)
	for i, p := range seen {
		seen[i].Here = p.Link == v.r.URL.Path || p.Link != Path+"/" && strings.HasPrefix(v.r.URL.Path, p.Link+"/")
	}
	return seen
}

// allowed returns the places that permissions open.
func allowed(all []place, may map[string]bool) []place {
	return slices.DeleteFunc(slices.Clone(all), func(p place) bool { return p.needs != "" && !may[p.needs] })
}
