package orderdraft

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/ordertext"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/unit"
	"bahi/domain/wording"
)

const (
	maxNotes    = 5_000
	maxQuantity = 999_999_999
)

// Receive creates a draft from a message.
type Receive struct {
	Sender  string
	Phone   string // digits
	Raw     string
	Media   string
	Read    ordertext.Order
	Parser  string   // name of the parser
	First   int64    // id of the first entry; the ids are consecutive
	Clients []Client // clients of the workspace
	Reply   bool
}

// Decide creates the draft even without entries, so that staff see the message.
func (c Receive) Decide(State) ([]event.Event[State], error) {
	e := Received{
		Sender: c.Sender, Phone: Senders.Personal(c.Sender, c.Phone), Raw: Senders.Personal(c.Sender, c.Raw),
		Media:  Senders.Personal(c.Sender, c.Media),
		Unused: Senders.Personal(c.Sender, warnings(c.Read.Unused)), Entries: make([]Entry, len(c.Read.Entries)), Cut: c.Read.Cut, Reply: c.Reply,
	}
	proposed := map[string][]Proposal{}
	for i, read := range c.Read.Entries {
		if _, known := proposed[read.Client]; !known {
			proposed[read.Client] = Propose(read.Client, c.Clients)
		}
		e.Entries[i] = Entry{
			ID: c.First + int64(i), Item: Senders.Personal(c.Sender, read.Item), Weight: known(read.Weight), Quantity: known(read.Quantity),
			Client: Senders.Personal(c.Sender, read.Client), Slip: known(read.Slip), Parser: c.Parser,
			Confidence: unit.Share(read.Confidence) * unit.Share(unit.Whole) / 100, Proposals: proposed[read.Client],
		}
	}
	return []event.Event[State]{e}, nil
}

// warnings returns warnings about unused parts of a message as a JSON array, "" for none.
func warnings(unused []string) string {
	if len(unused) == 0 {
		return ""
	}
	all := make([]string, len(unused))
	for i, text := range unused {
		all[i] = `"` + text + `" was not used`
	}
	encoded, _ := json.Marshal(all) //nolint:errchkjson // strings can always be encoded
	return string(encoded)
}

func known[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// NoteReply records the outcome of sending the confirmation.
type NoteReply struct {
	Status, Text, ID string
}

// Decide records the first outcome.
func (c NoteReply) Decide(s State) ([]event.Event[State], error) {
	if s.Sender == "" {
		return nil, ErrNotFound
	}
	if s.Replied {
		return nil, nil
	}
	return []event.Event[State]{Replied(c)}, nil
}

// Edit changes the fields of a draft that are present in Edit. A given client becomes the client of the entries without one.
type Edit struct {
	Client   patch.Field[int64]     `json:"client_id,omitzero"     nullable:"true" minimum:"1" doc:"ID of the client, also set on entries without one"`
	Date     patch.Field[unit.Date] `json:"date,omitzero"          nullable:"true" doc:"Date of the order"`
	Delivery patch.Field[unit.Date] `json:"delivery_date,omitzero" nullable:"true" doc:"Agreed date of delivery, not before date"`
	Notes    patch.Field[book.Text] `json:"notes,omitzero"         nullable:"true" maxLength:"5000" doc:"Notes"`
	Phone    patch.Field[string]    `json:"phone_number,omitzero"  nullable:"true" maxLength:"40" doc:"Phone number with country code; optional for Indian mobile numbers"`

	ClientName string    `json:"-"` // empty: the client does not exist
	Reveal     Reveal    `json:"-"`
	Today      unit.Date `json:"-"`
}

// Reveal decrypts the personal values of a draft. A command that compares or copies the values requires it. nil: the values are already
// decrypted.
type Reveal func(State) (State, error)

func (open Reveal) of(s State) (State, error) {
	if open == nil || !s.Open() {
		return s, nil
	}
	return open(s)
}

// Decide records the fields that change.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if !s.Open() {
		return nil, ErrNotFound
	}
	s, err := c.Reveal.of(s)
	if err != nil {
		return nil, err
	}
	phone, unread, wrongPhone := wording.ParseE164("phone_number", c.Phone)
	if c.Notes.Value == "" && c.Notes.Present() {
		c.Notes = patch.Clear[book.Text]()
	}
	e := Edited{
		Client: differing(c.Client, s.Details.Client), Date: differing(c.Date, s.Details.Date),
		Delivery: differing(c.Delivery, s.Details.Delivery),
		Notes:    differing(c.Notes, s.Details.Notes),
	}
	if phone.Present() && (phone.Value != text(s.Phone) || unread != text(s.PhoneText)) {
		e.Phone, e.PhoneText = Senders.Field(s.Sender, phone), Senders.Personal(s.Sender, unread)
	}
	without := slices.ContainsFunc(s.Entries, func(entry Entry) bool { return entry.ClientID == nil })
	if c.Client.State == patch.Given && without {
		e.Client = c.Client
	}
	var wrong []fault.Field
	if e.Client.State == patch.Given {
		e.ClientName = Senders.Personal(s.Sender, c.ClientName)
		wrong = append(wrong, unknownClient("client_id", c.ClientName)...)
	}
	wrong = append(wrong, book.CheckText("notes", c.Notes.Value, maxNotes)...)
	wrong = append(wrong, checkDates(c.Date.Of(s.Details.Date), c.Delivery.Of(s.Details.Delivery), c.Today)...)
	if err := fault.Join(wrongPhone, fault.Found(wrong)); err != nil {
		return nil, err
	}
	if e == (Edited{}) {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// text returns a decrypted value, or "" if there is none or it was erased.
func text(p event.Personal) string {
	if shown := p.Shown(); shown != nil {
		return *shown
	}
	return ""
}

// differing returns the field if it changes the old value, else an absent field.
func differing[T comparable](f patch.Field[T], old *T) patch.Field[T] {
	after := f.Of(old)
	if after == old || after != nil && old != nil && *after == *old {
		return patch.Field[T]{}
	}
	return f
}

func unknownClient(field, name string) []fault.Field {
	if name != "" {
		return nil
	}
	return []fault.Field{{Field: field, Message: "there is no such client"}}
}

func checkDates(date, delivery *unit.Date, today unit.Date) (wrong []fault.Field) {
	if date != nil {
		wrong = order.CheckDate(*date, today)
	}
	if date != nil && delivery != nil && *delivery < *date {
		wrong = append(wrong, fault.Field{Field: "delivery_date", Message: "must not be before date"})
	}
	return wrong
}

// EditEntry changes the fields of an entry that it contains.
type EditEntry struct {
	Item     patch.Field[book.Text]  `json:"item_name,omitzero"   nullable:"false" maxLength:"200" doc:"Name of the item"`
	Weight   patch.Field[unit.Grams] `json:"weight,omitzero"      nullable:"true" doc:"In grams, above 0"`
	Quantity patch.Field[int64]      `json:"quantity,omitzero"    nullable:"true" minimum:"1" maximum:"999999999" doc:"Number of pieces"`
	ClientID patch.Field[int64]      `json:"client_id,omitzero"   nullable:"true" minimum:"1" doc:"ID of the client; sets client_name"`
	Slip     patch.Field[book.Text]  `json:"slip_number,omitzero" nullable:"true" maxLength:"40" doc:"Number of the slip"`

	ID         int64  `json:"-"`
	ClientName string `json:"-"` // empty: the client does not exist
	Reveal     Reveal `json:"-"`
}

// change returns the event that changes an entry, and the faults.
func (c EditEntry) change(sender string, old Entry) (e EntryEdited, wrong []fault.Field) {
	e.ID = c.ID
	if c.Item.Present() {
		e.Item = Senders.Field(sender, patch.Differing(patch.Set(string(c.Item.Value)), text(old.Item)))
		wrong = append(wrong, book.CheckText("item_name", c.Item.Value, book.MaxItemName)...)
		if c.Item.Value == "" {
			wrong = append(wrong, fault.Field{Field: "item_name", Message: "must not be empty"})
		}
	}
	e.Weight, e.Quantity, e.ClientID = differing(c.Weight, old.Weight), differing(c.Quantity, old.Quantity),
		differing(c.ClientID, old.ClientID)
	if c.Weight.State == patch.Given && c.Weight.Value <= 0 {
		wrong = append(wrong, fault.Field{Field: "weight", Message: "must be above 0"})
	}
	if q := c.Quantity; q.State == patch.Given && (q.Value < 1 || q.Value > maxQuantity) {
		wrong = append(wrong, fault.Field{Field: "quantity", Message: fmt.Sprintf("must be from 1 to %d", maxQuantity)})
	}
	if c.ClientID.State == patch.Given {
		wrong = append(wrong, unknownClient("client_id", c.ClientName)...)
		e.Client = Senders.Field(sender, patch.Differing(patch.Set(c.ClientName), text(old.Client)))
	}
	slip := patch.Field[string]{Value: string(c.Slip.Value), State: c.Slip.State}
	if slip.Present() && slip.Value == "" {
		slip = patch.Clear[string]()
	}
	e.Slip = differing(slip, old.Slip)
	return e, append(wrong, book.CheckText("slip_number", c.Slip.Value, book.MaxSlipNumber)...)
}

// Decide records the fields that change.
func (c EditEntry) Decide(s State) ([]event.Event[State], error) {
	i := s.entry(c.ID)
	switch {
	case !s.Open():
		return nil, ErrNotFound
	case i < 0:
		return nil, ErrNoEntry
	}
	s, err := c.Reveal.of(s)
	if err != nil {
		return nil, err
	}
	e, wrong := c.change(s.Sender, s.Entries[i])
	if err := fault.Found(wrong); err != nil || e == (EntryEdited{ID: c.ID}) {
		return nil, err
	}
	return []event.Event[State]{e}, nil
}

func (s State) entry(id int64) int {
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.ID == id })
}

// AddEntry adds an entry that no parser found.
type AddEntry struct{ EditEntry }

// Decide requires an item name.
func (c AddEntry) Decide(s State) ([]event.Event[State], error) {
	if !s.Open() {
		return nil, ErrNotFound
	}
	e, wrong := c.change(s.Sender, Entry{})
	if !c.Item.Present() {
		wrong = append(wrong, fault.Field{Field: "item_name", Message: "is required"})
	}
	if len(s.Entries) >= ordertext.MaxEntries {
		wrong = append(wrong, fault.Field{Field: "item_name", Message: fmt.Sprintf("a draft has at most %d entries", ordertext.MaxEntries)})
	}
	if err := fault.Found(wrong); err != nil {
		return nil, err
	}
	return []event.Event[State]{EntryAdded{e.of(Entry{ID: c.ID, Parser: staff, Confidence: unit.Share(unit.Whole),
		Proposals: []Proposal{}})}}, nil
}

// DeleteEntry deletes an entry.
type DeleteEntry struct{ ID int64 }

// Decide returns [ErrNoEntry] if the entry does not exist.
func (c DeleteEntry) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Open():
		return nil, ErrNotFound
	case s.entry(c.ID) < 0:
		return nil, ErrNoEntry
	}
	return []event.Event[State]{EntryDeleted(c)}, nil
}

// AssignSlips assigns the next slip numbers, one for each client, in the order of the clients' first entries
// (CONTRACT.md 6.4).
type AssignSlips struct {
	Next   int64 // greater than the slip numbers of all orders and of other drafts
	Reveal Reveal
}

// Decide records the slip numbers that change.
func (c AssignSlips) Decide(s State) ([]event.Event[State], error) {
	if !s.Open() {
		return nil, ErrNotFound
	}
	s, err := c.Reveal.of(s)
	if err != nil {
		return nil, err
	}
	var (
		e     SlipsAssigned
		slips = map[string]string{}
	)
	for _, entry := range s.Entries {
		of := entry.holder()
		if _, has := slips[of]; !has {
			slips[of] = fmt.Sprint(c.Next + int64(len(slips)))
		}
		if entry.Slip == nil || *entry.Slip != slips[of] {
			e.Slips = append(e.Slips, Assigned{entry.ID, slips[of]})
		}
	}
	if len(e.Slips) == 0 {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// holder returns the key of the entry's client: the id, else the name, else "".
func (e Entry) holder() string {
	switch {
	case e.ClientID != nil:
		return fmt.Sprint(*e.ClientID)
	case text(e.Client) != "":
		return "name " + person.Folded(text(e.Client))
	default:
		return ""
	}
}

// Delete deletes a draft.
type Delete struct{}

// Decide returns [ErrNotFound] if the draft does not exist.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if !s.Open() {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// Meet records the phone of a network's user.
type Meet struct {
	Sender, Phone string // keyed hash of the phone, and its digits
}

// Decide records a new phone.
func (c Meet) Decide(s Sender) ([]event.Event[Sender], error) {
	if s.Erased || s.Is == c.Sender {
		return nil, nil
	}
	return []event.Event[Sender]{SenderRegistered{Sender: c.Sender, Phone: Senders.Personal(c.Sender, c.Phone)}}, nil
}

// EraseSender erases a sender: the phone and the messages of all drafts.
type EraseSender struct{}

// Decide erases a sender once.
func (EraseSender) Decide(s Sender) ([]event.Event[Sender], error) {
	if s.Erased {
		return nil, nil
	}
	return []event.Event[Sender]{SenderErased{}}, nil
}

// Confirmation returns the text of the confirmation: the number of items, their weight and the draft's number, without
// prices.
func Confirmation(draft string, entries []Entry) string {
	var weight unit.Grams
	for _, e := range entries {
		if e.Weight != nil {
			weight += *e.Weight
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Order draft %s received", draft)
	switch len(entries) {
	case 0:
	case 1:
		b.WriteString(": 1 item")
	default:
		fmt.Fprintf(&b, ": %d items", len(entries))
	}
	if weight > 0 {
		fmt.Fprintf(&b, ", %s g", weight)
	}
	b.WriteString(". Our staff will confirm it.")
	return b.String()
}
