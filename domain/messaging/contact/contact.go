// Package contact is a person whom a workspace writes to and hears from. The log has what they are called and how they are reached only
// under their own key, which ends with the contact.
package contact

import (
	"cmp"
	"slices"
	"strings"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Kind registers the events of streams messagingcontact-<number>. Stored names are permanent.
var Kind = event.NewKind("messagingcontact",
	event.Of[Added]("MessagingContactAdded", 1),
	event.Of[Edited]("MessagingContactEdited", 1),
	event.Of[ListsChanged]("MessagingContactListed", 1),
	event.Of[SenderAdded]("MessagingContactReached", 1),
	event.Of[ConsentChanged]("MessagingContactConsentMoved", 1),
	event.Of[Absorbed]("MessagingContactAbsorbed", 1),
	event.Of[Merged]("MessagingContactMerged", 1),
	event.Of[Deleted]("MessagingContactDeleted", 1),
).Sealing(Subjects)

type phone struct{}

// Phones are the phones of contacts: each belongs to one contact of a workspace. A stream is messagingphone-<hash>.
var Phones = claims.New[phone]("messagingphone", "MessagingPhoneClaimed", "MessagingPhoneReleased")

// Subjects are the contacts: each is the subject of its own stream.
const Subjects event.SubjectType = "messagingcontact"

// ErrNotFound also answers those who may not know that the contact exists.
var ErrNotFound = fault.New(fault.NotFound, "Contact not found")

// What a new contact is, if nobody says anything else, and what people make of it who have answered.
const (
	Open     = "open"
	Manual   = "manual"
	Resolved = "resolved"
	Pending  = "pending" // a person is to answer: bots are silent
)

// State is what decisions and answers need. Its personal values are sealed.
type State struct {
	Name       event.Personal
	Phone      event.Personal // E.164 without its plus sign
	PhoneKey   string         // keyed hash, which names the claim of the phone; empty: no phone
	Email      event.Personal
	Source     string
	OptIn      bool           // consents to be written to
	OptedOutBy string         // what took the consent; empty: nothing did, or a person of the workspace
	OptedOutAt network.Moment // when the contact took it last
	Senders    []Sender
	ReplyBot   bool   // a bot may answer
	Status     string // open, pending or resolved; empty: there is no contact
	Lists      []int64
	ByHand     bool    // people of the workspace have named it
	Absorbed   []int64 // contacts that were found to be the same person
	Into       int64   // the contact that this one was found to be; 0: none. The rest is empty then
}

// Added records a new contact. It has not consented to anything, bots answer it, and it is open.
type Added struct {
	Name     event.Personal `json:"name,omitzero"`
	Phone    event.Personal `json:"phone,omitzero"`
	PhoneKey string         `json:"phone_key,omitempty"`
	Email    event.Personal `json:"email,omitzero"`
	Source   string         `json:"source"`
}

// Edited records a change of what it names.
type Edited struct {
	Name     patch.Field[event.Personal] `json:"name,omitzero"`
	Phone    patch.Field[event.Personal] `json:"phone,omitzero"`
	PhoneKey string                      `json:"phone_key,omitempty"` // of a phone that is given
	Email    patch.Field[event.Personal] `json:"email,omitzero"`
	OptIn    patch.Field[bool]           `json:"opt_in,omitzero"`
	ReplyBot patch.Field[bool]           `json:"reply_bot,omitzero"`
	Status   patch.Field[string]         `json:"status,omitzero"`
	Evidence event.Personal              `json:"opt_in_evidence,omitzero"` // of a consent that is given
	Imported bool                        `json:"imported,omitempty"`       // with a file of contacts: campaigns do not write to who is in it
}

// ListsChanged records all lists that the contact is in from now on.
type ListsChanged struct {
	Lists []int64 `json:"lists"`
}

// Deleted records that the contact is gone, and that the person is to be forgotten.
type Deleted struct{}

// Evolve begins the contact.
func (e Added) Evolve(State) State {
	return State{Name: e.Name, Phone: e.Phone, PhoneKey: e.PhoneKey, Email: e.Email, Source: e.Source, ReplyBot: true, Status: Open,
		ByHand: e.Source == Manual}
}

// Evolve changes what is named.
func (e Edited) Evolve(s State) State {
	s.Name, s.Email, s.ByHand = e.Name.Or(s.Name), e.Email.Or(s.Email), s.ByHand || e.Name.Present()
	if e.Phone.Present() {
		s.Phone, s.PhoneKey = e.Phone.Value, e.PhoneKey
	}
	if e.OptIn.Present() {
		s.OptedOutBy = ""
	}
	s.OptIn, s.ReplyBot, s.Status = e.OptIn.Or(s.OptIn), e.ReplyBot.Or(s.ReplyBot), e.Status.Or(s.Status)
	return s
}

// Evolve puts it into the lists.
func (e ListsChanged) Evolve(s State) State {
	s.Lists = e.Lists
	return s
}

// Evolve ends it.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger].
func (Deleted) Erases(id string) event.Erasure { return event.Erasure{Subject: Subjects.Of(id)} }

// Addresses is how a contact is reached. An empty text is none, as null is.
type Addresses struct {
	Phone    patch.Field[string] `json:"phone,omitzero" maxLength:"40"  doc:"Phone number with country code; optional for Indian mobile numbers"`
	PhoneKey string              `json:"-"` // keyed hash of the phone, in one spelling
	Respelt  bool                `json:"-"` // the phone may have another spelling, with the same key
	Email    patch.Field[string] `json:"email,omitzero" maxLength:"254" doc:"Email address"`
}

// personal returns the values in the form in which they are kept, or all that is wrong with them.
func (r Addresses) personal(id string) (phone, email patch.Field[event.Personal], err error) {
	number, wrongNumber := r.Phone.With(func(text string) (string, error) { return person.ParseE164("phone", text) })
	address, wrongAddress := r.Email.With(func(text string) (string, error) {
		if strings.TrimSpace(text) == "" {
			return "", nil
		}
		return person.Email("email", text)
	})
	return Subjects.Field(id, number), Subjects.Field(id, address), fault.Join(wrongNumber, wrongAddress)
}

// Add makes a contact. Consent is not asked for: only an Edit gives it, or a file of contacts with its evidence.
type Add struct {
	Addresses

	ID     string `json:"-"`
	Name   string `json:"name"             maxLength:"400" doc:"Name of the contact"`
	Source string `json:"source,omitempty" enum:"chat,social,manual" doc:"Where the contact is from; absent: manual"`

	ListIDs []int64 `json:"listIds,omitempty" maxItems:"100" doc:"Lists that the contact is in"`

	Sender   Sender `json:"-"` // by which its network knows it; the zero Sender: by none
	Evidence string `json:"-"` // in a file: how the contact has consented; empty: it has not
}

// Decide puts the values in order.
func (c Add) Decide(State) ([]event.Event[State], error) {
	name, wrong := person.Name("name", c.Name)
	phone, email, err := c.personal(c.ID)
	if err := fault.Join(wrong, err); err != nil {
		return nil, err
	}
	added := Added{Name: Subjects.Personal(c.ID, name), Phone: phone.Value, PhoneKey: c.PhoneKey, Email: email.Value,
		Source: cmp.Or(c.Source, Manual)}
	events := []event.Event[State]{added}
	if c.Sender.Key != "" {
		events = append(events, SenderAdded(c.Sender.sealed(c.ID)))
	}
	if c.Evidence != "" {
		events = append(events, Edited{OptIn: patch.Set(true), Evidence: Subjects.Personal(c.ID, c.Evidence), Imported: true})
	}
	return append(events, listed(nil, c.ListIDs)...), nil
}

// listed returns what follows from other lists, each once and in their order.
func listed(before, after []int64) []event.Event[State] {
	after = slices.Compact(slices.Sorted(slices.Values(after)))
	if slices.Equal(before, after) {
		return nil
	}
	return []event.Event[State]{ListsChanged{Lists: after}}
}

// Join puts a contact into a list.
type Join struct{ List int64 }

// Decide passes over a contact that is in it.
func (c Join) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	return listed(s.Lists, append(slices.Clone(s.Lists), c.List)), nil
}

// Edit changes what it names of a contact. The status moves as agents like (CONTRACT.md D23).
type Edit struct {
	Addresses

	ID       string              `json:"-"`
	Name     patch.Field[string] `json:"name,omitzero"     nullable:"false" maxLength:"400" doc:"Name of the contact"`
	OptIn    patch.Field[bool]   `json:"optIn,omitzero"    nullable:"false" doc:"Consents to be written to"`
	Evidence string              `json:"optInEvidence,omitempty" maxLength:"500" doc:"How the contact has consented, such as a form that was signed"`
	ReplyBot patch.Field[bool]   `json:"replyBot,omitzero" nullable:"false" doc:"A bot may answer"`
	Status   patch.Field[string] `json:"status,omitzero"   nullable:"false" enum:"open,pending,resolved" doc:"Status of the contact"`

	ListIDs patch.Field[[]int64] `json:"listIds,omitzero" nullable:"true" maxItems:"100" doc:"All lists that the contact is in from now on"`
}

// Decide changes what is named and differs. Whether a name or an email differs cannot be told: both are sealed.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	name, wrong := c.Name.With(func(text string) (string, error) { return person.Name("name", text) })
	phone, email, err := c.personal(c.ID)
	if err := fault.Join(wrong, err); err != nil {
		return nil, err
	}
	e := Edited{
		Name: Subjects.Field(c.ID, name), OptIn: patch.Differing(c.OptIn, s.OptIn), ReplyBot: patch.Differing(c.ReplyBot, s.ReplyBot),
		Status: patch.Differing(c.Status, s.Status),
	}
	if e.OptIn.Value {
		e.Evidence = Subjects.Personal(c.ID, strings.TrimSpace(c.Evidence))
	}
	if phone.Present() && (c.PhoneKey != s.PhoneKey || c.Respelt) {
		e.Phone, e.PhoneKey = phone, c.PhoneKey
	}
	if !email.Value.IsZero() || !s.Email.IsZero() {
		e.Email = email
	}
	events := listed(s.Lists, c.ListIDs.Or(s.Lists))
	if e != (Edited{}) {
		events = append([]event.Event[State]{e}, events...)
	}
	return events, nil
}

// Reopen opens a resolved contact, who has written again (CONTRACT.md D23).
type Reopen struct{}

// Decide passes over a contact that is not resolved.
func (Reopen) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Resolved {
		return nil, nil
	}
	return []event.Event[State]{Edited{Status: patch.Set(Open)}}, nil
}

// Delete ends a contact.
type Delete struct{}

// Decide refuses a contact that is not there.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	return []event.Event[State]{Deleted{}}, nil
}
