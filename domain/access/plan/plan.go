// Package plan is the aggregate of a workspace's plan, by the billing provider's last report.
package plan

import (
	"cmp"

	"bahi/domain/claims"
	"bahi/domain/event"
)

// Kind is the kind of the streams plan-<workspace>. Names never change: old logs have them.
var Kind = event.NewKind("plan",
	event.Of[Reported]("PlanReported", 1),
)

type customer struct{}

// Customers are the claims of the provider's customers. Each customer belongs to one workspace. The streams are plancustomer-<hash>.
var Customers = claims.New[customer]("plancustomer", "PlanCustomerClaimed", "PlanCustomerReleased")

// State is the state for decisions.
type State struct {
	CustomerKey string // keyed hash, which names the claim of the customer; empty: the workspace has none
	Name        string
	Status      string
	Created     int64
}

// Reported records a provider's report of a subscription.
type Reported struct {
	CustomerKey string `json:"customer_key"`
	Name        string `json:"name,omitempty"` // name of the plan
	Status      string `json:"status"`
	Created     int64  `json:"created"` // by the provider, in seconds
}

// Evolve stores the report.
func (e Reported) Evolve(State) State { return State(e) }

// Report records a provider's report of a subscription.
type Report Reported

// Decide ignores outdated reports, and reports of another customer.
func (c Report) Decide(s State) ([]event.Event[State], error) {
	e := Reported(c)
	e.Name = cmp.Or(e.Name, s.Name)
	if s.CustomerKey != "" && s.CustomerKey != e.CustomerKey || e.Created < s.Created || State(e) == s {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}
