// Package request is the aggregate of a request with an Idempotency-Key. It prevents a second effect of a retry, however late.
//
// The transaction of a request's events also writes the request's record. A retry finds it and returns the changed record in its state
// after that transaction.
package request

import "bahi/domain/event"

// Kind is the kind of the streams request-<HMAC of scope and key>. Names never change: old logs have them.
var Kind = event.NewKind("request",
	event.Of[Accepted]("RequestAccepted", 1),
)

// State is the state that a retry requires.
type State struct {
	Accepted    bool
	Fingerprint string // HMAC of the request
	Stream      string // stream of the returned record
	Nothing     bool   // the request did not change that stream
	Revision    int64  // revision of that stream after the request
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
