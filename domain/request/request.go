// Package request remembers requests that carried an Idempotency-Key, so that a repetition has no
// second effect, however late it comes.
//
// A request is written down before its events are, with the stream that they go to. A repetition that
// finds it looks there for the events, which have ids derived from the request: if they are there it
// answers them, else it takes up where the first one stopped.
package request

import "bahi/domain/event"

// Kind names what a stream request-<HMAC of scope and key> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("request",
	event.Of[Accepted]("RequestAccepted", 1),
	event.Of[Released]("RequestReleased", 1),
)

// State is what a repetition needs to know.
type State struct {
	Accepted    bool
	Fingerprint string // HMAC of what was asked
	Stream      string // where its events are, or will be
	Nothing     bool   // it changed nothing
	Revision    int64  // of the stream then, when it changed nothing
}

// Accepted records that the request was decided and may be carried out.
type Accepted struct {
	Fingerprint string `json:"request_hmac"`
	Stream      string `json:"stream"`
	Nothing     bool   `json:"nothing,omitempty"`
	Revision    int64  `json:"revision,omitempty"`
}

// Released records that the request could not be carried out, so its key is free again.
type Released struct{}

// Evolve remembers the request.
func (e Accepted) Evolve(State) State {
	return State{Accepted: true, Fingerprint: e.Fingerprint, Stream: e.Stream, Nothing: e.Nothing, Revision: e.Revision}
}

// Evolve forgets it.
func (Released) Evolve(State) State { return State{} }
