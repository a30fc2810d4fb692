package ledgerhttp

import (
	"cmp"
	"strings"

	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
)

// Paths are the paths of a ledger's operations and the names of its accounts. The names of path variables are part of
// the paths.
type Paths struct {
	One, Many string // an account, accounts: bank account, bank accounts

	List    string   // all accounts
	OfType  []string // accounts of each type, from type 0
	Open    string   // new account
	Account string   // one account
	Delete  string   // deletion of an account; "": as Account
	Ledger  string   // rows of an account

	// LooseRow is the path for the deletion of a row or a side without the account's id; "": none.
	LooseRow string

	// Side is the path of the PDF of one side, whose last variable is in or out; "": none.
	Side string

	// Whole is a second path of the PDF of both sides; "": none.
	Whole string
}

// ledgers has the paths and the types of IN and OUT entries of each ledger.
var ledgers = []served{
	serve[bank.Entry, bank.Entry](bank.Ledger, Paths{
		One: "bank account", Many: "bank accounts", List: "/banks", Open: "/bank", Account: "/bank/{bank_id}",
		Delete: "/bank-account/{bank_id}", Ledger: "/bank-ledger/{bank_account_id}",
	}),
	serve[bullion.Entry, bullion.Entry](bullion.Ledger, Paths{
		One: "bullion account", Many: "bullion accounts", List: "/bullions", Open: "/bullion", Account: "/bullion/{bullion_id}",
		Delete: "/bullion-account/{bullion_id}", Ledger: "/bullion-ledger/{bullion_id}", Side: "/bullion-ledger/{bullion_id}/pdf/{side}",
	}),
	serve[client.In, client.Out](client.Ledger, Paths{
		One: "client", Many: "clients", List: "/clients", Open: "/client", Account: "/client/{client_id}",
		Ledger: "/client-ledger/{client_id}", Side: "/client-ledger/{client_id}/pdf/{side}",
	}),
	serve[karigar.In, karigar.Out](karigar.Ledger, Paths{
		One: "karigar", Many: "karigars", List: "/karigars", Open: "/karigar", Account: "/karigar/{karigar_id}",
		Ledger: "/karigar-ledger/{karigar_id}", LooseRow: "/karigar-ledger-row/{row_id}", Side: "/karigar-ledger/{karigar_id}/pdf/{side}",
	}),
	serve[polisher.In, polisher.Out](polisher.Ledger, Paths{
		One: "polisher", Many: "polishers", List: "/polishers", Open: "/polisher", Account: "/polisher/{polisher_id}",
		OfType: []string{"/regular-polishers", "/meena-polishers", "/rodium-polishers"},
		Ledger: "/polisher-ledger/{polisher_id}", Whole: "/polisher-ledger/{polisher_id}/pdf",
	}),
}

// served is a ledger whose operations can be registered.
type served struct {
	ledger   *book.Ledger
	paths    Paths
	register func(*Routes)
}

// operations are the operations of one ledger.
type operations[In, Out book.Entry] struct {
	*Routes
	Paths

	l *book.Ledger
}

func serve[In, Out book.Entry](l *book.Ledger, p Paths) served {
	p.Delete = cmp.Or(p.Delete, p.Account)
	return served{l, p, func(r *Routes) {
		o := operations[In, Out]{r, p, l}
		o.accounts()
		o.rows()
		o.corrections()
		o.statement()
		o.side()
		o.sheets()
		o.totals()
		o.proof()
		o.statementProof()
	}}
}

// fields returns the fields of responses that a write ignores, each with a prefix.
func (o operations[In, Out]) fields(prefix string, more ...string) []string {
	names := append([]string{"balance"}, more...)
	if o.l.Metal {
		names = append([]string{"cash_balance", "crystal_balance", "cash_position", "crystal_position"}, more...)
	}
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// a returns the name of an account with its article, such as "a bank account".
func (p Paths) a() string {
	if strings.ContainsAny(p.One[:1], "aeiou") {
		return "an " + p.One
	}
	return "a " + p.One
}

// Served returns the paths of each ledger by its name.
func Served() map[string]Paths {
	all := map[string]Paths{}
	for _, s := range ledgers {
		all[s.ledger.Name] = s.paths
	}
	return all
}
