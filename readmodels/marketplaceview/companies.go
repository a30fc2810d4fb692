// Package marketplaceview reads the projections of the marketplace area. The records are public unless a view states otherwise.
package marketplaceview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/person"
	"bahi/readmodels"
)

// Views reads companies and products.
type Views struct {
	Reader *readmodels.Reader
}

// Listed is a company in a list.
type Listed struct {
	ID       uuid.UUID `json:"id" doc:"ID of the company"`
	Name     string    `json:"name" doc:"Name of the company"`
	Slug     string    `json:"slug" doc:"Permanent name in URLs"`
	Category *string   `json:"category" doc:"Category"`
	City     *string   `json:"city" doc:"City"`
	Verified bool      `json:"verified" doc:"true: an operator has verified the company"`
}

// SchemaName implements http/api's Named.
func (Listed) SchemaName() string { return "ListedCompany" }

// Company is a company that sells.
type Company struct {
	ID          uuid.UUID `json:"id" doc:"ID of the company"`
	Name        string    `json:"name" doc:"Name of the company"`
	Slug        string    `json:"slug" doc:"Permanent name in URLs"`
	Description *string   `json:"description" doc:"Description of the company"`
	Category    *string   `json:"category" doc:"Category"`
	SubCategory *string   `json:"sub_category" doc:"Subcategory"`
	Website     *string   `json:"website" doc:"URL of the website"`
	Domain      *string   `json:"domain" doc:"Domain of the company; null: none"`
	Address
	GSTIN     *string   `json:"gstin" db:"gstin" doc:"GSTIN of the company"`
	Phone     *string   `json:"phone" doc:"Phone number in E.164 form"`
	Verified  bool      `json:"verified" doc:"true: an operator has verified the company"`
	CreatedAt time.Time `json:"created_at" doc:"Time when the company was created"`
	UpdatedAt time.Time `json:"updated_at" doc:"Time of the last change of the company"`
	Revision  int64     `json:"revision" doc:"Revision for If-Match"`

	Email          *string `json:"email,omitempty" db:"-" doc:"Address for enquiries; only members see it"`
	EmailConfirmed *bool   `json:"email_confirmed,omitempty" db:"-" doc:"true: the address was confirmed; only members see it"`
}

// Address is a postal address.
type Address struct {
	AddressLine1 *string `json:"address_line1" db:"address_line1" doc:"Street and number"`
	City         *string `json:"city" doc:"City"`
	State        *string `json:"state" doc:"State"`
	Country      *string `json:"country" doc:"Country"`
	Pincode      *string `json:"pincode" doc:"Postal code"`
}

const companyColumns = `select c.id, c.name, c.slug, c.description, c.category, c.sub_category, c.website, c.domain, c.address_line1,
	c.city, c.state, c.country,
	c.pincode, c.gstin, c.phone, c.verified, c.created_at, c.updated_at, c.revision from companies.company c`

// Company reads a company by its id or its slug, or returns [company.ErrNotFound].
func (v *Views) Company(ctx context.Context, at *readmodels.At, slugOrID string) (Company, error) {
	if company.IsID(slugOrID) {
		id, err := uuid.Parse(slugOrID)
		if err != nil {
			return Company{}, company.ErrNotFound
		}
		return readmodels.Row(ctx, v.Reader.From(at, "companies"), company.ErrNotFound, pgx.RowToStructByName[Company],
			companyColumns+` where c.id = $1`, id)
	}
	return readmodels.Row(ctx, v.Reader.From(at, "companies"), company.ErrNotFound, pgx.RowToStructByName[Company],
		companyColumns+` where c.slug = $1`, slugOrID)
}

// CompanyFilter selects the companies that match all its fields. An empty field matches all.
type CompanyFilter struct {
	Category string `query:"category" maxLength:"200" doc:"Ignores case"`
	City     string `query:"city"     maxLength:"200" doc:"Ignores case"`
	Verified bool   `query:"verified" doc:"true: only companies that an operator has verified"`
}

const listedColumns = `r.id, r.name, r.slug, r.category, r.city, r.verified, r.created_at`

// list returns the list of the matching companies. It counts the companies of a single workspace directly.
func (f CompanyFilter) list(workspace *uuid.UUID) readmodels.List[Listed] {
	args := pgx.NamedArgs{"category": person.Folded(f.Category), "city": person.Folded(f.City)}
	where := "true"
	if args["category"] != "" {
		where += " and r.category_key = @category"
	}
	if args["city"] != "" {
		where += " and r.city_key = @city"
	}
	if f.Verified {
		where += " and r.verified"
	}
	count := readmodels.Tally(`companies.company`, `r`, where)
	if workspace != nil {
		args["workspace"] = *workspace
		where, count = where+" and r.workspace_id = @workspace", ""
	}
	return readmodels.List[Listed]{
		As: listed, SQL: `select ` + listedColumns + ` from companies.company r where ` + where, Order: `created_at desc, id desc`,
		Count: count, Args: args,
	}
}

// Companies lists a page of the companies of the deployment, newest first.
func (v *Views) Companies(ctx context.Context, at *readmodels.At, page readmodels.Page, f CompanyFilter) ([]Listed, int64, error) {
	return f.list(nil).Page(ctx, v.Reader.From(at, "companies"), page)
}

// CompaniesOf lists a page of the companies of a workspace, newest first.
func (v *Views) CompaniesOf(ctx context.Context, at *readmodels.At, page readmodels.Page, f CompanyFilter,
	workspace uuid.UUID) ([]Listed, int64, error) {
	return f.list(&workspace).Page(ctx, v.Reader.From(at, "companies"), page)
}

// FindCompanies lists a page of the companies that match the words, the best first, then the newest.
func (v *Views) FindCompanies(ctx context.Context, at *readmodels.At, page readmodels.Page, words string) (rows []Listed, total int64,
	err error) {
	return readmodels.Find(ctx, v.Reader.From(at, "companies"), page, listed, readmodels.Search{
		Projection: "companies", Table: "company", Columns: listedColumns, Where: "true", Order: "created_at desc, id desc", Asked: words,
	})
}

// listed reads a row's first columns. The others are for sorting.
func listed(row pgx.CollectableRow) (l Listed, err error) {
	into := []any{&l.ID, &l.Name, &l.Slug, &l.Category, &l.City, &l.Verified}
	return l, row.Scan(append(into, make([]any, len(row.FieldDescriptions())-len(into))...)...)
}

// Claimant is the company that has claimed a domain.
type Claimant struct {
	ID   uuid.UUID `json:"id" doc:"ID of the company"`
	Name string    `json:"name" doc:"Name of the company"`
}

// Claimant returns the company that has claimed a domain, or nil.
func (v *Views) Claimant(ctx context.Context, at *readmodels.At, domain string) (*Claimant, error) {
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "companies"), pgx.RowToAddrOfStructByPos[Claimant],
		`select c.id, c.name from companies.company c where c.domain = $1 and c.claims_domain`, domain)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// OldestCompany returns the oldest company of the workspaces, or nil.
func (v *Views) OldestCompany(ctx context.Context, at *readmodels.At, workspaces []uuid.UUID) (*uuid.UUID, error) {
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "companies"), pgx.RowTo[uuid.UUID],
		`select c.id from companies.company c where c.workspace_id = any($1) order by c.created_at, c.id limit 1`, workspaces)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// CompanyName returns the name that the oldest company of a workspace had at a position, "" without one.
func (v *Views) CompanyName(ctx context.Context, at *readmodels.At, workspace uuid.UUID, position event.Position) (string, error) {
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "companies"), pgx.RowTo[string], `
		select n.name from companies.company_name n where n.workspace_id = $1 and n.from_position <= $2 and n.to_position > $2
		order by n.created_at, n.company_id limit 1`, workspace, int64(position))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// CompaniesMailed returns the companies that receive enquiries at the address with a keyed hash.
func (v *Views) CompaniesMailed(ctx context.Context, at *readmodels.At, emailKey string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "companies"), pgx.RowTo[uuid.UUID],
		`select c.id from companies.company c where c.email_key = $1`, emailKey)
}

// OwnCompanies returns the ids of a workspace's companies, oldest first.
func (v *Views) OwnCompanies(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "companies"), pgx.RowTo[uuid.UUID],
		`select c.id from companies.company c where c.workspace_id = $1 order by c.created_at, c.id`, workspace)
}
