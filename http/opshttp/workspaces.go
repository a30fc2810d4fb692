package opshttp

import (
	"context"

	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/accessview"
)

// workspaces registers the list of all workspaces. Package accesshttp has the list of a user's workspaces.
func (r *Routes) workspaces() {
	type page = struct {
		Total int64 `header:"X-Total-Count"`
		Body  []accessview.Workspace
	}
	api.Handle(r.API, api.Op{
		ID: "list-all-workspaces", Method: "GET", Path: "/ops/workspaces", Summary: "List all workspaces of the deployment, newest first",
		Tags: tags, Operator: true, StrictQuery: true, Reads: []string{"workspaces", "users", "api_keys", "companies"},
	}, func(ctx context.Context, in *struct {
		Q        string `query:"q" maxLength:"200" doc:"Part of a name, of the owner's address or of the id"`
		Page     int    `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
		PageSize int    `query:"page_size" default:"50" minimum:"1" maximum:"1000" doc:"Workspaces per page"`
	}) (*page, error) {
		found, total, err := r.People.AllWorkspaces(ctx, api.At(ctx), readmodels.Page{Number: in.Page, Size: in.PageSize}, in.Q)
		if err != nil {
			return nil, err
		}
		return &page{total, append([]accessview.Workspace{}, found...)}, nil
	})
}
