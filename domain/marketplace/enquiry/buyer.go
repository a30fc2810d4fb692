package enquiry

import (
	"strconv"

	"bahi/domain/event"
)

// BuyerKind names what a stream buyer-<keyed hash of the address> holds.
var BuyerKind = event.NewKind("buyer",
	event.Of[BuyerErased]("BuyerErased", 1),
).Sealing(Buyers)

// Buyers are those who ask, each with one key for all their enquiries. A buyer who asks again after an erasure is another subject.
const Buyers event.SubjectType = "buyer"

// BuyerErased records that a buyer is to be forgotten.
type BuyerErased struct {
	Before int `json:"before"` // erasures of the same address until then
}

// Evolve counts.
func (e BuyerErased) Evolve(Buyer) Buyer { return Buyer{Erased: e.Before + 1} }

// Erases implements [event.ErasureTrigger].
func (e BuyerErased) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Buyers.Of(Subject(id, e.Before))}
}

// Buyer is an address's state.
type Buyer struct{ Erased int } // how often

// Subject returns the id of the subject that an address is after so many erasures.
func Subject(hash string, erased int) string {
	if erased == 0 {
		return hash
	}
	return hash + "-" + strconv.Itoa(erased)
}

// EraseBuyer forgets the buyer who has the address now.
type EraseBuyer struct{}

// Decide always erases: who has asked is in the enquiries.
func (EraseBuyer) Decide(s Buyer) ([]event.Event[Buyer], error) {
	return []event.Event[Buyer]{BuyerErased{Before: s.Erased}}, nil
}
