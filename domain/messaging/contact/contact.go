// Package contact is a person with whom a workspace exchanges messages. The contact's key seals the personal values and
// is destroyed with the contact.
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
	"bahi/domain/wording"
)

// Kind registers the events of streams messagingcontact-<number>. Stored names are permanent.
var Kind = event.NewKind("messagingcontact",
	event.Of[Added]("MessagingContactAdded", 1),
	event.Of[Edited]("MessagingContactEdited", 1),
	event.Of[ListsChanged]("MessagingContactListsChanged", 1),
	event.Of[SenderAdded]("MessagingContactSenderAdded", 1),
	event.Of[ConsentChanged]("MessagingContactConsentChanged", 1),
	event.Of[Absorbed]("MessagingContactAbsorbed", 1),
	event.Of[Merged]("MessagingContactMerged", 1),
	event.Of[Deleted]("MessagingContactDeleted", 1),
).Sealing(Subjects)

type phone struct{}

// Phones are the claims of contacts' phones. Each phone belongs to one contact of a workspace. The streams are messagingphone-<hash>.
var Phones = claims.New[phone]("messagingphone", "MessagingPhoneClaimed", "MessagingPhoneReleased")

// Subjects are the contacts: each is the subject of its own stream.
const Subjects event.SubjectType = "messagingcontact"

// ErrNotFound reports an unknown contact. Callers without access to the contact receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Contact not found")

// The values of a new contact, and the status set by staff replies.
const (
	open     = "open"
	Manual   = "manual"
	Resolved = "resolved"
	Pending  = "pending" // staff must reply: bots do not
)

// State is the state that decisions and responses require. Its personal values are sealed.
type State struct {
	Name       event.Personal
	Phone      event.Personal // E.164 without its plus sign
	PhoneKey   string         // keyed hash, which identifies the claim of the phone; empty: no phone
	PhoneText  event.Personal // unreadable phone as given; zero: none
	Email      event.Personal
	Source     string
	OptIn      bool           // the contact consents to messages
	OptedOutBy string         // way in which the contact opted out; empty: it did not, or a user changed the consent
	OptedOutAt network.Moment // when the contact last opted out
	Senders    []Sender
	ReplyBot   bool   // a bot may reply
	Status     string // open, pending or resolved; empty: the contact does not exist
	Lists      []int64
	ByHand     bool    // a user has set the name
	Absorbed   []int64 // merged contacts of the same person
	Into       int64   // contact into which this one was merged, with all other fields empty; 0: none
}

// Added records a new contact. It has not opted in, bots reply to it, and it is open.
type Added struct {
	Name      event.Personal `json:"name,omitzero"`
	Phone     event.Personal `json:"phone,omitzero"`
	PhoneKey  string         `json:"phone_key,omitempty"`
	Email     event.Personal `json:"email,omitzero"`
	Source    string         `json:"source"`
	PhoneText event.Personal `json:"phone_text,omitzero"` // unreadable phone as given
}

// Edited records the changed fields.
type Edited struct {
	Name     patch.Field[event.Personal] `json:"name,omitzero"`
	Phone    patch.Field[event.Personal] `json:"phone,omitzero"`
	PhoneKey string                      `json:"phone_key,omitempty"` // keyed hash of a given phone
	Email    patch.Field[event.Personal] `json:"email,omitzero"`
	OptIn    patch.Field[bool]           `json:"opt_in,omitzero"`
	ReplyBot patch.Field[bool]           `json:"reply_bot,omitzero"`
	Status   patch.Field[string]         `json:"status,omitzero"`
	Evidence event.Personal              `json:"opt_in_evidence,omitzero"` // evidence of a given consent
	Imported bool                        `json:"imported,omitempty"`       // imported from a file of contacts: campaigns exclude the contact

	PhoneText event.Personal `json:"phone_text,omitzero"` // unreadable phone as given; the phone is null
}

// ListsChanged records all lists of the contact.
type ListsChanged struct {
	Lists []int64 `json:"lists"`
}

// Deleted records that the contact was deleted and its data is to be erased.
type Deleted struct{}

// Evolve creates the contact.
func (e Added) Evolve(State) State {
	return State{Name: e.Name, Phone: e.Phone, PhoneKey: e.PhoneKey, PhoneText: e.PhoneText, Email: e.Email, Source: e.Source,
		ReplyBot: true, Status: open, ByHand: e.Source == Manual}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.Email, s.ByHand = e.Name.Or(s.Name), e.Email.Or(s.Email), s.ByHand || e.Name.Present()
	if e.Phone.Present() {
		s.Phone, s.PhoneKey, s.PhoneText = e.Phone.Value, e.PhoneKey, e.PhoneText
	}
	if e.OptIn.Present() {
		s.OptedOutBy = ""
	}
	s.OptIn, s.ReplyBot, s.Status = e.OptIn.Or(s.OptIn), e.ReplyBot.Or(s.ReplyBot), e.Status.Or(s.Status)
	return s
}

// Evolve sets the lists.
func (e ListsChanged) Evolve(s State) State {
	s.Lists = e.Lists
	return s
}

// Evolve removes the contact.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger].
func (Deleted) Erases(id string) event.Erasure { return event.Erasure{Subject: Subjects.Of(id)} }

// Addresses are the addresses of a contact. An empty text removes one, like null. An unreadable phone is stored as a text, and replaces the
// phone (CONTRACT.md 0.12, R5).
type Addresses struct {
	Phone    patch.Field[string] `json:"phone,omitzero" maxLength:"40"  doc:"Phone number with country code; optional for Indian mobile numbers"`
	PhoneKey string              `json:"-"` // keyed hash of the normalised phone
	Respelt  bool                `json:"-"` // the phone may have another spelling with the same key
	Email    patch.Field[string] `json:"email,omitzero" maxLength:"254" doc:"Email address"`
}

// personal returns the values in their stored form, or all faults. unread is an unreadable phone.
func (r Addresses) personal(id string) (phone, email patch.Field[event.Personal], unread event.Personal, err error) {
	number, text, wrongNumber := wording.ParseE164("phone", r.Phone)
	address, wrongAddress := r.Email.With(func(text string) (string, error) {
		if strings.TrimSpace(text) == "" {
			return "", nil
		}
		return person.Email("email", text)
	})
	return Subjects.Field(id, number), Subjects.Field(id, address), Subjects.Personal(id, text), fault.Join(wrongNumber, wrongAddress)
}

// Add adds a contact without consent. Only Edit, or a file of contacts with evidence, sets the consent.
type Add struct {
	Addresses

	ID     string `json:"-"`
	Name   string `json:"name"             maxLength:"400" doc:"Name of the contact"`
	Source string `json:"source,omitempty" enum:"chat,social,manual" doc:"Origin of the contact; absent: manual"`

	ListIDs []int64 `json:"listIds,omitempty" maxItems:"100" doc:"Lists that the contact is in"`

	Sender   Sender `json:"-"` // the network's id of the contact; zero: none
	Evidence string `json:"-"` // evidence of consent in a file; empty: no consent
}

// Decide normalises the values.
func (c Add) Decide(State) ([]event.Event[State], error) {
	name, wrong := person.Name("name", c.Name)
	phone, email, unread, err := c.personal(c.ID)
	if err := fault.Join(wrong, err); err != nil {
		return nil, err
	}
	added := Added{Name: Subjects.Personal(c.ID, name), Phone: phone.Value, PhoneKey: c.PhoneKey, Email: email.Value,
		Source: cmp.Or(c.Source, Manual), PhoneText: unread}
	events := []event.Event[State]{added}
	if c.Sender.Key != "" {
		events = append(events, SenderAdded(c.Sender.sealed(c.ID)))
	}
	if c.Evidence != "" {
		events = append(events, Edited{OptIn: patch.Set(true), Evidence: Subjects.Personal(c.ID, c.Evidence), Imported: true})
	}
	return append(events, listed(nil, c.ListIDs)...), nil
}

// listed returns the event of a change of lists. The ids are sorted and distinct.
func listed(before, after []int64) []event.Event[State] {
	after = slices.Compact(slices.Sorted(slices.Values(after)))
	if slices.Equal(before, after) {
		return nil
	}
	return []event.Event[State]{ListsChanged{Lists: after}}
}

// Join adds a contact to a list.
type Join struct{ List int64 }

// Decide returns no events if the contact is already in the list.
func (c Join) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	return listed(s.Lists, append(slices.Clone(s.Lists), c.List)), nil
}

// Edit changes the fields of a contact that it contains. Users may set any status (CONTRACT.md D23).
type Edit struct {
	Addresses

	ID       string              `json:"-"`
	Name     patch.Field[string] `json:"name,omitzero"     nullable:"false" maxLength:"400" doc:"Name of the contact"`
	OptIn    patch.Field[bool]   `json:"optIn,omitzero"    nullable:"false" doc:"true: the contact has opted in"`
	Evidence string              `json:"optInEvidence,omitempty" maxLength:"500" doc:"Evidence of the consent, such as a signed form"`
	ReplyBot patch.Field[bool]   `json:"replyBot,omitzero" nullable:"false" doc:"true: a bot may reply"`
	Status   patch.Field[string] `json:"status,omitzero"   nullable:"false" enum:"open,pending,resolved" doc:"Status of the contact"`

	ListIDs patch.Field[[]int64] `json:"listIds,omitzero" nullable:"false" maxItems:"100" doc:"All lists of the contact"`
}

// Decide records the fields that change. Sealed names and emails cannot be compared, so given ones count as changed.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	name, wrong := c.Name.With(func(text string) (string, error) { return person.Name("name", text) })
	phone, email, unread, err := c.personal(c.ID)
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
	if phone.Present() && (c.PhoneKey != s.PhoneKey || c.Respelt || !unread.IsZero() || !s.PhoneText.IsZero()) {
		e.Phone, e.PhoneKey, e.PhoneText = phone, c.PhoneKey, unread
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

// Reopen reopens a resolved contact after a new message from it (CONTRACT.md D23).
type Reopen struct{}

// Decide returns no events for a contact that is not resolved.
func (Reopen) Decide(s State) ([]event.Event[State], error) {
	if s.Status != Resolved {
		return nil, nil
	}
	return []event.Event[State]{Edited{Status: patch.Set(open)}}, nil
}

// Delete deletes a contact.
type Delete struct{}

// Decide returns an error if the contact does not exist.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	return []event.Event[State]{Deleted{}}, nil
}
