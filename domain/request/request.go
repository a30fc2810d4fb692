// Package request is the aggregate of a request with an Idempotency-Key, so that a repetition has no second effect, however late it comes.
//
// A request is written in the transaction of its events. A repetition finds it and returns the record in its state after that transaction.
package request

import "bahi/domain/event"

// Kind is the kind of the streams request-<HMAC of scope and key>. Names never change: old logs have them.
var Kind = event.NewKind("request",
	event.Of[Accepted]("RequestAccepted", 1),
)

// State is the state for a repetition.
type State struct {
	Accepted    bool
	Fingerprint string // HMAC of the request
	Stream      string // of the record that it returned
	Nothing     bool   // it changed nothing there
	Revision    int64  // of that stream after it
}

// Accepted records that the request was executed.
type Accepted struct {
	Fingerprint string `json:"request_hmac"`
	Stream      string `json:"stream"`
	Nothing     bool   `json:"nothing,omitempty"`
	Revision    int64  `json:"revision,omitempty"`
}

// Evolve stores the request.
func (e Accepted) Evolve(State) State {
	return State{Accepted: true, Fingerprint: e.Fingerprint, Stream: e.Stream, Nothing: e.Nothing, Revision: e.Revision}
}
