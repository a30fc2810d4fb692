package order

import "bahi/domain/event"

// TakadasKind registers the events of streams ordertakadas-<order>: takadas attached to an order and detached from it. An order with
// takadas cannot change its client. These events are not in the order's own stream, so they do not change the order's revision.
var TakadasKind = event.NewKind("ordertakadas",
	event.Of[TakadaAttached]("OrderTakadaAttached", 1),
	event.Of[TakadaDetached]("OrderTakadaDetached", 1),
)

// Takadas is the number of takadas of an order.
type Takadas int

// TakadaAttached records a takada that was added to the order or moved to it.
type TakadaAttached struct {
	Takada int64 `json:"takada"`
}

// TakadaDetached records a takada that was deleted or moved to another order.
type TakadaDetached struct {
	Takada int64 `json:"takada"`
}

// Evolve counts the takada.
func (TakadaAttached) Evolve(n Takadas) Takadas { return n + 1 }

// Evolve subtracts the takada.
func (TakadaDetached) Evolve(n Takadas) Takadas { return n - 1 }

// Attach records that a takada was added to the order.
type Attach TakadaAttached

// Decide returns the event.
func (c Attach) Decide(Takadas) ([]event.Event[Takadas], error) {
	return []event.Event[Takadas]{TakadaAttached(c)}, nil
}

// Detach records that a takada was removed from the order.
type Detach TakadaDetached

// Decide returns the event.
func (c Detach) Decide(Takadas) ([]event.Event[Takadas], error) {
	return []event.Event[Takadas]{TakadaDetached(c)}, nil
}
