package ops

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	flows "bahi/commands/marketplace"
	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
	"bahi/http/api"
)

// Mark is an operator's mark of a company.
type Mark struct {
	Verified bool `json:"verified" doc:"An operator has checked who the company is. A change of its name, GSTIN or domain ends it"`
}

// Marked is a company with its mark.
type Marked struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
	Slug string    `json:"slug"`
	Mark
}

// Companies registers the marking of companies.
func (r *Routes) Companies() {
	api.Handle(r.API, api.Op{
		ID: "mark-company", Method: "PUT", Path: "/ops/companies/{id}/mark", Summary: "Mark a company as verified, or no longer",
		Tags: tags, Operator: true, DryRun: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ID   uuid.UUID `path:"id" doc:"The company's id"`
		Body Mark
	}) (*api.Tagged[Marked], error) {
		out, err := flows.EditCompany(ctx, r.Commands, api.Request(ctx), in.ID.String(), company.Edit{Verified: patch.Set(in.Body.Verified)})
		return api.Written(ctx, out, err, func(out commands.Outcome[company.State]) Marked {
			return Marked{in.ID, out.State.Name, out.State.Slug, Mark{out.State.Verified}}
		})
	})
}
