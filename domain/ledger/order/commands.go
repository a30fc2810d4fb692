package order

import (
	"fmt"
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/patch"
	"bahi/domain/unit"
)

const (
	maxSlip  = 40 // characters (CONTRACT.md D19)
	maxItems = 500
)

// Add adds an order. Its items get new ids.
type Add struct {
	Order

	Today     unit.Date `json:"-"` // the date may be at most one day later
	FirstItem int64     `json:"-"` // id of the first new item; the ids are consecutive; 0: none is assigned, in a dry run
	Found     []Warning `json:"-"` // warnings about the slip
	IsOpen    IsOpen    `json:"-"`
}

// IsOpen reports whether the client exists and is not deleted; nil: no check. With it, Decide reports an unknown client together with all
// other faults.
type IsOpen func(client int64) (bool, error)

// check returns the faults of an order and of its client.
func (open IsOpen) check(client int64, wrong []fault.Field) error {
	if open != nil {
		if is, err := open(client); err != nil {
			return err
		} else if !is {
			wrong = append(wrong, fault.Field{Field: "client_id", Message: "there is no such client"})
		}
	}
	return fault.Found(wrong)
}

// Decide normalises the texts and returns the faults of all fields.
func (c Add) Decide(State) ([]event.Event[State], error) {
	o := c.Order
	o.Slip, o.Warnings, o.Items = kept(o.Slip), c.Found, slices.Clone(o.Items)
	for i := range o.Items {
		o.Items[i].ID = 0
	}
	if err := c.IsOpen.check(o.Client, o.check(c.Today)); err != nil {
		return nil, err
	}
	numberItems(o.Items, c.FirstItem)
	return []event.Event[State]{Added{Order: o}}, nil
}

// Edit changes the fields of an order that it contains. Items replaces all items.
type Edit struct {
	Client   patch.Field[int64]     `json:"client_id,omitzero"     nullable:"false" minimum:"1" doc:"ID of the client"`
	Slip     patch.Field[book.Text] `json:"slip_number,omitzero"   maxLength:"40" doc:"Number of the slip"`
	Date     patch.Field[unit.Date] `json:"date,omitzero"          nullable:"false" doc:"Date of the order"`
	Delivery patch.Field[unit.Date] `json:"delivery_date,omitzero" nullable:"true" doc:"Promised date of delivery"`
	Items    patch.Field[[]Item]    `json:"items,omitzero"         nullable:"false" doc:"All items of the order"`

	Today     unit.Date `json:"-"`
	FirstItem int64     `json:"-"`
	Found     []Warning `json:"-"`
	IsOpen    IsOpen    `json:"-"`
	Takadas   int       `json:"-"` // number of the order's takadas
}

// Decide returns [ErrHasTakadas] for a new client of an order with takadas. An item with a known id keeps the id.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists() {
		return nil, ErrNotFound
	}
	after := c.Of(s.Order)
	e := Edited{Client: patch.Differing(c.Client, s.Client), Date: patch.Differing(c.Date, s.Date)}
	if !same(after.Slip, s.Slip) {
		e.Slip = fieldOf(after.Slip)
	}
	if !same(after.Delivery, s.Delivery) {
		e.Delivery = fieldOf(after.Delivery)
	}
	wrong := unknownItems(after.Items, s.Items)
	if !slices.Equal(after.Items, s.Items) {
		e.Items = patch.Set(after.Items)
	}
	slipped := e.Client.Present() || e.Slip.Present() || e.Date.Present()
	if !slipped && !e.Delivery.Present() && !e.Items.Present() && len(wrong) == 0 {
		return nil, nil
	}
	if !e.Client.Present() {
		c.IsOpen = nil
	}
	if err := c.IsOpen.check(after.Client, append(wrong, after.check(c.Today)...)); err != nil {
		return nil, err
	}
	if e.Client.Present() && c.Takadas > 0 {
		return nil, ErrHasTakadas
	}
	numberItems(after.Items, c.FirstItem)
	if slipped && !slices.Equal(c.Found, s.Warnings) {
		e.Warnings = patch.Set(c.Found)
	}
	return []event.Event[State]{e}, nil
}

// Of returns the order after the change, with warnings and without ids of new items.
func (c Edit) Of(o Order) Order {
	o.Client, o.Slip, o.Date, o.Delivery = c.Client.Or(o.Client), kept(c.Slip.Of(o.Slip)), c.Date.Or(o.Date), c.Delivery.Of(o.Delivery)
	o.Items = slices.Clone(c.Items.Or(o.Items))
	return o
}

// Delete deletes an order and its takadas.
type Delete struct{}

// Decide returns [ErrNotFound] if the order does not exist.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists() {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// Make adds an order from a draft. The draft was already checked.
type Make struct{ Added }

// Decide returns the event.
func (c Make) Decide(State) ([]event.Event[State], error) { return []event.Event[State]{c.Added}, nil }

// check returns the faults of all fields.
func (o Order) check(today unit.Date) (wrong []fault.Field) {
	wrong = append(CheckSlip(o.Slip), CheckDate(o.Date, today)...)
	if o.Delivery != nil && *o.Delivery < o.Date {
		wrong = append(wrong, fault.Field{Field: "delivery_date", Message: "must not be before date"})
	}
	wrong = append(wrong, CheckCount(len(o.Items))...)
	for i, item := range o.Items {
		at := fmt.Sprintf("items[%d].", i)
		wrong = append(wrong, CheckPiece(at, item.Name, item.Weight, item.Quantity)...)
		if item.MakingCharge < 0 {
			wrong = append(wrong, fault.Field{Field: at + "making_charge", Message: "must not be negative"})
		}
	}
	return wrong
}

// CheckSlip returns the faults of a slip number, nil for none.
func CheckSlip(slip *book.Text) []fault.Field {
	if slip == nil {
		return nil
	}
	return book.CheckText("slip_number", *slip, maxSlip)
}

// CheckDate refuses a date after tomorrow.
func CheckDate(date, today unit.Date) []fault.Field {
	if date > today+1 {
		return []fault.Field{{Field: "date", Message: "must not be after tomorrow"}}
	}
	return nil
}

// CheckCount returns the fault of the number of items.
func CheckCount(items int) []fault.Field {
	switch {
	case items == 0:
		return []fault.Field{{Field: "items", Message: "at least one is needed"}}
	case items > maxItems:
		return []fault.Field{{Field: "items", Message: fmt.Sprintf("at most %d", maxItems)}}
	default:
		return nil
	}
}

// CheckPiece returns the faults of an item's name, weight and quantity. at is the prefix of their field names.
func CheckPiece(at string, name book.Text, weight unit.Grams, quantity int64) []fault.Field {
	wrong := book.CheckText(at+"item_name", name, book.MaxItemName)
	if name == "" {
		wrong = []fault.Field{{Field: at + "item_name", Message: "must not be empty"}}
	}
	if weight <= 0 {
		wrong = append(wrong, fault.Field{Field: at + "weight", Message: "must be above 0"})
	}
	if quantity < 0 {
		wrong = append(wrong, fault.Field{Field: at + "quantity", Message: "must be above 0"})
	}
	return wrong
}

// unknownItems returns the faults of unknown and repeated item ids.
func unknownItems(items, known []Item) (wrong []fault.Field) {
	for i, item := range items {
		has := func(other Item) bool { return other.ID == item.ID }
		switch {
		case item.ID == 0:
		case !slices.ContainsFunc(known, has):
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("items[%d].id", i), Message: "the order has no such item"})
		case slices.ContainsFunc(items[:i], has):
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("items[%d].id", i), Message: "must be given once"})
		}
	}
	return wrong
}

// numberItems assigns ids to new items.
func numberItems(items []Item, first int64) {
	for i := range items {
		if items[i].ID == 0 && first != 0 {
			items[i].ID = first + int64(i)
		}
	}
}

// kept returns the stored form of a slip number: nil if it is empty.
func kept(slip *book.Text) *book.Text {
	if slip != nil && *slip == "" {
		return nil
	}
	return slip
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// fieldOf returns the field that sets the value, or removes it for nil.
func fieldOf[T any](value *T) patch.Field[T] {
	if value == nil {
		return patch.Clear[T]()
	}
	return patch.Set(*value)
}
