// Package plan is what a workspace pays for, as the billing provider last said.
package plan

import (
	"cmp"

	"bahi/domain/claims"
	"bahi/domain/event"
)

// Kind names what a stream plan-<workspace> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("plan",
	event.Of[Reported]("PlanReported", 1),
)

type customer struct{}

// Customers are the provider's customers: each is one workspace of the deployment. A stream is plancustomer-<hash>.
var Customers = claims.New[customer]("plancustomer", "PlanCustomerClaimed", "PlanCustomerReleased")

// State is what decisions need.
type State struct {
	CustomerKey string // keyed hash, which names the claim of the customer; empty: the workspace has none
	Name        string
	Status      string
	Created     int64
}

// Reported records what the provider says of a subscription.
type Reported struct {
	CustomerKey string `json:"customer_key"`
	Name        string `json:"name,omitempty"` // of the plan
	Status      string `json:"status"`
	Created     int64  `json:"created"` // by the provider, in seconds
}

// Evolve keeps it.
func (e Reported) Evolve(State) State { return State(e) }

// Report notes what the provider says of a subscription.
type Report Reported

// Decide passes over what is older than what is known, and what another customer pays.
func (c Report) Decide(s State) ([]event.Event[State], error) {
	e := Reported(c)
	e.Name = cmp.Or(e.Name, s.Name)
	if s.CustomerKey != "" && s.CustomerKey != e.CustomerKey || e.Created < s.Created || State(e) == s {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}
