package console

import (
	"bahi/commands"
	flows "bahi/commands/marketplace"
	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
	"bahi/readmodels"
	marketplace "bahi/readmodels/marketplace"
)

const companiesOfPage = 50

// companyList is a page of the directory.
type companyList struct {
	Words     string
	Companies []marketplace.Listed
	Total     int64
	Pages     pages
}

func (v *visit) companies() (page, error) {
	list := companyList{Words: v.r.FormValue("q")}
	of := readmodels.Page{Number: number(v.r.FormValue("page")), Size: companiesOfPage}
	var err error
	if list.Words == "" {
		list.Companies, list.Total, err = v.Marketplace.Companies(v.r.Context(), of, marketplace.CompanyFilter{})
	} else {
		list.Companies, list.Total, err = v.Marketplace.FindCompanies(v.r.Context(), of, list.Words)
	}
	list.Pages = v.pagesOf(of.Number, of.Size, list.Total)
	return page{template: "companies", title: "Companies", body: list}, err
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
