package enquiry

import (
	"strconv"

	"bahi/domain/event"
)

// BuyerKind is the kind of the streams buyer-<keyed hash of the address>.
var BuyerKind = event.NewKind("buyer",
	event.Of[BuyerErased]("BuyerErased", 1),
).Sealing(Buyers)

// Buyers are the senders of enquiries. A buyer has one key for all enquiries. After an erasure, a buyer who writes again is another
// subject.
const Buyers event.SubjectType = "buyer"

// BuyerErased records that a buyer must be erased.
type BuyerErased struct {
	Before int `json:"before"` // number of earlier erasures of the same address
}

// Evolve counts the erasure.
func (e BuyerErased) Evolve(Buyer) Buyer { return Buyer{Erased: e.Before + 1} }

// Erases implements [event.ErasureTrigger].
func (e BuyerErased) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Buyers.Of(Subject(id, e.Before))}
}

// Buyer is an address's state.
type Buyer struct{ Erased int } // number of erasures

// Subject returns the id of the subject of an address after that many erasures.
func Subject(hash string, erased int) string {
	if erased == 0 {
		return hash
	}
	return hash + "-" + strconv.Itoa(erased)
}

// EraseBuyer erases the current buyer of the address.
type EraseBuyer struct{}

// Decide always erases, because the state does not contain the buyer's enquiries.
func (EraseBuyer) Decide(s Buyer) ([]event.Event[Buyer], error) {
	return []event.Event[Buyer]{BuyerErased{Before: s.Erased}}, nil
}
