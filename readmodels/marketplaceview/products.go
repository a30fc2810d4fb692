package marketplaceview

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/person"
	"bahi/readmodels"
)

// Product is a product of a company.
type Product struct {
	ID              uuid.UUID `json:"id" doc:"ID of the product"`
	CompanyID       uuid.UUID `json:"company_id" doc:"ID of the company"`
	SKU             *string   `json:"sku"            doc:"The company's own code, unique in the company" db:"sku"`
	Name            string    `json:"name" doc:"Name of the product"`
	Description     *string   `json:"description" doc:"Description of the product"`
	Category        *string   `json:"category" doc:"Category"`
	SubCategory     *string   `json:"sub_category" doc:"Subcategory"`
	PriceAmount     int64     `json:"price_amount"   doc:"Price in paise, the hundredth part of the currency"`
	PriceCurrency   string    `json:"price_currency" doc:"Currency by ISO 4217"`
	MOQ             int64     `json:"moq"            doc:"Minimum quantity of an order" db:"moq"`
	OriginCountry   *string   `json:"origin_country" doc:"Country of origin"`
	ImporterName    *string   `json:"importer_name" doc:"Name of the importer"`
	ImporterAddress *string   `json:"importer_address" doc:"Address of the importer"`
	Images          []string  `json:"images" doc:"URLs of pictures"`
	Availability    string    `json:"availability"   enum:"in stock,out of stock,preorder,discontinued" doc:"Availability"`
	IsActive        bool      `json:"is_active"      doc:"true: the product is public"`
	CreatedAt       time.Time `json:"created_at" doc:"Time when the product was created"`
	UpdatedAt       time.Time `json:"updated_at" doc:"Time of the last change of the product"`
	Revision        int64     `json:"revision"       doc:"Revision for If-Match"`
}

const productColumns = `r.id, r.company_id, r.sku, r.name, r.description, r.category, r.sub_category, r.price_amount, r.price_currency, ` +
	`r.moq,
	r.origin_country, r.importer_name, r.importer_address, r.images, r.availability, r.is_active, r.created_at, r.updated_at, r.revision`

// productOf reads a row's first columns. The others are for sorting.
func productOf(row pgx.CollectableRow) (p Product, err error) {
	into := []any{
		&p.ID, &p.CompanyID, &p.SKU, &p.Name, &p.Description, &p.Category, &p.SubCategory, &p.PriceAmount, &p.PriceCurrency, &p.MOQ,
		&p.OriginCountry, &p.ImporterName, &p.ImporterAddress, &p.Images, &p.Availability, &p.IsActive, &p.CreatedAt, &p.UpdatedAt, &p.Revision,
	}
	return p, row.Scan(append(into, make([]any, len(row.FieldDescriptions())-len(into))...)...)
}

// Product reads a product that is active or belongs to the workspace, or returns [product.ErrNotFound].
func (v *Views) Product(ctx context.Context, at *readmodels.At, workspace, id uuid.UUID) (Product, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "products"), product.ErrNotFound, productOf,
		`select `+productColumns+` from products.product r where r.id = $1 and (r.is_active or r.workspace_id = $2)`, id, workspace)
}

// ProductsBySKU returns all products of a company with the SKUs, by SKU in the form of [product.SKUKey].
func (v *Views) ProductsBySKU(ctx context.Context, of uuid.UUID, keys []string) (map[string]product.Listed, error) {
	type keyed struct {
		key string
		product.Listed
	}
	rows, err := readmodels.Complete(func(at *readmodels.At) ([]keyed, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "products"), func(row pgx.CollectableRow) (k keyed, err error) {
			var item []byte
			if err := row.Scan(&k.key, &k.ID, &item); err != nil {
				return k, err
			}
			return k, json.Unmarshal(item, &k.Item)
		}, `select r.sku_key, r.id, (select to_json(i) from (select r.sku, r.name, r.description, r.category, r.sub_category, r.price_amount,
				r.price_currency, r.moq, r.origin_country, r.importer_name, r.importer_address, r.images, r.availability, r.is_active) i)
			from products.product r where r.company_id = $1 and r.sku_key = any($2)`, of, keys)
	})
	found := make(map[string]product.Listed, len(rows))
	for _, k := range rows {
		found[k.key] = k.Listed
	}
	return found, err
}

// ProductFilter selects the products that match all its fields. An empty field matches all.
type ProductFilter struct {
	Category string
	Search   string     // words of the name, the category or the description
	Company  *uuid.UUID // nil: any
	Inactive bool       // only inactive products; false: only active ones
}

// Products lists a page of products, newest first, or the best first in a search. The caller must check the right to see inactive products.
func (v *Views) Products(ctx context.Context, at *readmodels.At, page readmodels.Page, f ProductFilter) (rows []Product, total int64,
	err error) {
	where, of := `r.is_active = @active`, uuid.Nil
	if f.Company != nil {
		if of = *f.Company; of == uuid.Nil { // no company has this id, which is the key of the list of all products
			return nil, 0, nil
		}
		where += " and r.company_id = @company"
	}
	args := pgx.NamedArgs{"active": !f.Inactive, "company": of, "category": person.Folded(f.Category)}
	if args["category"] != "" {
		where += " and r.category_key = @category"
	}
	if strings.TrimSpace(f.Search) != "" {
		return v.findProducts(ctx, at, page, where, args, f.Search)
	}
	skip := page.Offset()
	start, err := v.place(ctx, at, skip, args)
	if err != nil || skip >= start.Total {
		return nil, start.Total, err
	}
	args["before"], args["limit"], args["skip"] = (start.Bucket+1)<<bucketBits, page.Size, skip-start.Before
	rows, err = readmodels.Rows(ctx, v.Reader.From(at, "products"), productOf,
		`select `+productColumns+` from products.product r where `+where+
			` and r.ordinal <= (select r.ordinal from products.product r where `+where+` and r.ordinal < @before
				order by r.ordinal desc limit 1 offset @skip)
		order by r.ordinal desc limit @limit`, args)
	return rows, start.Total, err
}

// bucketBits is the size of a bucket of the projection's counts, as a power of 2.
const bucketBits = 8

// findProducts sorts the ranks of the found products, and then reads only the rows of the page.
func (v *Views) findProducts(ctx context.Context, at *readmodels.At, page readmodels.Page, where string, args pgx.NamedArgs,
	words string) ([]Product, int64, error) {
	products := v.Reader.From(at, "products")
	ids, total, err := readmodels.Find(ctx, products, page, func(row pgx.CollectableRow) (id uuid.UUID, err error) {
		return id, row.Scan(&id, nil, nil, nil)
	}, readmodels.Search{
		Projection: "products", Table: "product", Columns: "r.id, r.ordinal", Where: where, Order: "ordinal desc", Asked: words, Args: args,
	})
	if err != nil || len(ids) == 0 {
		return nil, total, err
	}
	rows, err := readmodels.Rows(ctx, products, productOf, `select `+productColumns+
		` from products.product r join unnest($1::uuid[]) with ordinality found (id, place) on r.id = found.id order by found.place`, ids)
	return rows, total, err
}

// place is the beginning of a page in a list.
type place struct {
	Total  int64 // products of the list
	Bucket int64 // bucket of the page's first product
	Before int64 // number of products in the buckets before it
}

// place finds the beginning of a page without reading products, so that all pages take equally long.
func (v *Views) place(ctx context.Context, at *readmodels.At, skip int64, args pgx.NamedArgs) (place, error) {
	args["skip"] = skip
	return readmodels.Row(ctx, v.Reader.From(at, "products"), nil, pgx.RowToStructByPos[place], `
		select coalesce(max(before + products), 0)::bigint, coalesce(min(bucket) filter (where before <= @skip), 0),
			coalesce(max(before) filter (where before <= @skip), 0)::bigint
		from (
			select bucket, products, sum(products) over (order by bucket desc) - products as before from products.tally
			where company_id = @company and category_key = @category and is_active = @active and products > 0
		) pieces`, args)
}

// Catalog is the state of a company's catalog for its feed.
type Catalog struct {
	CompanyName string
	Changed     int64 // position in the log
	ChangedAt   time.Time
}

// Catalog reads the state of a company's catalog, or returns [company.ErrNotFound].
func (v *Views) Catalog(ctx context.Context, at *readmodels.At, of uuid.UUID) (Catalog, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "products"), company.ErrNotFound, pgx.RowToStructByPos[Catalog],
		`select c.company_name, c.changed, c.changed_at from products.catalog c where c.company_id = $1`, of)
}

// Offer is a product in the form for feeds. Its texts are as received from Postgres, nil for null.
type Offer struct {
	ID, Name, Description, Currency, Image, Availability, SKU []byte

	More []byte // addresses of further images, one a line

	Price int64 // in the hundredth part of the currency
}

// EachOffer calls take for each active product of a company, oldest first. The texts are valid until take returns.
func (v *Views) EachOffer(ctx context.Context, at *readmodels.At, of uuid.UUID, take func(Offer) error) error {
	return readmodels.Each(ctx, v.Reader.From(at, "products"), func(row pgx.CollectableRow) (o Offer, err error) {
		for i, into := range []*[]byte{&o.ID, &o.Name, &o.Description, &o.Currency, &o.Image, &o.Availability, &o.SKU} {
			*into = row.RawValues()[i]
		}
		o.More = row.RawValues()[8]
		o.Price, err = strconv.ParseInt(string(row.RawValues()[7]), 10, 64)
		return o, err
	}, take, `select r.id::text, r.name, r.description, r.price_currency, r.images[1], r.availability, r.sku,
		r.price_amount::text, array_to_string(r.images[2:11], E'\n')
		from products.product r where r.company_id = $1 and r.is_active order by r.ordinal`, of)
}
