package product_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

var mill = uuid.MustParse("11111111-1111-4111-8111-111111111111")

// hook returns a product with the defaults and a change.
func hook(change product.Details) product.Added {
	defaults := product.Details{Currency: patch.Set("INR"), MOQ: patch.Set[int64](1), Availability: patch.Set("in stock"),
		Active: patch.Set(true)}
	return product.Added{Company: mill, Item: product.Item{Name: "Hook", Price: 12550, Details: defaults.After(change)}}
}

func add(d product.Details) product.Add {
	return product.Add{Company: mill, Name: " Hook ", Price: 12550, Details: d}
}

func TestATextThatCannotBeSeenIsTheDefaultToo(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, product.Kind)
	foreign := none.And(hook(product.Details{Currency: patch.Set("USD"), Availability: patch.Set("preorder")}))
	for _, unseen := range []string{"", " ", "\ufeff", "\u200b ", "\u3164"} {
		asked := product.Details{Currency: patch.Set(unseen), Availability: patch.Set(unseen)}
		none.Case("added").When(add(asked)).Then(hook(product.Details{}))
		foreign.Case("edited").When(product.Edit{Details: asked}).Then(product.Edited{Details: product.Details{Currency: patch.Set("INR"),
			Availability: patch.Set("in stock")}})
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, product.Kind)
	given.Case("a name and a price are enough").When(add(product.Details{})).Then(hook(product.Details{}))
	given.Case("null and an empty text are the default").When(add(product.Details{
		Currency: patch.Set(" "), MOQ: patch.Clear[int64](), Availability: patch.Clear[string](), Active: patch.Clear[bool](),
		Images: patch.Clear[[]string](), Category: patch.Set(""),
	})).Then(hook(product.Details{}))
	full := product.Details{
		Description: patch.Set("<b>Brass</b>"), Currency: patch.Set("USD"), MOQ: patch.Set[int64](10), Availability: patch.Set("preorder"),
		Active: patch.Set(false),
		Images: patch.Set([]string{"https://cdn.example/h.jpg"}),
	}
	asked := full
	asked.Currency, asked.Availability, asked.Images = patch.Set("usd"), patch.Set("PreOrder"),
		patch.Set([]string{" https://cdn.example/h.jpg"})
	given.Case("values are put in order").When(add(asked)).Then(hook(full))
	given.Case("all faults are reported").When(product.Add{Name: strings.Repeat("a", 201), Price: -1, Details: product.Details{
		Currency: patch.Set("ZZQ"), MOQ: patch.Set[int64](0), Availability: patch.Set("soon"), ImporterName: patch.Set("a\u202eb"),
		Images: patch.Set([]string{"javascript:x", "https://a.example/b", "https://u:p@a.example"}),
	}}).ThenFails(eventtest.Faults("name", "at most 200 characters", "price_amount", "expected 0 to 999999999999999", "price_currency",
		"expected a currency of ISO 4217, as in INR",
		"importer_name", "control characters are not allowed", "availability", "expected one of in stock, out of stock, preorder, discontinued",
		"moq", "expected 1 to 1000000000",
		"images[0]", "expected a web address, as in https://example.org/a.jpg", "images[2]",
		"expected a web address, as in https://example.org/a.jpg"))
	given.Case("too many images").When(add(product.Details{Images: patch.Set(slices.Repeat([]string{"https://a.example/b"}, 21))})).
		ThenFails(eventtest.Faults("images", "at most 20 items"))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, product.Kind,
		hook(product.Details{Category: patch.Set("Hardware"), Images: patch.Set([]string{"https://a.example/b"}), MOQ: patch.Set[int64](5)}))
	given.Case("unchanged values").When(product.Edit{Name: patch.Set("Hook "), Price: patch.Set[int64](12550), Details: product.Details{
		Currency: patch.Set("inr"), Images: patch.Set([]string{"https://a.example/b"}), Description: patch.Clear[string](),
		Active: patch.Clear[bool](),
	}}).ThenNothing()
	given.Case("absent keeps, null removes, a value replaces").When(product.Edit{Details: product.Details{Category: patch.Clear[string](),
		MOQ: patch.Clear[int64](), Description: patch.Set("Brass")}}).
		Then(product.Edited{Details: product.Details{Category: patch.Clear[string](), MOQ: patch.Set[int64](1), Description: patch.Set("Brass")}})
	given.Case("no images").When(product.Edit{Details: product.Details{Images: patch.Clear[[]string]()}}).Then(
		product.Edited{Details: product.Details{Images: patch.Set([]string{})}})
	given.Case("another price").When(product.Edit{Price: patch.Set[int64](0), Details: product.Details{Active: patch.Set(false)}}).
		Then(product.Edited{Price: patch.Set[int64](0), Details: product.Details{Active: patch.Set(false)}})
	gone := given.And(product.Deleted{})
	gone.Case("a deleted one").When(product.Edit{}).ThenFails(product.ErrNotFound)
	gone.Case("a deleted one again").When(product.Delete{}).ThenFails(product.ErrNotFound)
	given.Case("delete").When(product.Delete{}).Then(product.Deleted{})
}

func TestASKUIsInOneLineAndComparedInAnyCase(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, product.Kind)
	sku := func(text string) product.Details { return product.Details{SKU: patch.Set(text)} }
	none.Case("spaces are tidied").When(add(sku(" AB\n 12\t"))).Then(hook(sku("AB 12")))
	none.Case("64 characters").When(add(sku(" " + strings.Repeat("क", 64) + " "))).Then(hook(sku(strings.Repeat("क", 64))))
	none.Case("65 characters").When(add(sku(strings.Repeat("क", 65)))).ThenFails(eventtest.Faults("sku", "at most 64 characters"))
	none.Case("an invisible text is none").When(add(sku("\u200b "))).Then(hook(product.Details{}))
	none.Case("directions of text").When(add(sku("a\u202eb"))).ThenFails(eventtest.Faults("sku", "control characters are not allowed"))
	given := none.And(hook(sku("AB 12")))
	given.Case("the same").When(product.Edit{Details: sku("AB  12")}).ThenNothing()
	given.Case("another spelling").When(product.Edit{Details: sku("ab 12")}).Then(product.Edited{Details: sku("ab 12")})
	given.Case("none").When(product.Edit{Details: product.Details{SKU: patch.Clear[string]()}}).Then(
		product.Edited{Details: product.Details{SKU: patch.Clear[string]()}})
	for _, text := range []string{"AB 12", "ab 12 ", "Ab\t12", "\ufeffaB  12"} {
		require.Equal(t, given.State().SKUClaim(), product.SKUClaim(mill, product.SKUKey(text)), text)
	}
	require.Equal(t, product.SKUKey("É"), product.SKUKey("e\u0301"))
	require.NotEqual(t, product.SKUKey("AB12"), product.SKUKey("AB 12"))
	require.NotEqual(t, given.State().SKUClaim(), product.SKUClaim(uuid.New(), "ab 12"), "each company has its own")
	for _, text := range []string{"", " ", "\u200b", strings.Repeat("a", 65), strings.Repeat("a", 500)} {
		require.Empty(t, product.SKUClaim(mill, product.SKUKey(text)), text)
	}
}

func TestAProductsIDTellsItsPlaceInItsBatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batch := product.NewBatchID(uuid.Must(uuid.NewV7()))
		place := rapid.IntRange(0, product.MaxBatch-1).Draw(t, "place")
		in, nth := product.BatchOf(product.InBatch(batch, place))
		require.Equal(t, batch, in)
		require.Equal(t, place, nth)
		require.NotEqual(t, batch, product.InBatch(batch, place))
	})
	_, nth := product.BatchOf(product.NewBatchID(uuid.Must(uuid.NewV7())))
	require.Negative(t, nth, "the batch's own id is not a product's")
}
