package marketplaceproj_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/marketplaceproj"
)

func TestACatalogHasWhatItsCompanySells(t *testing.T) {
	t.Parallel()
	item := func(name, category string) product.Item {
		i, err := product.Item{Name: name, Price: 100, Details: product.Details{
			SKU: patch.Set(strings.ToUpper(name)), Category: patch.Set(category), Images: patch.Set([]string{"https://a.example/" + name}),
		}}.Tidied()
		require.NoError(t, err)
		return i
	}
	sold := func(id string, e event.Event[product.State]) projectiontest.Event {
		return projectiontest.Happened(product.Kind, id, e, meta)
	}
	const batch = "00000000-0000-4000-8000-000000000000"
	imported := func(of string, items ...product.Item) projectiontest.Event {
		return projectiontest.Happened(product.Batches, batch, product.Imported{Company: uuid.MustParse(of), Products: items}, meta)
	}
	follow := meta
	follow.FollowUpOf = 5
	id := func(n int) string { return fmt.Sprintf("99999999-0000-4000-8000-%012d", n) }
	first := product.InBatch(uuid.MustParse(batch), 0).String()
	tables := projectiontest.Run(t, marketplaceproj.Products,
		happened(asha, company.Created{Name: "Asha"}), happened(ravi, company.Created{Name: "Ravi"}),
		sold(id(1), product.Added{Company: uuid.MustParse(asha), Item: item("ring", "Gold")}),
		sold(id(2), product.Added{Company: uuid.MustParse(ravi), Item: item("chain", "gold")}),
		imported(asha, item("hook", "Brass"), item("nail", "")),
		projectiontest.Happened(product.Kind, first, product.Added{Company: uuid.MustParse(asha), Item: item("hook", "Brass")}, follow),
		sold(first, product.Edited{
			Name: patch.Set("Hooks"), Details: product.Details{SKU: patch.Set("AB 1"), Category: patch.Set("GOLD"), Images: patch.Set([]string{})},
		}),
		projectiontest.Happened(product.Batches, id(0), product.Imported{Company: uuid.MustParse(asha), Updated: 3}, meta),
		sold(id(3), product.Added{Company: uuid.MustParse(asha), Item: item("gone", "Gold")}), sold(id(3), product.Deleted{}),
		sold(id(4), product.Added{Company: uuid.MustParse(asha), Item: item("hidden", "Gold")}),
		sold(id(4), product.Edited{Details: product.Details{Active: patch.Set(false)}}),
		happened(asha, company.Edited{Name: patch.Set("Asha Mills")}),
		happened(ravi, company.Deleted{}),
		sold(id(5), product.Added{Company: uuid.MustParse(ravi), Item: item("late", "Gold")}),
	)
	require.Equal(t, []string{
		`(1,RING,ring,ring,gold,{https://a.example/ring},t,"{ring,gold}",0)`, `(3,"AB 1","ab 1",Hooks,gold,{},t,"{hooks,gold}",1)`,
		`(4,NAIL,nail,nail,,{https://a.example/nail},t,{nail},0)`, `(6,HIDDEN,hidden,hidden,gold,{https://a.example/hidden},f,"{hidden,gold}",1)`,
	}, tables.Rows(`select nth, sku, sku_key, name, category_key, images, is_active, words, revision from product order by nth`))
	require.Equal(t, []string{`("Asha Mills",13)`}, tables.Rows(`select company_name, changed from catalog`))
	require.Equal(t, []string{`(0,"",f,1)`, `(0,"",t,3)`, `(0,gold,f,1)`, `(0,gold,t,2)`, `(1,"",f,1)`, `(1,"",t,3)`, `(1,gold,f,1)`,
		`(1,gold,t,2)`},
		tables.Rows(`select left(company_id::text, 1), category_key, is_active, products from tally where products > 0 order by company_id,
			category_key, is_active`))
}
