// Package marketplace reads the projections of the marketplace area. What it reads is public, but for what a view says.
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
	Slug     string    `json:"slug" doc:"Name in URLs; it never changes"`
	Category *string   `json:"category" doc:"Category"`
	City     *string   `json:"city" doc:"City"`
	Verified bool      `json:"verified" doc:"true: an operator has verified the company"`
}

// SchemaName is the name in the document.
func (Listed) SchemaName() string { return "ListedCompany" }

// Company is a company that sells.
type Company struct {
	ID           uuid.UUID `json:"id" doc:"ID of the company"`
	Name         string    `json:"name" doc:"Name of the company"`
	Slug         string    `json:"slug" doc:"Names it in links, and never changes"`
	Description  *string   `json:"description" doc:"Description of the company"`
	Category     *string   `json:"category" doc:"Category"`
	SubCategory  *string   `json:"sub_category" doc:"Subcategory"`
	Website      *string   `json:"website" doc:"URL of the website"`
	Domain       *string   `json:"domain" doc:"Domain of the company; null: none"`
	AddressLine1 *string   `json:"address_line1" db:"address_line1" doc:"Street and number"`
	City         *string   `json:"city" doc:"City"`
	State        *string   `json:"state" doc:"State"`
	Country      *string   `json:"country" doc:"Country"`
	Pincode      *string   `json:"pincode" doc:"Postal code"`
	GSTIN        *string   `json:"gstin" db:"gstin" doc:"GSTIN of the company"`
	Phone        *string   `json:"phone" doc:"Phone number in E.164 form"`
	Verified     bool      `json:"verified" doc:"An operator has looked at it"`
	CreatedAt    time.Time `json:"created_at" doc:"Time when the company was created"`
	UpdatedAt    time.Time `json:"updated_at" doc:"Time of the last change of the company"`
	Revision     int64     `json:"revision" doc:"For If-Match"`

	Email          *string `json:"email,omitempty" db:"-" doc:"To which enquiries go; for members"`
	EmailConfirmed *bool   `json:"email_confirmed,omitempty" db:"-" doc:"A reader of it has confirmed it; for members"`
}

const companyColumns = `select c.id, c.name, c.slug, c.description, c.category, c.sub_category, c.website, c.domain, c.address_line1,
	c.city, c.state, c.country,
	c.pincode, c.gstin, c.phone, c.verified, c.created_at, c.updated_at, c.revision from companies.company c`

// Company reads a company by its id or its slug, or returns [company.ErrNotFound].
func (v *Views) Company(ctx context.Context, slugOrID string) (Company, error) {
	if company.IsID(slugOrID) {
		id, err := uuid.Parse(slugOrID)
		if err != nil {
			return Company{}, company.ErrNotFound
		}
		return readmodels.Row(ctx, v.Reader, company.ErrNotFound, pgx.RowToStructByName[Company], companyColumns+` where c.id = $1`, id)
	}
	return readmodels.Row(ctx, v.Reader, company.ErrNotFound, pgx.RowToStructByName[Company], companyColumns+` where c.slug = $1`, slugOrID)
}

// CompanyFilter says which companies are asked for: those that all its fields fit. Empty fields fit all.
type CompanyFilter struct {
	Category string `query:"category" maxLength:"200" doc:"In any case"`
	City     string `query:"city"     maxLength:"200" doc:"In any case"`
	Verified bool   `query:"verified" doc:"Only those that an operator has looked at"`
}

const listedColumns = `r.id, r.name, r.slug, r.category, r.city, r.verified, r.created_at`

func (f CompanyFilter) where() readmodels.Where {
	w := readmodels.Where{SQL: "true"}
	if category := person.Folded(f.Category); category != "" {
		w.And("r.category_key = $n", category)
	}
	if city := person.Folded(f.City); city != "" {
		w.And("r.city_key = $n", city)
	}
	if f.Verified {
		w.SQL += " and r.verified"
	}
	return w
}

// Companies lists a page of the companies of the deployment, newest first.
func (v *Views) Companies(ctx context.Context, page readmodels.Page, f CompanyFilter) (rows []Listed, total int64, err error) {
	w := f.where()
	return readmodels.PagedWithCount(ctx, v.Reader, page, listed, `created_at desc, id desc`,
		readmodels.Tally(`companies.company`, `r`, w.SQL), `select `+listedColumns+` from companies.company r where `+w.SQL, w.Args...)
}

// CompaniesOf lists a page of the companies of a workspace, newest first.
func (v *Views) CompaniesOf(ctx context.Context, page readmodels.Page, f CompanyFilter, workspace uuid.UUID) (rows []Listed, total int64,
	err error) {
	w := f.where()
	w.And("r.workspace_id = $n", workspace)
	return readmodels.Paged(ctx, v.Reader, page, listed, `created_at desc, id desc`,
		`select `+listedColumns+` from companies.company r where `+w.SQL, w.Args...)
}

// FindCompanies lists a page of the companies of the deployment that have the words, the best first, then the newest.
func (v *Views) FindCompanies(ctx context.Context, page readmodels.Page, words string) (rows []Listed, total int64, err error) {
	return readmodels.Find(ctx, v.Reader, page, listed, readmodels.Search{
		Projection: "companies", Table: "company", Columns: listedColumns, Where: "true", Order: "created_at desc, id desc", Asked: words,
	})
}

// listed reads a row's first columns: those after them only sort.
func listed(row pgx.CollectableRow) (l Listed, err error) {
	into := []any{&l.ID, &l.Name, &l.Slug, &l.Category, &l.City, &l.Verified}
	return l, row.Scan(append(into, make([]any, len(row.FieldDescriptions())-len(into))...)...)
}

// Claimant is the company that has a domain.
type Claimant struct {
	ID   uuid.UUID `json:"id" doc:"ID of the company"`
	Name string    `json:"name" doc:"Name of the company"`
}

// Claimant returns the company that has claimed a domain, or nil.
func (v *Views) Claimant(ctx context.Context, domain string) (*Claimant, error) {
	found, err := readmodels.Rows(ctx, v.Reader, pgx.RowToAddrOfStructByPos[Claimant],
		`select c.id, c.name from companies.company c where c.domain = $1 and c.claims_domain`, domain)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// OldestCompany returns the oldest of the companies of workspaces, nil for none.
func (v *Views) OldestCompany(ctx context.Context, workspaces []uuid.UUID) (*uuid.UUID, error) {
	found, err := readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID],
		`select c.id from companies.company c where c.workspace_id = any($1) order by c.created_at, c.id limit 1`, workspaces)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// CompanyName returns the name that the oldest company of a workspace had at a position, "" without one.
func (v *Views) CompanyName(ctx context.Context, workspace uuid.UUID, at event.Position) (string, error) {
	found, err := readmodels.Rows(ctx, v.Reader, pgx.RowTo[string], `
		select n.name from companies.company_name n where n.workspace_id = $1 and n.from_position <= $2 and n.to_position > $2
		order by n.created_at, n.company_id limit 1`, workspace, int64(at))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// CompaniesMailed returns the companies whose enquiries go to the address with a keyed hash.
func (v *Views) CompaniesMailed(ctx context.Context, emailKey string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID], `select c.id from companies.company c where c.email_key = $1`, emailKey)
}

// OwnCompanies returns the ids of a workspace's companies, oldest first.
func (v *Views) OwnCompanies(ctx context.Context, workspace uuid.UUID) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID],
		`select c.id from companies.company c where c.workspace_id = $1 order by c.created_at, c.id`, workspace)
}
