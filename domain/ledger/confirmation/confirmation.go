// Package confirmation has the requests to parties to confirm their balances as of a day. Each party gets one message of a campaign.
package confirmation

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Kind registers the events of streams confirmation-<number>. Stored names are permanent.
var Kind = event.NewKind("confirmation",
	event.Of[Requested]("ConfirmationRequested", 1),
	event.Of[PartiesListed]("ConfirmationPartiesListed", 1),
)

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Confirmation not found")
	ErrNoParty  = fault.New(fault.NotFound, "The confirmation has no such account")
	ErrNotAsked = fault.New(fault.Conflict, "The party was not asked: no message was sent to it")
)

// LinkLifetime is the lifetime of the link to a statement.
const LinkLifetime = 90 * 24 * time.Hour

// The reasons why a party is skipped.
const (
	NoContact     = "no_contact"
	ContactErased = "contact_erased"
	NoPhone       = "no_phone"
	NoConsent     = "no_consent"
	AccountClosed = "account_closed"
)

// State is the state that decisions and messages require.
type State struct {
	Requested

	Parties map[int64]Party // by account
}

// Party is an account of the request with its balances as of the day. It contains no personal values.
type Party struct {
	Ledger  string     `json:"ledger"`
	Account int64      `json:"account"`
	Contact int64      `json:"contact,omitempty"`
	Message int64      `json:"message,omitempty"` // 0: none is sent
	Skipped string     `json:"skipped,omitempty"` // reason
	Cash    unit.Money `json:"cash"`              // IN less OUT
	Fine    unit.Grams `json:"fine"`
}

// Requested records a request to parties.
type Requested struct {
	Kind     string         `json:"kind,omitempty"` // ledger; empty: the accounts were named
	AsOf     unit.Date      `json:"as_of"`
	Position event.Position `json:"position"` // position at which the balances were read
	Channel  int64          `json:"channel"`
	Template int64          `json:"template"`
	Campaign int64          `json:"campaign"`           // the campaign that sends the messages
	Document bool           `json:"document,omitempty"` // the template has a document: the statement
}

// PartiesListed records a part of the parties.
type PartiesListed struct {
	Parties []Party `json:"parties"`
}

// Evolve sets the request.
func (e Requested) Evolve(State) State { return State{Requested: e} }

// Evolve adds the parties.
func (e PartiesListed) Evolve(s State) State {
	all := maps.Clone(s.Parties)
	if all == nil {
		all = map[int64]Party{}
	}
	for _, p := range e.Parties {
		all[p.Account] = p
	}
	s.Parties = all
	return s
}

// Request sends a request to the parties of the named accounts, or of all accounts of a ledger.
type Request struct {
	Accounts []int64   `json:"accounts,omitempty" minItems:"1" maxItems:"10000" doc:"IDs of accounts; absent: all of a kind"`
	Kind     string    `json:"kind,omitempty" enum:"bullion,client,karigar,polisher" doc:"Ledger; absent: the named accounts"`
	AsOf     unit.Date `json:"as_of" doc:"Last day of the balances"`
	Channel  int64     `json:"channelId" minimum:"1" doc:"ID of the channel"`
	Template int64     `json:"templateId" minimum:"1" doc:"ID of a template of the channel"`
}

// Check returns the faults of the request itself.
func (c Request) Check(today unit.Date) error {
	var wrong []fault.Field
	if (len(c.Accounts) > 0) == (c.Kind != "") {
		wrong = append(wrong, fault.Field{Field: "accounts", Message: "expected either accounts or kind"})
	}
	named := map[int64]bool{}
	for i, id := range c.Accounts {
		if named[id] {
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("accounts[%d]", i), Message: "is named twice"})
		}
		named[id] = true
	}
	if c.AsOf > today {
		wrong = append(wrong, fault.Field{Field: "as_of", Message: "must not be in the future"})
	}
	return fault.Found(wrong)
}

// Candidate is an account with a party that may get a request.
type Candidate struct {
	Party

	Name   string
	Phone  string
	OptIn  bool
	Erased bool // the contact is erased
	Closed bool
}

// skipped returns the reason why the party is skipped, or "".
func (c Candidate) skipped() string {
	switch {
	case c.Closed:
		return AccountClosed
	case c.Contact == 0:
		return NoContact
	case c.Erased:
		return ContactErased
	case c.Phone == "":
		return NoPhone
	case !c.OptIn:
		return NoConsent
	}
	return ""
}

// Choose returns the parties. A skipped party has a reason. Choose returns the faults of the named accounts, or a conflict if two other
// parties share a phone.
func (c Request) Choose(found []Candidate) ([]Party, error) {
	var wrong []fault.Field
	known, phones := map[int64]Candidate{}, map[string]Candidate{}
	for _, f := range found {
		known[f.Account] = f
	}
	for i, id := range c.Accounts {
		switch f, is := known[id]; {
		case !is:
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("accounts[%d]", i), Message: "Account not found"})
		case f.Ledger == "bank":
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("accounts[%d]", i), Message: "a bank account has no party"})
		}
	}
	if len(found) > maxParties {
		wrong = append(wrong, fault.Field{Field: "kind", Message: fmt.Sprintf("at most %d accounts: name them in accounts", maxParties)})
	}
	if len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	parties := make([]Party, len(found))
	for i, f := range found {
		parties[i] = f.Party
		if parties[i].Skipped = f.skipped(); parties[i].Skipped != "" {
			continue
		}
		if other, taken := phones[f.Phone]; taken {
			return nil, shared(other, f)
		}
		phones[f.Phone] = f
	}
	return parties, nil
}

// shared returns the error of two accounts with the same phone: a reply would be ambiguous.
func shared(a, b Candidate) error {
	e := &fault.Error{Kind: fault.Conflict, Code: "phone_shared",
		Detail: fmt.Sprintf("Accounts %d (%s) and %d (%s) have the same phone", a.Account, a.Name, b.Account, b.Name)}
	for _, c := range []Candidate{a, b} {
		e.Fields = append(e.Fields, fault.Field{Field: "accounts", Message: "another account has the same phone", ID: c.Account})
	}
	return e
}

// maxParties is the maximum number of parties of a confirmation.
const maxParties = 10_000

// Asked is the newest request that a contact received before a message, with the contact's texts between the request and the message.
type Asked struct {
	Confirmation, Account, Contact int64
	Position                       event.Position
	Messages                       []int64
	Texts                          []string
}

// maxListed is the maximum number of parties in one event.
const maxListed = 1000

// Begin records a request with its parties.
type Begin struct {
	Requested

	Parties []Party
}

// Decide lists the parties in the order of their accounts.
func (c Begin) Decide(State) ([]event.Event[State], error) {
	events := []event.Event[State]{c.Requested}
	for rest := c.Parties; len(rest) > 0; {
		n := min(len(rest), maxListed)
		events = append(events, PartiesListed{Parties: rest[:n]})
		rest = rest[n:]
	}
	return events, nil
}

// places are the names of a template's placeholders, in the order of numbered placeholders.
var places = []string{"name", "as_of", "cash", "fine", "link"}

// Params returns the value of each placeholder of a template. The error names a placeholder without a value, or says that the template has
// nothing to confirm. The value of a button is the token of its URL, the value of a document is the statement.
func Params(parameters, extras []string) (map[string]string, error) {
	params, shown := map[string]string{}, false
	for _, place := range append(append([]string{}, parameters...), extras...) {
		value := ""
		for i, name := range places {
			if place == name || place == strconv.Itoa(i+1) {
				value = name
			}
		}
		switch {
		case place == "header_document":
			value = "link"
		case strings.HasPrefix(place, "button_"):
			value = "token"
		}
		if value == "" {
			return nil, fault.Wrong("templateId", "the template's placeholder "+place+" is none of "+strings.Join(places, ", ")+" or 1 to 5")
		}
		params[place] = "{{" + value + "}}"
		shown = shown || value != "name" && value != "as_of"
	}
	if !shown {
		return nil, fault.Wrong("templateId", "the template shows neither a balance nor the statement")
	}
	return params, nil
}

// words describe the sign of a balance by language: the party owes, the workshop owes, neither owes. The fourth text is the unit of fine
// metal.
var words = map[string][4]string{
	"en": {"you owe", "owes you", "settled", "g fine"},
	"gu": {"દેવાના છે", "લેવાના છે", "હિસાબ ચૂકતે", "ગ્રામ ફાઇન"},
	"hi": {"देना है", "लेना है", "हिसाब बराबर", "ग्राम फाइन"},
}

// Values returns the values of the placeholders in a party's message. The workshop owes a positive balance to the party.
func (s State) Values(p Party, language, link string) []string {
	in, known := words[strings.ToLower(language[:min(len(language), 2)])]
	if !known {
		in = words["en"]
	}
	owed := func(figure string, n int64) string {
		switch {
		case n < 0:
			return figure + " " + in[0]
		case n > 0:
			return figure + " " + in[1]
		}
		return figure + " " + in[2]
	}
	metal := in[3]
	if p.Ledger == "polisher" {
		metal, _, _ = strings.Cut(metal, " ") // the weight is gross
	}
	cash := "₹" + unit.Indian(p.Cash.Decimal().Abs().StringFixed(unit.MoneyPlaces))
	fine := unit.Indian(p.Fine.Decimal().Abs().StringFixed(unit.GramsPlaces)) + " " + metal
	return []string{
		"{{as_of}}", s.AsOf.Time().Format("02 Jan 2006"), "{{cash}}", owed(cash, int64(p.Cash)), "{{fine}}", owed(fine, int64(p.Fine)),
		"{{link}}", link, "{{token}}", link[strings.LastIndexByte(link, '/')+1:],
	}
}
