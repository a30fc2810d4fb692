package marketplaceproj

import (
	_ "embed"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
	"bahi/projections"
)

//go:embed products.sql
var productsDDL string

// tallies adds $2 for each product with an id in $1 to the counts of the lists with the product.
const tallies = `
	insert into tally (company_id, category_key, is_active, bucket, products)
	select list.company_id, list.category_key, p.is_active, p.ordinal >> 8, count(*) * $2::bigint
	from product p cross join lateral (
		select company_id, category_key from (values (p.company_id), ('00000000-0000-0000-0000-000000000000')) c (company_id), (values (''),
			(p.category_key)) k (category_key)
		where category_key is not null
	) list
	where p.id = any($1::uuid[])
	group by list.company_id, list.category_key, p.is_active, p.ordinal >> 8
	order by 1, 2, 3, 4
	on conflict (company_id, category_key, is_active, bucket) do update set products = tally.products + excluded.products`

// changes records a change of the catalog with the product $1.
const changes = `update catalog set changed = $2, changed_at = $3 where company_id = (select company_id from product where id = $1)`

// Products has the products of companies.
var Products = projections.Define("products", 4, productsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[company.Created]) {
		b.Exec(`insert into catalog (company_id, workspace_id, company_name, changed, changed_at) values ($1, $2, $3, $4, $5)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Name, int64(e.Position), e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Edited]) {
		if e.Data.Name.Present() {
			b.Exec(`update catalog set company_name = $2, changed = $3, changed_at = $4 where company_id = $1`, e.StreamID(), e.Data.Name.Value,
				int64(e.Position), e.At)
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Deleted]) {
		b.Exec(`
			update tally set products = tally.products - gone.products from tally gone
			where gone.company_id = $1 and tally.company_id = '00000000-0000-0000-0000-000000000000'
				and tally.category_key = gone.category_key and tally.is_active = gone.is_active and tally.bucket = gone.bucket`, e.StreamID())
		for _, table := range []string{"tally", "product", "catalog"} {
			b.Exec(`delete from `+table+` where company_id = $1`, e.StreamID())
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[product.Added]) {
		if e.Meta.FollowUpOf != 0 { // the batch already contains the product
			return
		}
		offered(b, e.Data.Company, []uuid.UUID{idOf(e.StreamID())}, []product.Item{e.Data.Item}, e.Position, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[product.Imported]) {
		if len(e.Data.Products) == 0 { // the file created no products
			return
		}
		ids := make([]uuid.UUID, len(e.Data.Products))
		for i := range ids {
			ids[i] = product.InBatch(idOf(e.StreamID()), i)
		}
		offered(b, e.Data.Company, ids, e.Data.Products, e.Position, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[product.Edited]) {
		c, id := e.Data, e.StreamID()
		own := []uuid.UUID{idOf(id)}
		moves := c.Category.Present() || c.Active.Present() // to other lists
		if moves {
			b.Exec(tallies, own, -1)
		}
		columns := []any{"name", c.Name, "price_amount", c.Price, "moq", c.MOQ, "images", c.Images, "is_active", c.Active, "updated_at",
			e.At, "revision", e.Revision}
		for _, f := range patch.Texts(&c.Details) {
			columns = append(columns, f.Name, *f.Field)
		}
		var found []string
		for i, f := range []patch.Field[string]{c.Name, c.Category, c.Description} {
			if f.Present() {
				words := append([]string{}, wording.Words(f.Value)...)
				columns, found = append(columns, wordColumns[i], words), append(found, words...)
			}
		}
		columns = append(columns, "category_key", patch.Field[string]{Value: person.Folded(c.Category.Value), State: c.Category.State},
			"sku_key", patch.Field[string]{Value: product.SKUKey(c.SKU.Value), State: c.SKU.State})
		b.Set("product", id, columns...)
		if moves {
			b.Exec(tallies, own, 1)
		}
		learned(b, found)
		b.Exec(changes, id, int64(e.Position), e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[product.Deleted]) {
		b.Exec(tallies, []uuid.UUID{idOf(e.StreamID())}, -1)
		b.Exec(changes, e.StreamID(), int64(e.Position), e.At)
		b.Exec(`delete from product where id = $1`, e.StreamID())
	}),
)

var wordColumns = [...]string{"name_words", "category_words", "description_words"}

// idOf returns the id in a stream's name.
func idOf(stream string) uuid.UUID {
	id, _ := uuid.Parse(stream)
	return id
}

// row is a product in the form that its statement requires. Its JSON has the names of the columns.
type row struct {
	product.Item

	ID               uuid.UUID `json:"id"`
	Place            int       `json:"place"`
	CategoryKey      *string   `json:"category_key"`
	SKUKey           *string   `json:"sku_key"`
	NameWords        []string  `json:"name_words"`
	CategoryWords    []string  `json:"category_words"`
	DescriptionWords []string  `json:"description_words"`
}

// offered adds products of a company, unless the company was deleted.
func offered(b *projections.Batch, of uuid.UUID, ids []uuid.UUID, items []product.Item, at event.Position, when time.Time) {
	rows, found := make([]row, len(items)), []string{}
	words := func(text string) []string {
		words := append([]string{}, wording.Words(text)...)
		found = append(found, words...)
		return words
	}
	for i, item := range items {
		rows[i] = row{
			Item: item, ID: ids[i], Place: i, NameWords: words(item.Name), CategoryWords: words(item.Category.Value),
			DescriptionWords: words(item.Description.Value),
		}
		if item.Category.Present() {
			rows[i].CategoryKey = new(person.Folded(item.Category.Value))
		}
		if item.SKU.Present() {
			rows[i].SKUKey = new(product.SKUKey(item.SKU.Value))
		}
	}
	text, _ := json.Marshal(rows) //nolint:errchkjson // texts and numbers
	b.Exec(`
		with given as (update counter set next = next + $3 returning next - $3 as first)
		insert into product (ordinal, id, company_id, workspace_id, sku, sku_key, name, description, category, category_key, sub_category,
			price_amount, price_currency, moq,
			origin_country, importer_name, importer_address, images, availability, is_active, name_words, category_words, description_words,
			created_at, updated_at, revision)
		select given.first + r.place, r.id, c.company_id, c.workspace_id, r.sku, r.sku_key, r.name, r.description, r.category, r.category_key,
			r.sub_category, r.price_amount,
			r.price_currency, r.moq, r.origin_country, r.importer_name, r.importer_address, coalesce(r.images, '{}'), r.availability, r.is_active,
			r.name_words, r.category_words, r.description_words, $4::timestamptz, $4, 0
		from given, catalog c, jsonb_to_recordset($2::text::jsonb) as r (
			place int, id uuid, sku text, sku_key text, name text, description text, category text, category_key text,
			sub_category text, price_amount bigint, price_currency text, moq bigint,
			origin_country text, importer_name text, importer_address text, images text[], availability text, is_active boolean,
			name_words text[], category_words text[], description_words text[])
		where c.company_id = $1`, of, string(text), int64(len(items)), when)
	b.Exec(tallies, ids, 1)
	learned(b, found)
	b.Exec(`update catalog set changed = $2, changed_at = $3 where company_id = $1`, of, int64(at), when)
}
