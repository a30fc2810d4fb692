package marketplacehttp

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/marketplacecmd"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/marketplace/product"
	"bahi/http/api"
	"bahi/readmodels/marketplaceview"
)

const (
	catalog = "/api/v1/catalog"

	writeProducts = "catalog_create_update"
)

// ByProduct names a product.
type ByProduct struct {
	ID string `path:"id" doc:"The product's id"`
}

// id returns the id. For an invalid id, it returns an id that no product has.
func (in ByProduct) id() (uuid.UUID, error) {
	return idOr(in.ID, product.ErrNotFound)
}

// ProductQuery are the parameters of a list of products.
type ProductQuery struct {
	Category  string                  `query:"category"   maxLength:"200" doc:"Ignores case"`
	CompanyID api.Optional[uuid.UUID] `query:"company_id" doc:"Only products of this company"`
	Search    string                  `query:"search"     maxLength:"200" doc:"Words of the name, category or description; tolerates typing errors; only the first eight are used"`
	IsActive  bool                    `query:"is_active"  default:"true" doc:"false: only hidden products of the caller's company"`
}

// Refusals of a request without a company, or with a company whose inactive products the caller may not see.
var (
	errNoCompany  = &fault.Error{Kind: fault.Conflict, Code: "no_company", Detail: "The workspace has no company"}
	errWhich      = fault.Wrong("company_id", "the workspace has several companies: name one")
	errNotVisible = fault.New(fault.Forbidden, "Not enough permissions to see this company's inactive products")
)

// seller returns the company in the request, or the caller's only company.
func (r *Routes) seller(ctx context.Context, named *uuid.UUID) (uuid.UUID, error) {
	if named != nil {
		return *named, nil
	}
	own, err := r.Views.OwnCompanies(ctx, api.At(ctx), api.Caller(ctx).Workspace)
	switch {
	case err != nil:
		return uuid.Nil, err
	case len(own) == 0:
		return uuid.Nil, errNoCompany
	case len(own) > 1:
		return uuid.Nil, errWhich
	}
	return own[0], nil
}

// Products registers the catalog.
func (r *Routes) Products() {
	api.Handle(r.API, open(api.Op{
		ID: "list-products", Method: "GET", Path: catalog, Summary: "List products, newest first", Limit: "catalog_list_search",
		Reads:  []string{"products"},
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden},
	}), func(ctx context.Context, in *struct {
		api.MarketplacePageParams
		ProductQuery
	}) (*api.Body[api.DataOf[marketplaceview.Product]], error) {
		f := marketplaceview.ProductFilter{Category: in.Category, Search: in.Search, Company: in.CompanyID.Get(), Inactive: !in.IsActive}
		if f.Inactive {
			of, err := r.inactiveOf(ctx, f.Company)
			if err != nil {
				return nil, err
			}
			f.Company = &of
		}
		rows, total, err := r.Views.Products(ctx, api.At(ctx), in.Get(), f)
		return api.MarketplacePage(in.Get(), rows, total, err)
	})
	api.Handle(r.API, open(api.Op{
		ID: "get-product", Method: "GET", Path: catalog + "/{id}", Summary: "Read a product", Limit: "catalog_general",
		Reads: []string{"products"}, Errors: []int{http.StatusNotFound},
	}), func(ctx context.Context, in *ByProduct) (*api.Tagged[marketplaceview.Product], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		p, err := r.Views.Product(ctx, api.At(ctx), mayRead(ctx), id)
		return api.WithETag(p, p.Revision, err)
	})
	api.Handle(r.API, closed(api.Op{ID: "add-product", Method: "POST", Path: catalog, Summary: "Add a product of the caller's company",
		Limit: writeProducts}),
		func(ctx context.Context, in *struct{ Body product.Add }) (*api.Tagged[marketplaceview.Product], error) {
			of, err := r.seller(ctx, in.Body.CompanyID)
			if err != nil {
				_, wrong := in.Body.Decide(product.State{})
				return nil, fault.Join(err, wrong)
			}
			in.Body.Company = of
			out, err := marketplacecmd.AddProduct(ctx, r.Commands, api.Request(ctx), in.Body)
			return api.WriteResult(ctx, out, err, productShown)
		})
	api.Handle(r.API, closed(api.Op{ID: "edit-product", Method: "PATCH", Path: catalog + "/{id}",
		Summary: "Edit a product. Only fields in the body change.", Limit: writeProducts}),
		func(ctx context.Context, in *struct {
			ByProduct
			Body product.Edit
		}) (*api.Tagged[marketplaceview.Product], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			out, err := marketplacecmd.EditProduct(ctx, r.Commands, api.Request(ctx), id, in.Body)
			return api.WriteResult(ctx, out, err, productShown)
		})
	api.Handle(r.API, closed(api.Op{ID: "delete-product", Method: "DELETE", Path: catalog + "/{id}", Summary: "Delete a product",
		Limit: "catalog_general"}),
		func(ctx context.Context, in *ByProduct) (*api.Nothing, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			out, err := marketplacecmd.DeleteProduct(ctx, r.Commands, api.Request(ctx), id)
			return api.Done(ctx, out, err)
		})
}

// inactiveOf returns the company of the requested inactive products. The caller must belong to it.
func (r *Routes) inactiveOf(ctx context.Context, named *uuid.UUID) (uuid.UUID, error) {
	who := api.Caller(ctx)
	switch {
	case who.Type == "":
		return uuid.Nil, api.ErrNotAuthenticated
	case !who.May(area, actor.Read):
		return uuid.Nil, api.ErrNotPermitted
	case named == nil:
		of, err := r.seller(ctx, nil)
		if err == errNoCompany { //nolint:errorlint // it is ours
			err = nil // the list is empty
		}
		return of, err
	}
	own, err := r.Views.OwnCompanies(ctx, api.At(ctx), who.Workspace)
	if err != nil {
		return uuid.Nil, err
	}
	for _, of := range own {
		if of == *named {
			return of, nil
		}
	}
	if who.Permissions.Operator {
		return *named, nil
	}
	return uuid.Nil, errNotVisible
}

// productShown returns a product after a command.
func productShown(out commands.Outcome[product.State]) marketplaceview.Product {
	s := out.State
	id, _ := uuid.Parse(out.ID) // the command has accepted the id
	images := s.Images.Value
	if images == nil {
		images = []string{}
	}
	created := out.CreatedAt
	if !s.ImportedAt.IsZero() { // the product's own stream was created later
		created = s.ImportedAt
	}
	return marketplaceview.Product{
		ID: id, CompanyID: s.Company, SKU: s.SKU.Of(nil), Name: s.Name, Description: s.Description.Of(nil), Category: s.Category.Of(nil),
		SubCategory: s.SubCategory.Of(nil),
		PriceAmount: s.Price, PriceCurrency: s.Currency.Value, MOQ: s.MOQ.Value, OriginCountry: s.OriginCountry.Of(nil),
		ImporterName:    s.ImporterName.Of(nil),
		ImporterAddress: s.ImporterAddress.Of(nil), Images: images, Availability: s.Availability.Value, IsActive: s.Active.Value,
		CreatedAt: created, UpdatedAt: out.At, Revision: out.Revision,
	}
}
