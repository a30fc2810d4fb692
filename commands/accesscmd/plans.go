package accesscmd

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/access/plan"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
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
	req := commands.Request{Actor: actor.Actor{Type: "provider", ID: "billing"}}
	_, err = commands.Do(ctx, h, req, plan.Kind, func(ctx context.Context, tx *commands.Tx) error {
		of = uuid.Nil
		claim, err := commands.Load(ctx, tx, plan.Customers.Kind, key)
		if err != nil {
			return err
		}
		named, err := uuid.Parse(cmp.Or(claim.State.Holder, p.Workspace))
		if err != nil {
			return nil //nolint:nilerr // no valid workspace is named
		}
		there, err := commands.Load(ctx, tx, workspace.Kind, named.String())
		if err != nil || there.Revision < 0 {
			return err
		}
		before, err := commands.Load(ctx, tx, plan.Kind, named.String())
		if err != nil || before.Revision >= 0 && before.State.CustomerKey != key { // the workspace has another customer
			return err
		}
		of = named
		return customers.Decide(ctx, tx.In(named), named.String(), &key, c)
	})
	return of, err
}
