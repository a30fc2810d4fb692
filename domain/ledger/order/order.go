// Package order is a client's order: pieces with weights and making charges, on a numbered paper slip. Takadas are its deliveries.
package order

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/unit"
)

// Kind registers the events of streams clientorder-<number>. Stored names are permanent.
var Kind = event.NewKind("clientorder",
	event.Of[Added]("ClientOrderAdded", 1),
	event.Of[Edited]("ClientOrderEdited", 1),
	event.Of[Deleted]("ClientOrderDeleted", 1),
)

// Errors that commands return.
var (
	ErrNotFound   = fault.New(fault.NotFound, "Client order not found")
	ErrHasTakadas = fault.New(fault.Conflict, "The client of an order that has takadas cannot change")
)

// Order is a client's order, in its stored and returned form.
type Order struct {
	Client   int64      `json:"client_id" minimum:"1" doc:"ID of the client"`
	Slip     *book.Text `json:"slip_number" required:"false" maxLength:"40" doc:"Number of the order slip. Numbers of paper slips repeat, so orders may share one"`
	Date     unit.Date  `json:"date" doc:"Date of the order"`
	Delivery *unit.Date `json:"delivery_date" required:"false" nullable:"true" doc:"Agreed date of delivery, not before date"`
	Items    []Item     `json:"items" nullable:"false" doc:"Items, 1 to 500"`
	Warnings []Warning  `json:"warnings,omitempty" nullable:"false" readOnly:"true" doc:"Warnings about values that Bahi keeps"`
}

// Item is a piece of an order.
type Item struct {
	ID           int64      `json:"id,omitempty" minimum:"1" doc:"ID of the item; absent in a change: a new item"`
	Name         book.Text  `json:"item_name" maxLength:"200" doc:"Name of the item"`
	Weight       unit.Grams `json:"weight" doc:"In grams, above 0"`
	MakingCharge unit.Money `json:"making_charge" required:"false" doc:"Making charge in rupees; absent: 0"`
	Quantity     int64      `json:"quantity,omitempty" minimum:"1" maximum:"999999999" doc:"Number of pieces"`
}

// Warning reports an unusual value that may be correct.
type Warning struct {
	Field   string `json:"field" doc:"Name of the field"`
	Message string `json:"message" doc:"Warning"`
	ID      int64  `json:"id" doc:"ID of the other record"`
}

// State is an order. Client is 0 if the order does not exist.
type State struct {
	Order

	Deleted bool `json:"deleted,omitempty"`
}

// Exists reports whether the order was added and not deleted.
func (s State) Exists() bool { return s.Client != 0 && !s.Deleted }

// Weight returns the weight of all items.
func (o Order) Weight() (sum unit.Grams) {
	for _, item := range o.Items {
		sum += item.Weight
	}
	return sum
}

// The delivery states of an order.
const (
	Open      = "open"
	Partial   = "partial"
	Delivered = "delivered"
)

// Status returns the delivery state of an order with a total weight (CONTRACT.md O4).
func Status(total, delivered unit.Grams) string {
	switch {
	case delivered <= 0 || total <= 0:
		return Open
	case delivered >= total:
		return Delivered
	default:
		return Partial
	}
}

// NormalisedSlip returns a slip number in the form for comparison, "" for none (CONTRACT.md O5).
func NormalisedSlip(slip *book.Text) string {
	if slip == nil {
		return ""
	}
	return person.Folded(string(*slip))
}

// Added records a new order.
type Added struct {
	Order

	Draft int64 `json:"draft,omitempty"` // draft that became the order
}

// Edited records the changed fields.
type Edited struct {
	Client   patch.Field[int64]     `json:"client_id,omitzero"`
	Slip     patch.Field[book.Text] `json:"slip_number,omitzero"`
	Date     patch.Field[unit.Date] `json:"date,omitzero"`
	Delivery patch.Field[unit.Date] `json:"delivery_date,omitzero"`
	Items    patch.Field[[]Item]    `json:"items,omitzero"`
	Warnings patch.Field[[]Warning] `json:"warnings,omitzero"`
}

// Deleted records the deletion of the order and its takadas.
type Deleted struct{}

// Evolve sets the order.
func (e Added) Evolve(State) State { return State{Order: e.Order} }

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Client, s.Slip, s.Date = e.Client.Or(s.Client), e.Slip.Of(s.Slip), e.Date.Or(s.Date)
	s.Delivery, s.Items, s.Warnings = e.Delivery.Of(s.Delivery), e.Items.Or(s.Items), e.Warnings.Or(s.Warnings)
	return s
}

// Evolve marks the order as deleted.
func (Deleted) Evolve(s State) State { s.Deleted = true; return s }
