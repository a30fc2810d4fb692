// Package takada is a partial delivery of a client's order: pieces and their weights, each with the karigar who made it. It does not post
// to any ledger.
package takada

import (
	"fmt"
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/patch"
	"bahi/domain/unit"
)

// Kind names what a stream takada-<number> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("takada",
	event.Of[Added]("TakadaAdded", 1),
	event.Of[Edited]("TakadaEdited", 1),
	event.Of[Deleted]("TakadaDeleted", 1),
)

// The refusals of takadas.
var (
	ErrNotFound    = fault.New(fault.NotFound, "Takada not found")
	ErrOtherClient = fault.New(fault.Conflict, "A takada stays with its client: the other order is of another one")
)

// Takada is a delivery, as it is stored and shown.
type Takada struct {
	Order int64     `json:"client_order_id" minimum:"1" doc:"ID of the client order"`
	Date  unit.Date `json:"date" doc:"Date of the delivery"`
	Items []Item    `json:"items" nullable:"false" doc:"1 to 500"`
}

// Item is a delivered piece.
type Item struct {
	Name     book.Text  `json:"item_name" maxLength:"200" doc:"Name of the item"`
	Weight   unit.Grams `json:"weight" doc:"In grams, above 0"`
	Karigar  *int64     `json:"karigar_id" required:"false" minimum:"1" doc:"Who made it; null: nobody is named, or the karigar was deleted"`
	Quantity int64      `json:"quantity,omitempty" minimum:"1" maximum:"999999999" doc:"Number of pieces"`
}

// State is a takada. Order is 0 where there is none.
type State struct {
	Takada

	Deleted bool `json:"deleted,omitempty"`
}

// Exists reports whether the takada was added and not deleted.
func (s State) Exists() bool { return s.Order != 0 && !s.Deleted }

// Weight returns the weight of all items.
func (t Takada) Weight() (sum unit.Grams) {
	for _, item := range t.Items {
		sum += item.Weight
	}
	return sum
}

// Karigars returns the ids of the karigars of the items, each once.
func (t Takada) Karigars() (ids []int64) {
	for _, item := range t.Items {
		if item.Karigar != nil && !slices.Contains(ids, *item.Karigar) {
			ids = append(ids, *item.Karigar)
		}
	}
	return ids
}

// Without returns the takada without those karigars whom the function reports.
func (t Takada) Without(gone func(karigar int64) bool) Takada {
	t.Items = slices.Clone(t.Items)
	for i, item := range t.Items {
		if item.Karigar != nil && gone(*item.Karigar) {
			t.Items[i].Karigar = nil
		}
	}
	return t
}

// Look is what a takada refers to.
type Look struct {
	Order   func(order int64) (client int64, err error) // whose order it is; 0: there is none, or its client is not open
	Karigar func(karigar int64) (open bool, err error)
}

// check returns why a takada may not become another one, nil if it may, and all faults together: its order must exist, of the same client
// as before, and new items need karigars who are open.
func (look Look) check(before, after State, today unit.Date) error {
	wrong, other := after.check(today), false
	if !before.Exists() || after.Order != before.Order {
		client, err := look.Order(after.Order)
		if err == nil && client == 0 {
			wrong = append(wrong, fault.Field{Field: "client_order_id", Message: "there is no such order"})
		}
		if err == nil && client != 0 && before.Exists() {
			var was int64
			was, err = look.Order(before.Order)
			other = client != was
		}
		if err != nil {
			return err
		}
	}
	if !sameItems(before.Items, after.Items) {
		for i, item := range after.Items {
			if item.Karigar == nil {
				continue
			}
			open, err := look.Karigar(*item.Karigar)
			if err != nil {
				return err
			}
			if !open {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("items[%d].karigar_id", i), Message: "there is no such karigar"})
			}
		}
	}
	switch {
	case len(wrong) > 0:
		return fault.Fields(wrong...)
	case other:
		return ErrOtherClient
	default:
		return nil
	}
}

// Added begins a takada.
type Added struct{ Takada }

// Edited changes what is named.
type Edited struct {
	Order patch.Field[int64]     `json:"client_order_id,omitzero"`
	Date  patch.Field[unit.Date] `json:"date,omitzero"`
	Items patch.Field[[]Item]    `json:"items,omitzero"`
}

// Deleted ends the takada.
type Deleted struct{}

// Evolve begins the takada.
func (e Added) Evolve(State) State { return State{Takada: e.Takada} }

// Evolve changes what is named.
func (e Edited) Evolve(s State) State {
	s.Order, s.Date, s.Items = e.Order.Or(s.Order), e.Date.Or(s.Date), e.Items.Or(s.Items)
	return s
}

// Evolve ends the takada.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }

// Add makes a takada.
type Add struct {
	Takada

	Today unit.Date `json:"-"` // bounds the date
	Look  Look      `json:"-"`
}

// Decide refuses what is wrong in any field.
func (c Add) Decide(State) ([]event.Event[State], error) {
	if err := c.Look.check(State{}, State{Takada: c.Takada}, c.Today); err != nil {
		return nil, err
	}
	return []event.Event[State]{Added{Takada: c.Takada}}, nil
}

// Edit changes what it names of a takada. Items replace all items.
type Edit struct {
	Order patch.Field[int64]     `json:"client_order_id,omitzero" nullable:"false" minimum:"1" doc:"ID of the client order"`
	Date  patch.Field[unit.Date] `json:"date,omitzero"            nullable:"false" doc:"Date of the delivery"`
	Items patch.Field[[]Item]    `json:"items,omitzero"           nullable:"false" doc:"All items of the takada"`

	Today unit.Date `json:"-"`
	Look  Look      `json:"-"`
}

// Decide changes what is named and differs.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists() {
		return nil, ErrNotFound
	}
	e := Edited{Order: patch.Differing(c.Order, s.Order), Date: patch.Differing(c.Date, s.Date)}
	if c.Items.Present() && !sameItems(c.Items.Value, s.Items) {
		e.Items = c.Items
	}
	if !e.Order.Present() && !e.Date.Present() && !e.Items.Present() {
		return nil, nil
	}
	if err := c.Look.check(s, e.Evolve(s), c.Today); err != nil {
		return nil, err
	}
	return []event.Event[State]{e}, nil
}

// Delete ends a takada.
type Delete struct{}

// Decide refuses a takada that is not there.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if !s.Exists() {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// check returns the faults of all fields.
func (t Takada) check(today unit.Date) []fault.Field {
	wrong := append(order.CheckDate(t.Date, today), order.CheckCount(len(t.Items))...)
	for i, item := range t.Items {
		wrong = append(wrong, order.CheckPiece(fmt.Sprintf("items[%d].", i), item.Name, item.Weight, item.Quantity)...)
	}
	return wrong
}

func sameItems(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(a, b Item) bool {
		karigar := a.Karigar == b.Karigar || a.Karigar != nil && b.Karigar != nil && *a.Karigar == *b.Karigar
		return karigar && a.Name == b.Name && a.Weight == b.Weight && a.Quantity == b.Quantity
	})
}
