// Package botanswer is one reply of a bot to a contact: its calls of webhooks and tools, and the result. The messages have the texts.
package botanswer

import (
	"slices"

	"bahi/domain/event"
)

// Kind registers the events of streams botanswer-<number>. The number is the id of the first message to which the bot replies. Stored names
// are permanent.
var Kind = event.NewKind("botanswer",
	event.Of[CallBegan]("BotCallBegan", 1),
	event.Of[CallEnded]("BotCallEnded", 1),
	event.Of[Given]("BotAnswered", 1),
)

// State is the state that decisions require.
type State struct {
	Begun []Begun // started calls in their order
	Upto  int64   // position of the newest message with a reply; 0: none
}

// Begun is a started call.
type Begun struct {
	Call    string
	Webhook int64
	Ended   bool
}

// CallBegan records a call of a webhook or a tool before it is made, so that a retry after a crash does not repeat it.
type CallBegan struct {
	Call    string `json:"call"` // id of the call, also sent to the endpoint
	Bot     int64  `json:"bot"`
	Contact int64  `json:"contact,omitempty"` // 0: a trial
	Kind    string `json:"kind"`              // webhook or tool
	Name    string `json:"name"`
	Webhook int64  `json:"webhook,omitempty"`
}

// CallEnded records the result of a call.
type CallEnded struct {
	Call     string `json:"call"`
	Status   int    `json:"status,omitempty"` // HTTP status
	Duration int64  `json:"duration_ms"`
	Error    string `json:"error,omitempty"`
}

// Given records the end of a reply, even if no message was sent.
type Given struct {
	Bot     int64  `json:"bot"`
	Contact int64  `json:"contact,omitempty"` // 0: a trial
	Channel int64  `json:"channel,omitempty"`
	Upto    int64  `json:"upto,omitempty"`  // position of the newest message to which the bot replies
	Reply   int64  `json:"reply,omitempty"` // the message that was sent; 0: none
	Tokens  int64  `json:"tokens,omitempty"`
	Calls   int64  `json:"calls,omitempty"` // number of calls of tools and webhooks
	Over    bool   `json:"handed_over,omitempty"`
	Reason  string `json:"why,omitempty"` // reason of a hand-over, or of no reply
}

// Evolve adds the call.
func (e CallBegan) Evolve(s State) State {
	s.Begun = append(slices.Clone(s.Begun), Begun{Call: e.Call, Webhook: e.Webhook})
	return s
}

// Evolve sets the result of the call.
func (e CallEnded) Evolve(s State) State {
	s.Begun = slices.Clone(s.Begun)
	for i := range s.Begun {
		s.Begun[i].Ended = s.Begun[i].Ended || s.Begun[i].Call == e.Call
	}
	return s
}

// Evolve sets the position of the reply.
func (e Given) Evolve(s State) State {
	s.Upto = max(e.Upto, 1)
	return s
}

// Note records an event unless the reply was already recorded.
type Note struct{ Event event.Event[State] }

// Decide returns no events after the reply.
func (c Note) Decide(s State) ([]event.Event[State], error) {
	if s.Upto != 0 {
		return nil, nil
	}
	return []event.Event[State]{c.Event}, nil
}
