// Package takada is a partial delivery of a client's order: delivered pieces with weights and karigars. A takada does not post to any
// ledger.
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

// Kind registers the events of streams takada-<number>. Stored names are permanent.
var Kind = event.NewKind("takada",
	event.Of[Added]("TakadaAdded", 1),
	event.Of[Edited]("TakadaEdited", 1),
	event.Of[Deleted]("TakadaDeleted", 1),
)

// Errors that commands return.
var (
	ErrNotFound    = fault.New(fault.NotFound, "Takada not found")
	ErrOtherClient = fault.New(fault.Conflict, "A takada cannot change its client: the other order is of another client")
)

// Takada is a delivery in its stored and returned form.
type Takada struct {
	Order int64     `json:"client_order_id" minimum:"1" doc:"ID of the client order"`
	Date  unit.Date `json:"date" doc:"Date of the delivery"`
	Items []Item    `json:"items" nullable:"false" doc:"Items, 1 to 500"`
}

// Item is a delivered piece.
type Item struct {
	Name     book.Text  `json:"item_name" maxLength:"200" doc:"Name of the item"`
	Weight   unit.Grams `json:"weight" doc:"In grams, above 0"`
	Karigar  *int64     `json:"karigar_id" required:"false" minimum:"1" doc:"ID of the karigar who made the piece; null: none, or the karigar was deleted"`
	Quantity int64      `json:"quantity,omitempty" minimum:"1" maximum:"999999999" doc:"Number of pieces"`
}

// State is a takada. Order is 0 if the takada does not exist.
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

// Karigars returns the distinct ids of the items' karigars.
func (t Takada) Karigars() (ids []int64) {
	for _, item := range t.Items {
		if item.Karigar != nil && !slices.Contains(ids, *item.Karigar) {
			ids = append(ids, *item.Karigar)
		}
	}
	return ids
}

// Without returns the takada without the karigars for which gone returns true.
func (t Takada) Without(gone func(karigar int64) bool) Takada {
	t.Items = slices.Clone(t.Items)
	for i, item := range t.Items {
		if item.Karigar != nil && gone(*item.Karigar) {
			t.Items[i].Karigar = nil
		}
	}
	return t
}

// Look finds the records to which a takada refers.
type Look struct {
	Order   func(order int64) (client int64, err error) // client of the order; 0: the order does not exist or its client is not open
	Karigar func(karigar int64) (open bool, err error)
}

// check returns all faults of the change from before to after. The order must exist and have the same client as before.
// New items require open karigars.
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

// Added records a new takada.
type Added struct{ Takada }

// Edited records the changed fields.
type Edited struct {
	Order patch.Field[int64]     `json:"client_order_id,omitzero"`
	Date  patch.Field[unit.Date] `json:"date,omitzero"`
	Items patch.Field[[]Item]    `json:"items,omitzero"`
}

// Deleted records the deletion of the takada.
type Deleted struct{}

// Evolve sets the takada.
func (e Added) Evolve(State) State { return State{Takada: e.Takada} }

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Order, s.Date, s.Items = e.Order.Or(s.Order), e.Date.Or(s.Date), e.Items.Or(s.Items)
	return s
}

// Evolve marks the takada as deleted.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }

// Add adds a takada.
type Add struct {
	Takada

	Today unit.Date `json:"-"` // the date may be at most one day later
	Look  Look      `json:"-"`
}

// Decide returns the faults of all fields.
func (c Add) Decide(State) ([]event.Event[State], error) {
	if err := c.Look.check(State{}, State{Takada: c.Takada}, c.Today); err != nil {
		return nil, err
	}
	return []event.Event[State]{Added{Takada: c.Takada}}, nil
}

// Edit changes the fields of a takada that it contains. Items replaces all items.
type Edit struct {
	Order patch.Field[int64]     `json:"client_order_id,omitzero" nullable:"false" minimum:"1" doc:"ID of the client order"`
	Date  patch.Field[unit.Date] `json:"date,omitzero"            nullable:"false" doc:"Date of the delivery"`
	Items patch.Field[[]Item]    `json:"items,omitzero"           nullable:"false" doc:"All items of the takada"`

	Today unit.Date `json:"-"`
	Look  Look      `json:"-"`
}

// Decide records the fields that change.
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

// Delete deletes a takada.
type Delete struct{}

// Decide returns [ErrNotFound] if the takada does not exist.
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
