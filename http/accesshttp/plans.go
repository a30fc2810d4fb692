package accesshttp

import (
	"context"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/readmodels/accessview"
)

// plans registers the operation on plans of workspaces.
func (r *Routes) plans() {
	api.Handle(r.API, api.Op{
		ID: "get-plan", Method: "GET", Path: "/api/billing/plan",
		Summary: "Read the workspace's plan. The plan is the one of the billing provider's newest event.",
		Tags:    []string{"Messaging"}, Area: actor.Messaging, Limit: "messaging_general", Reads: []string{"plans"},
	}, func(ctx context.Context, _ *struct{}) (*api.Body[accessview.Plan], error) {
		return api.Answer(r.Views.Plan(ctx, api.At(ctx), api.Caller(ctx).Workspace))
	})
}
