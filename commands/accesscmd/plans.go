package accesscmd

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/access/plan"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// Paid is a billing provider's report about a customer.
type Paid struct {
	Customer  string
	Workspace string // claimed by the customer; empty: none
	Name      string // name of the plan; empty: not reported
	Status    string
	Created   int64
}

// customers claims each customer for one workspace.
var customers = unique.Field[plan.State]{
	Records: plan.Kind, Claims: plan.Customers, Key: func(s plan.State) string { return s.CustomerKey }, Name: "customer",
	Taken:  "Another workspace is this customer",
	Global: true,
}

// ReportPlan records the plan that a billing provider reports, and returns the customer's workspace, or uuid.Nil if there is none. A known
// customer keeps its workspace. A new customer gets the workspace that it names if that workspace has no customer yet (CONTRACT.md N14).
func ReportPlan(ctx context.Context, h *commands.Handler, p Paid) (of uuid.UUID, err error) {
	key, err := unique.Key(ctx, h, plan.Customers, []byte(p.Customer))
	if err != nil || key == "" {
		return of, err
	}
	c := plan.Report{CustomerKey: key, Name: p.Name, Status: p.Status, Created: p.Created}
	claim, err := commands.Load(ctx, h.Fresh(), plan.Customers.Kind, key)
	if err != nil {
		return of, err
	}
	known := claim.State.Holder != ""
	if of, err = uuid.Parse(claim.State.Holder); !known {
		of, err = uuid.Parse(p.Workspace)
	}
	if err != nil { // no valid workspace is named
		return uuid.Nil, nil //nolint:nilerr // the same
	}
	there, err := commands.Load(ctx, h.Fresh(), workspace.Kind, of.String())
	if err != nil || there.Revision < 0 {
		return uuid.Nil, err
	}
	req := commands.Request{Actor: actor.Actor{Type: "provider", ID: "billing"}, Workspace: of}
	before, err := commands.Load(ctx, h.Fresh(), plan.Kind, of.String())
	switch {
	case err != nil:
		return uuid.Nil, err
	case before.State.CustomerKey == key:
		_, err = commands.Handle(ctx, h, req, plan.Kind, of.String(), c)
	case before.Revision >= 0: // the workspace has another customer
		return uuid.Nil, nil
	default:
		_, err = customers.Create(ctx, h, req, key, func(context.Context) (string, error) { return of.String(), nil },
			func(string) event.Command[plan.State] { return c })
		if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == "customer_taken" {
			return uuid.Nil, nil
		}
	}
	return of, err
}
