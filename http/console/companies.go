package console

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	flows "bahi/commands/marketplace"
	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
	"bahi/readmodels"
	marketplace "bahi/readmodels/marketplace"
)

const companiesOfPage = 50

// companies lists the directory.
func (v *visit) companies() (page, error) {
	words := v.r.FormValue("q")
	return listed(v, page{template: "companies", title: "Companies"}, companiesOfPage, words, func(ctx context.Context, of readmodels.Page) ([]marketplace.Listed, int64, error) {
		if words == "" {
			return v.Marketplace.Companies(ctx, of, marketplace.CompanyFilter{}, uuid.Nil)
		}
		return v.Marketplace.FindCompanies(ctx, of, words)
	})
}

func (v *visit) verifyCompany() (string, error) { return v.mark(true) }

func (v *visit) unverifyCompany() (string, error) { return v.mark(false) }

// mark marks a company as verified, or as not.
func (v *visit) mark(verified bool) (string, error) {
	id := v.r.PathValue("id")
	if !company.IsID(id) {
		return "", company.ErrNotFound
	}
	req := commands.Request{Actor: v.who, Workspace: v.who.Workspace}
	_, err := flows.EditCompany(v.r.Context(), v.Commands, req, id, company.Edit{Verified: patch.Set(verified)})
	return Path + "/companies?done=company", err
}
