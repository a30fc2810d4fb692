package marketplacehttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/marketplacecmd"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/wording"
	"bahi/http/api"
	"bahi/readmodels/marketplaceview"
)

const (
	companies = "/api/v1/companies"

	readCompanies, writeCompanies = "company_read", "company_write"
)

// ByCompany names a company.
type ByCompany struct {
	ID string `path:"id" doc:"The company's id"`
}

// stream returns the id in its canonical form. For an invalid id, it returns an id that no company has.
func (in ByCompany) stream() (string, error) {
	if !company.IsID(in.ID) {
		return "", company.ErrNotFound
	}
	return strings.ToLower(in.ID), nil
}

// domainCheck reports whether a domain is free.
type domainCheck struct {
	Available bool                      `json:"available" doc:"true: no company has claimed the domain"`
	Company   *marketplaceview.Claimant `json:"company" doc:"Company with the domain; null: none"`
}

// said is a response with a text for users.
type said struct {
	Message string `json:"message" doc:"Result of the request"`
}

// Companies registers the directory of companies.
func (r *Routes) Companies() {
	reads := []string{"companies"}
	api.Handle(r.API, open(api.Op{
		ID: "list-companies", Method: "GET", Path: companies, Summary: "List companies, newest first", Limit: readCompanies, Reads: reads,
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden},
	}),
		func(ctx context.Context, in *struct {
			api.MarketplacePageParams
			marketplaceview.CompanyFilter
			Mine bool `query:"mine" doc:"true: only companies of the caller's workspace"`
		}) (*api.Body[api.DataOf[marketplaceview.Listed]], error) {
			if !in.Mine {
				rows, total, err := r.Views.Companies(ctx, api.At(ctx), in.Get(), in.CompanyFilter)
				return api.MarketplacePage(in.Get(), rows, total, err)
			}
			of := api.Caller(ctx).Workspace // a bookkeeper without marketplace rights may print the company's name
			switch {
			case api.Caller(ctx).Type == "":
				return nil, api.ErrNotAuthenticated
			case of == uuid.Nil:
				return nil, api.ErrNotPermitted
			}
			rows, total, err := r.Views.CompaniesOf(ctx, api.At(ctx), in.Get(), in.CompanyFilter, of)
			return api.MarketplacePage(in.Get(), rows, total, err)
		})
	api.Handle(r.API, open(api.Op{
		ID: "search-companies", Method: "GET", Path: companies + "/search",
		Summary: "Search companies. The search tolerates typing errors.",
		Limit:   readCompanies, Reads: reads,
	}), func(ctx context.Context, in *struct {
		api.MarketplacePageParams
		Q string `query:"q" required:"true" minLength:"1" maxLength:"200" doc:"Words of the name, the category, the city or the description; only the first eight are used"`
	}) (*api.Body[api.DataOf[marketplaceview.Listed]], error) {
		if strings.TrimSpace(in.Q) == "" { // G18
			return nil, fault.Wrong("q", "is required")
		}
		rows, total, err := r.Views.FindCompanies(ctx, api.At(ctx), in.Get(), in.Q)
		return api.MarketplacePage(in.Get(), rows, total, err)
	})
	api.Handle(r.API, open(api.Op{
		ID: "get-company", Method: "GET", Path: companies + "/{id}", Summary: "Read a company by its id or slug", Limit: readCompanies,
		Reads: reads, Errors: []int{http.StatusNotFound},
	}), func(ctx context.Context, in *struct {
		ID string `path:"id" doc:"The company's id or slug"`
	}) (*api.Tagged[marketplaceview.Company], error) {
		c, err := r.Views.Company(ctx, api.At(ctx), in.ID)
		if err == nil && mayRead(ctx) != uuid.Nil {
			err = r.addEmail(ctx, &c)
		}
		return api.WithETag(c, c.Revision, err)
	})
	api.Handle(r.API, open(api.Op{
		ID: "check-domain", Method: "POST", Path: companies + "/check-domain",
		Summary: "Check whether a company has claimed a domain. The domain may be that of an email address.",
		Status:  http.StatusOK, Limit: "company_check_domain", Reads: reads, NoKey: true,
	}), func(ctx context.Context, in *struct {
		Body struct {
			Domain string `json:"domain" maxLength:"2048" doc:"Domain, or an email address"`
		}
	}) (*api.Body[domainCheck], error) {
		domain, err := company.Domain("domain", in.Body.Domain)
		if err != nil {
			return nil, err
		}
		holder, err := r.Views.Claimant(ctx, api.At(ctx), domain)
		return api.Answer(domainCheck{Available: holder == nil, Company: holder}, err)
	})
	api.Handle(r.API, api.Op{
		ID: "confirm-company-email", Method: "POST", Path: companies + "/confirm-email",
		Summary: "Confirm a company's address for enquiries with the mailed token",
		Status:  http.StatusOK, Tags: tags, Public: true, Limit: "company_check_domain", NoKey: true, Errors: []int{http.StatusBadRequest},
	}, func(ctx context.Context, in *struct {
		Body struct {
			Token string `json:"token" maxLength:"500" doc:"Mailed token"`
		}
	}) (*api.Body[said], error) {
		out, err := marketplacecmd.ConfirmEmail(ctx, r.Commands, api.Request(ctx), r.Mailed, in.Body.Token)
		return api.Reply(ctx, out, err, func(commands.Outcome[company.State]) said { return said{Message: "Email confirmed"} })
	})
	api.Handle(r.API, closed(api.Op{ID: "create-company", Method: "POST", Path: companies,
		Summary: "Create a company. The members of the workspace are its members.", Limit: writeCompanies}),
		func(ctx context.Context, in *struct{ Body company.Create }) (*api.Tagged[companyAnswer], error) {
			in.Body.AnyGSTIN = r.AnyGSTIN
			out, err := marketplacecmd.CreateCompany(ctx, r.Commands, api.Request(ctx), in.Body)
			return r.companyWritten(ctx, out, err)
		})
	api.Handle(r.API, closed(api.Op{ID: "edit-company", Method: "PATCH", Path: companies + "/{id}",
		Summary: "Edit a company. Only fields in the body change.", Limit: writeCompanies}),
		func(ctx context.Context, in *struct {
			ByCompany
			Body company.Edit
		}) (*api.Tagged[companyAnswer], error) {
			id, err := in.stream()
			if err != nil {
				return nil, err
			}
			in.Body.AnyGSTIN = r.AnyGSTIN
			out, err := marketplacecmd.EditCompany(ctx, r.Commands, api.Request(ctx), id, in.Body)
			return r.companyWritten(ctx, out, err)
		})
	api.Handle(r.API, closed(api.Op{ID: "delete-company", Method: "DELETE", Path: companies + "/{id}",
		Summary: "Delete a company with its products", Limit: writeCompanies}),
		func(ctx context.Context, in *ByCompany) (*api.Nothing, error) {
			id, err := in.stream()
			if err != nil {
				return nil, err
			}
			out, err := marketplacecmd.DeleteCompany(ctx, r.Commands, api.Request(ctx), id)
			return api.Done(ctx, out, err)
		})
}

// addEmail adds the fields that only members of a company see.
func (r *Routes) addEmail(ctx context.Context, c *marketplaceview.Company) error {
	l, err := commands.Load(ctx, r.Commands.Fresh(), company.Kind, c.ID.String())
	if err != nil || l.Workspace != mayRead(ctx) {
		return err
	}
	s, err := commands.Reveal(ctx, r.Commands, l.State)
	if err == nil && s.EmailKey != "" {
		c.Email, c.EmailConfirmed = s.Email.Shown(), &s.EmailConfirmed
	}
	return err
}

// companyWritten returns a company after a command, with the fields that only members see.
func (r *Routes) companyWritten(ctx context.Context, out commands.Outcome[company.State], err error) (*api.Tagged[companyAnswer], error) {
	if err == nil {
		out.State, err = commands.Reveal(ctx, r.Commands, out.State)
	}
	return api.WriteResult(ctx, out, err, func(out commands.Outcome[company.State]) companyAnswer {
		c := companyShown(out)
		if out.State.EmailKey != "" {
			c.Email, c.EmailConfirmed = out.State.Email.Shown(), &out.State.EmailConfirmed
		}
		return companyAnswer{Company: c, Warnings: wording.Unread("phone", c.Phone)}
	})
}

// companyAnswer is the response to a change of a company.
type companyAnswer struct {
	marketplaceview.Company

	Warnings []fault.Field `json:"warnings,omitempty" doc:"Invalid values. They are stored, but not used"`
}

// companyShown returns a company after a command.
func companyShown(out commands.Outcome[company.State]) marketplaceview.Company {
	s, p := out.State, out.State.Profile
	id, _ := uuid.Parse(out.ID) // the command has accepted the id
	return marketplaceview.Company{
		ID: id, Name: s.Name, Slug: s.Slug, Description: p.Description.Of(nil), Category: p.Category.Of(nil), SubCategory: p.SubCategory.Of(nil),
		Website: p.Website.Of(nil), Domain: p.Domain.Of(nil),
		Address: marketplaceview.Address{
			AddressLine1: p.AddressLine1.Of(nil), City: p.City.Of(nil), State: p.State.Of(nil), Country: p.Country.Of(nil),
			Pincode: p.Pincode.Of(nil),
		},
		GSTIN: p.GSTIN.Of(nil), Phone: p.Phone.Of(nil),
		Verified: s.Verified, CreatedAt: out.CreatedAt, UpdatedAt: out.At, Revision: out.Revision,
	}
}
