// Package order is what a client ordered: pieces, each with its weight and making charge, on a numbered paper slip. Takadas deliver it.
package order

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/unit"
)

// Kind names what a stream clientorder-<number> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("clientorder",
	event.Of[Added]("ClientOrderAdded", 1),
	event.Of[Edited]("ClientOrderEdited", 1),
	event.Of[Deleted]("ClientOrderDeleted", 1),
	event.Of[ClientChangeAnnounced]("ClientOrderClientChangeAnnounced", 1),
	event.Of[ClientChangeDropped]("ClientOrderClientChangeDropped", 1),
)

// The refusals of orders.
var (
	ErrNotFound  = fault.New(fault.NotFound, "Client order not found")
	ErrDelivered = fault.New(fault.Conflict, "The client of an order that has takadas cannot change")
	ErrChanging  = fault.New(fault.Conflict, "The client of the order is being changed, try again")
)

// Order is what a client ordered, as it is stored and shown.
type Order struct {
	Client   int64      `json:"client_id" minimum:"1"`
	Slip     *book.Text `json:"slip_number" required:"false" maxLength:"40" doc:"Of the order slip; paper slip books begin again, so orders may share one"`
	Date     unit.Date  `json:"date"`
	Delivery *unit.Date `json:"delivery_date" required:"false" nullable:"true" doc:"Agreed on; not before date"`
	Items    []Item     `json:"items" nullable:"false" doc:"1 to 500"`
	Warnings []Warning  `json:"warnings,omitempty" nullable:"false" readOnly:"true"`
}

// Item is a piece of an order.
type Item struct {
	ID           int64      `json:"id,omitempty" minimum:"1" doc:"On a change: which item it is; absent: a new one"`
	Name         book.Text  `json:"item_name" maxLength:"200"`
	Weight       unit.Grams `json:"weight" doc:"In grams, above 0"`
	MakingCharge unit.Money `json:"making_charge" required:"false" doc:"0 if it is absent"`
	Quantity     int64      `json:"quantity,omitempty" minimum:"1" maximum:"999999999"`
}

// Warning tells of something unusual that may be right.
type Warning struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	ID      int64  `json:"id" doc:"Of the other record"`
}

// Place is whose order it was from a position of the log on.
type Place struct {
	At       event.Position `json:"at"`
	Client   int64          `json:"client_id"`
	Changing bool           `json:"changing,omitempty"` // the client was about to change
}

// State is an order with what the rules between streams ask of it.
type State struct {
	Order

	Places  []Place        `json:"places"` // empty: there is no such order
	Deleted event.Position `json:"deleted,omitempty"`
}

// Exists reports whether the order was added and not deleted.
func (s State) Exists() bool { return len(s.Places) > 0 && s.Deleted == 0 }

// At returns whose order it was at a position of the log, 0 if there was no such order, and whether that was about to change.
func (s State) At(at event.Position) (client int64, changing bool) {
	if s.Deleted != 0 && s.Deleted < at {
		return 0, false
	}
	for _, p := range slices.Backward(s.Places) {
		if p.At < at {
			return p.Client, p.Changing
		}
	}
	return 0, false
}

// Weight returns the weight of all items.
func (o Order) Weight() (sum unit.Grams) {
	for _, item := range o.Items {
		sum += item.Weight
	}
	return sum
}

// The words for how far an order is delivered.
const (
	Open      = "open"
	Partial   = "partial"
	Delivered = "delivered"
)

// Status returns the word for an order of a total weight (CONTRACT.md O4).
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

// Folded returns a slip number as slips are compared, "" for none (CONTRACT.md O5).
func Folded(slip *book.Text) string {
	if slip == nil {
		return ""
	}
	return person.Folded(string(*slip))
}

// RefusesStep returns why an event may not make the order after of the order before, nil if it may: the client must be open.
// open is asked as of the event's position.
func RefusesStep(before, after State, open func(client int64) (bool, error)) error {
	if before.Exists() {
		if stands, err := open(before.Client); err != nil || !stands {
			return orElse(err, ErrNotFound)
		}
	}
	if after.Exists() && (!before.Exists() || after.Client != before.Client) {
		if stands, err := open(after.Client); err != nil || !stands {
			return orElse(err, fault.Fields(fault.Field{Field: "client_id", Message: "there is no such client"}))
		}
	}
	return nil
}

func orElse(err error, refusal error) error {
	if err != nil {
		return err
	}
	return refusal
}

// Closing is an order or a takada that was deleted with another record, and whose own stream does not say so yet.
type Closing struct {
	Stream   string
	Cause    string         // stream of the event that deleted both
	Position event.Position // of that event
	Draft    int64          // that the order was made of; 0: none
}

// Added begins an order.
type Added struct{ Order }

// Edited changes what is named.
type Edited struct {
	Client   patch.Field[int64]     `json:"client_id,omitzero"`
	Slip     patch.Field[book.Text] `json:"slip_number,omitzero"`
	Date     patch.Field[unit.Date] `json:"date,omitzero"`
	Delivery patch.Field[unit.Date] `json:"delivery_date,omitzero"`
	Items    patch.Field[[]Item]    `json:"items,omitzero"`
	Warnings patch.Field[[]Warning] `json:"warnings,omitzero"`
}

// Deleted ends the order and its takadas. With metadata "of" it tells the order's stream of a deletion that was decided elsewhere.
type Deleted struct{}

// ClientChangeAnnounced tells that the order is about to go to another client. Until that is done or dropped, no takada may be added to it.
type ClientChangeAnnounced struct{}

// ClientChangeDropped ends an announcement: the client stays.
type ClientChangeDropped struct{}

// EvolveAt begins the order, unless it began before.
func (e Added) EvolveAt(s State, at event.Position) State {
	if len(s.Places) > 0 {
		return s
	}
	return State{Order: e.Order, Places: []Place{{At: at, Client: e.Client}}}
}

// Evolve is EvolveAt for folds without positions.
func (e Added) Evolve(s State) State { return e.EvolveAt(s, s.next()) }

// EvolveAt changes what is named, and notes another client's position.
func (e Edited) EvolveAt(s State, at event.Position) State {
	if !s.Exists() {
		return s
	}
	if e.Client.Named() {
		s = s.moved(Place{At: at, Client: e.Client.Value})
	}
	s.Client, s.Slip, s.Date = e.Client.Or(s.Client), e.Slip.Of(s.Slip), e.Date.Or(s.Date)
	s.Delivery, s.Items, s.Warnings = e.Delivery.Of(s.Delivery), e.Items.Or(s.Items), e.Warnings.Or(s.Warnings)
	return s
}

// Evolve is EvolveAt for folds without positions.
func (e Edited) Evolve(s State) State { return e.EvolveAt(s, s.next()) }

// EvolveAt records where the order ended.
func (Deleted) EvolveAt(s State, at event.Position) State {
	if s.Exists() {
		s.Deleted = at
	}
	return s
}

// Evolve is EvolveAt for folds without positions.
func (e Deleted) Evolve(s State) State { return e.EvolveAt(s, s.next()) }

// EvolveAt closes the order to takadas.
func (ClientChangeAnnounced) EvolveAt(s State, at event.Position) State {
	if !s.Exists() {
		return s
	}
	return s.moved(Place{At: at, Client: s.Client, Changing: true})
}

// Evolve is EvolveAt for folds without positions.
func (e ClientChangeAnnounced) Evolve(s State) State { return e.EvolveAt(s, s.next()) }

// EvolveAt opens the order to takadas.
func (ClientChangeDropped) EvolveAt(s State, at event.Position) State {
	if !s.Exists() {
		return s
	}
	return s.moved(Place{At: at, Client: s.Client})
}

// Evolve is EvolveAt for folds without positions.
func (e ClientChangeDropped) Evolve(s State) State { return e.EvolveAt(s, s.next()) }

// moved returns the state with one more place; the state before may be in use elsewhere.
func (s State) moved(to Place) State {
	s.Places = append(slices.Clip(s.Places), to)
	return s
}

// next returns a position for folds without positions.
func (s State) next() event.Position { return event.Position(len(s.Places) + 1) }

// changing reports whether a change of the client is announced.
func (s State) changing() bool { return s.Exists() && s.Places[len(s.Places)-1].Changing }
