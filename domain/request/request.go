// Package request remembers requests that carried an Idempotency-Key, so that a repetition has no
// second effect, however late it comes.
//
// A request is written in the transaction of its events. A repetition finds it, and returns the record as it was after it.
package request

import "bahi/domain/event"

// Kind names what a stream request-<HMAC of scope and key> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("request",
	event.Of[Accepted]("RequestAccepted", 1),
)

// State is what a repetition needs to know.
type State struct {
	Accepted    bool
	Fingerprint string // HMAC of what was asked
	Stream      string // of the record that it returned
	Nothing     bool   // it changed nothing there
	Revision    int64  // of that stream after it
}

// Accepted records that the request was carried out.
type Accepted struct {
	Fingerprint string `json:"request_hmac"`
	Stream      string `json:"stream"`
	Nothing     bool   `json:"nothing,omitempty"`
	Revision    int64  `json:"revision,omitempty"`
}

// Evolve remembers the request.
func (e Accepted) Evolve(State) State {
	return State{Accepted: true, Fingerprint: e.Fingerprint, Stream: e.Stream, Nothing: e.Nothing, Revision: e.Revision}
}
