package marketplacehttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/marketplaceview"
)

const catalog = "/api/v1/catalog"

func item(id any) string { return fmt.Sprintf("%s/%s", catalog, id) }

func added(t *testing.T, c *apitest.Client, body string) (p marketplaceview.Product) {
	t.Helper()
	c.POST(catalog, body).Status(201).JSON(&p)
	return p
}

// names returns the names of a page of products, and their number.
func names(c *apitest.Client, query string) string {
	var found struct {
		Data        []marketplaceview.Product `json:"data"`
		Total       int64                     `json:"total"`
		Page, Limit int
	}
	c.GET(catalog + "?" + query).Status(200).JSON(&found)
	all := make([]string, len(found.Data))
	for i, p := range found.Data {
		all[i] = p.Name
	}
	return fmt.Sprintf("%s of %d", strings.Join(all, ","), found.Total)
}

func TestAProductBelongsToOneOfTheCallersCompanies(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign := seller(o, o.Home), seller(o, o.Abroad)
	const body = `{"name":"Hook","price_amount":1}`
	c.POST(catalog, body).Problem(409, "The workspace has no company").Contains(`"code":"no_company"`)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	p := added(t, c, body)
	require.Equal(t, k.ID, p.CompanyID)
	other := founded(t, c, `{"name":"`+unique()+`"}`)
	c.POST(catalog, body).Problem(422, "Validation error", "company_id", "the workspace has several companies: name one")
	in := func(id any) string { return fmt.Sprintf(`{"name":"Hook","price_amount":1,"company_id":"%s"}`, id) }
	require.Equal(t, other.ID, added(t, c, in(other.ID)).CompanyID)
	foreign.POST(catalog, in(k.ID)).Problem(403, "Not enough permissions to modify this company")
	c.POST(catalog, in(uuid.New())).Problem(422, "Validation error", "company_id", "there is no such company")
	o.Operator().PATCH(item(p.ID), `{"moq":2}`).Status(200).Contains(`"moq":2`)

	// A deleted company's products are deleted at once.
	c.DELETE(of(k.ID)).Status(204)
	o.Anonymous().GET(item(p.ID)).Problem(404, "Product not found")
	c.PATCH(item(p.ID), `{"moq":3}`).Problem(404, "Product not found")
	c.POST(catalog, in(k.ID)).Problem(422, "Validation error", "company_id", "there is no such company")
	require.Equal(t, " of 0", names(o.Anonymous(), "company_id="+k.ID.String()))
}

func TestProductsAreListedAndFound(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, word := seller(o, o.Home), unique()
	k := founded(t, c, `{"name":"`+word+`"}`)
	for i, category := range []string{"Rings", "rings ", "Chains", ""} {
		added(t, c, fmt.Sprintf(`{"name":"p%d","category":"%s","price_amount":1,"description":"golden %s"}`, i,
			strings.Replace(category, "ings", "ings "+word, 1), word))
	}
	hidden := added(t, c, `{"name":"hidden","category":"Rings `+word+`","price_amount":1,"is_active":false,"description":"golden `+word+`"}`)
	all, own := "company_id="+k.ID.String(), "p3,p2,p1,p0 of 4"
	for query, found := range map[string]string{
		all: own, all + "&limit=2": "p3,p2 of 4", all + "&limit=3&page=2": "p0 of 4", all + "&page=9": " of 4",
		all + "&is_active=true&category=": own,
		"category=RINGS+" + word:          "p1,p0 of 2", all + "&category=+rings+" + word + "+": "p1,p0 of 2",
		all + "&category=rings+" + word + "&limit=1&page=2": "p0 of 2",
		all + "&category=none":                              " of 0", "search=goldne+" + word: own, all + "&search=p2+" + word: "p2 of 1",
		all + "&search=%26%7C": " of 0", all + "&search=+": own,
		"search=golden+" + word + "&category=rings+" + word + "&limit=1": "p1 of 2", "company_id=" + uuid.NewString(): " of 0",
		"company_id=" + uuid.Nil.String(): " of 0",
	} {
		require.Equal(t, found, names(o.Anonymous(), query), query)
	}

	// Only members see inactive products.
	o.Anonymous().GET(item(hidden.ID)).Problem(404, "Product not found")
	c.GET(item(hidden.ID)).Status(200)
	require.Equal(t, "hidden of 1", names(c, "is_active=false"))
	require.Equal(t, "hidden of 1", names(c, "is_active=false&category=rings+"+word+"&"+all))
	foreign := seller(o, o.Abroad)
	foreign.GET(item(hidden.ID)).Problem(404, "Product not found")
	foreign.GET(catalog+"?is_active=false&"+all).Problem(403, "Not enough permissions to see this company's inactive products")
	require.Equal(t, " of 0", names(foreign, "is_active=false"))
	o.Anonymous().GET(catalog+"?is_active=false&"+all).Problem(401, "Not authenticated")
	o.Clerk(o.Home).GET(catalog+"?is_active=false").Problem(403, "Not enough permissions")
	c.PATCH(item(hidden.ID), `{"is_active":true}`).Status(200)
	require.Equal(t, "hidden,p3,p2,p1,p0 of 5", names(o.Anonymous(), all))
}
