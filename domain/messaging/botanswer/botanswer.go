// Package botanswer is one answer of a bot to a contact: which webhooks it called, and what became of it. What was said is in the messages.
package botanswer

import (
	"slices"

	"bahi/domain/event"
)

// Kind names what a stream botanswer-<number> holds; the number is that of the message that the answer began with. A name is for ever: old
// logs have it.
var Kind = event.NewKind("botanswer",
	event.Of[CallBegan]("BotCallBegan", 1),
	event.Of[CallEnded]("BotCallEnded", 1),
	event.Of[Given]("BotAnswered", 1),
)

// State is what decisions need.
type State struct {
	Begun []Begun // calls that were begun, in their order
	Upto  int64   // position of the newest message that is answered; 0: none
}

// Begun is a call that was begun.
type Begun struct {
	Call    string
	Webhook int64
	Ended   bool
}

// CallBegan records that a webhook or a tool is about to be called, so that a crash does not call it twice.
type CallBegan struct {
	Call    string `json:"call"` // its id, also at the endpoint
	Bot     int64  `json:"bot"`
	Contact int64  `json:"contact,omitempty"` // 0: it was tried
	Kind    string `json:"kind"`              // webhook or tool
	Name    string `json:"name"`
	Webhook int64  `json:"webhook,omitempty"`
}

// CallEnded records what became of a call.
type CallEnded struct {
	Call     string `json:"call"`
	Status   int    `json:"status,omitempty"` // of HTTP
	Duration int64  `json:"duration_ms"`
	Error    string `json:"error,omitempty"`
}

// Given records an answer, or that there is none.
type Given struct {
	Bot     int64  `json:"bot"`
	Contact int64  `json:"contact,omitempty"` // 0: it was tried
	Channel int64  `json:"channel,omitempty"`
	Upto    int64  `json:"upto,omitempty"`  // position of the newest message that it answers
	Reply   int64  `json:"reply,omitempty"` // the message that was sent; 0: none
	Tokens  int64  `json:"tokens,omitempty"`
	Calls   int64  `json:"calls,omitempty"` // of tools and webhooks
	Over    bool   `json:"handed_over,omitempty"`
	Why     string `json:"why,omitempty"` // of a hand-over, or of no reply
}

// Evolve keeps the call.
func (e CallBegan) Evolve(s State) State {
	s.Begun = append(slices.Clone(s.Begun), Begun{Call: e.Call, Webhook: e.Webhook})
	return s
}

// Evolve ends the call.
func (e CallEnded) Evolve(s State) State {
	s.Begun = slices.Clone(s.Begun)
	for i := range s.Begun {
		s.Begun[i].Ended = s.Begun[i].Ended || s.Begun[i].Call == e.Call
	}
	return s
}

// Evolve ends the answer.
func (e Given) Evolve(s State) State {
	s.Upto = max(e.Upto, 1)
	return s
}

// Note writes an event down, unless the answer was given already.
type Note struct{ Event event.Event[State] }

// Decide passes over what follows an answer.
func (c Note) Decide(s State) ([]event.Event[State], error) {
	if s.Upto != 0 {
		return nil, nil
	}
	return []event.Event[State]{c.Event}, nil
}
