package order

import "bahi/domain/event"

// TakadasKind names what a stream ordertakadas-<number of an order> holds: the takadas that were attached to the order and detached from
// it. An order changes its client while it has none. The order's own stream does not have them, so that its revision is that of the order.
var TakadasKind = event.NewKind("ordertakadas",
	event.Of[TakadaAttached]("OrderTakadaAttached", 1),
	event.Of[TakadaDetached]("OrderTakadaDetached", 1),
)

// Takadas is how many takadas an order has.
type Takadas int

// TakadaAttached records a takada that the order got, new or of another order.
type TakadaAttached struct {
	Takada int64 `json:"takada"`
}

// TakadaDetached records a takada that the order lost: it was deleted, or is another order's now.
type TakadaDetached struct {
	Takada int64 `json:"takada"`
}

// Evolve counts the takada.
func (TakadaAttached) Evolve(n Takadas) Takadas { return n + 1 }

// Evolve counts it no longer.
func (TakadaDetached) Evolve(n Takadas) Takadas { return n - 1 }

// Attach records that the order got a takada.
type Attach TakadaAttached

// Decide records it.
func (c Attach) Decide(Takadas) ([]event.Event[Takadas], error) {
	return []event.Event[Takadas]{TakadaAttached(c)}, nil
}

// Detach records that the order lost a takada.
type Detach TakadaDetached

// Decide records it.
func (c Detach) Decide(Takadas) ([]event.Event[Takadas], error) {
	return []event.Event[Takadas]{TakadaDetached(c)}, nil
}
