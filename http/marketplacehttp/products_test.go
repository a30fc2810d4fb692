package marketplacehttp_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

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

// sent uploads a file in a field of some name, with other fields before it.
func sent(t *testing.T, c *apitest.Client, path, content string, fields ...string) *apitest.Answer {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		require.NoError(t, form.WriteField(fields[i], fields[i+1]))
	}
	part, err := form.CreateFormFile("catalog", "a.csv")
	require.NoError(t, err)
	_, err = part.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	return c.With("Content-Type", form.FormDataContentType()).POST(path, b.Bytes())
}

const bulk = catalog + "/bulk"

func TestRowsOfAFileBecomeProducts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	const file = "name,price,category\nHook,125.50,Brass\nBad,-,\n\nNail,1,Iron\n"
	sent(t, c.With("Bahi-Dry-Run", "true"), bulk, file).Status(200).Contains(`"created":2`)
	require.Equal(t, " of 0", names(c, "company_id="+k.ID.String()))
	sent(t, c, bulk, file).Status(200).
		Contains(`"success":true,"created":2,"failed":1`, `"errors":[{"row":3,"error":"price: expected an amount, as in 1,250.50 (\"-\")"}]`)
	require.Equal(t, "Nail,Hook of 2", names(o.Anonymous(), "company_id="+k.ID.String()))
	sent(t, c, bulk, "name,price\n,\na,x").Status(200).Contains(`"success":false,"created":0,"failed":1`)

	var found struct {
		Data []struct{ ID string } `json:"data"`
	}
	apptest.Lenient(t, o.Anonymous().GET(catalog+"?company_id="+k.ID.String()), &found)
	hook := item(found.Data[1].ID)
	edited := c.PATCH(hook, `{"moq":2}`).Status(200).Contains(`"price_amount":12550`, `"category":"Brass"`)
	require.Equal(t, edited.Text, o.Anonymous().GET(hook).Status(200).Text, "an imported product is changed like every other one")
	sent(t, c, bulk, "sku,name,price\nAB 1,Clip,1\n").Status(200).Contains(`"created":1`)
	sent(t, c.With("Bahi-Dry-Run", "true"), bulk, "sku,price\nAB 1,5\n").Status(200).Contains(`"updated":1`)
}

func TestAFileOfManyRowsIsImportedInBatches(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	var file strings.Builder
	file.WriteString("name,price,category\n")
	const rows = 2600
	for i := range rows {
		fmt.Fprintf(&file, "p%d,1,c%d\n", i, i%2)
	}
	sent(t, c, bulk, file.String()).Status(200).Contains(fmt.Sprintf(`"success":true,"created":%d,"failed":0`, rows), `"errors":[]`)

	// Every page has the same rows as the whole list, even across the borders of buckets.
	for _, page := range []int{1, 2, 10, 11, 20, 25, 26} {
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprintf("p%d", rows-1-(page-1)*100-i))
		}
		require.Equal(t, fmt.Sprintf("%s of %d", strings.Join(want, ","), rows),
			names(o.Anonymous(), fmt.Sprintf("company_id=%s&limit=100&page=%d", k.ID, page)), page)
	}
	require.Equal(t, fmt.Sprintf("p1,p-1 of %d", rows/2)[:2],
		names(o.Anonymous(), fmt.Sprintf("company_id=%s&category=C1&limit=1&page=%d", k.ID, rows/2))[:2])
	require.Equal(t, fmt.Sprintf(" of %d", rows), names(o.Anonymous(), fmt.Sprintf("company_id=%s&limit=100&page=27", k.ID)))
}

func TestAFileIsForOneOfTheCallersCompanies(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign := seller(o, o.Home), seller(o, o.Abroad)
	const file = "name,price\na,1"
	sent(t, c, bulk, file).Problem(409, "The workspace has no company")
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	founded(t, c, `{"name":"`+unique()+`"}`)
	sent(t, c, bulk, file).Problem(422, "Validation error", "company_id", "the workspace has several companies: name one")
	sent(t, c, bulk, file, "company_id", k.ID.String()).Status(200)
	sent(t, c, bulk+"?company_id="+k.ID.String(), file).Status(200)
	sent(t, c, bulk, file, "company_id", "x").Problem(422, "Validation error", "company_id", "expected a UUID")
	sent(t, foreign, bulk, "nonsense", "company_id", k.ID.String()).Problem(403, "Not enough permissions to modify this company")
	sent(t, c, bulk, "\x89PNG\x00", "company_id", k.ID.String()).Problem(400, "File must be CSV or Excel")
	sent(t, c, bulk, "", "company_id", k.ID.String()).Problem(400, "File must be CSV or Excel")
	require.Equal(t, "a,a of 2", names(o.Anonymous(), "company_id="+k.ID.String()))
}

func feed(id any) string { return fmt.Sprintf("%s/feed/%s.xml", catalog, id) }

// stocked returns a company with products that are hard to write as XML.
func stocked(t *testing.T, c *apitest.Client) (id uuid.UUID) {
	t.Helper()
	k := founded(t, c, `{"name":"A & B <Mills> `+unique()+`"}`)
	in := func(fields string) { added(t, c, fmt.Sprintf(`{"company_id":"%s",%s}`, k.ID, fields)) }
	in(`"name":"Brass hook","sku":" AB  1 ","price_amount":12550,"description":"Hook & plate","images":["https://cdn.example/h.jpg?a=1&b=2",` +
		`"https://cdn.example/i.jpg"]`)
	in(`"name":"]]> <b>\"વીંટી\"</b> \uffff\ufffe😀","price_amount":5,"price_currency":"usd","availability":"preorder",` +
		`"description":"a\tb\nc\u007f"`)
	in(`"name":"hidden","price_amount":1,"is_active":false`)
	in(`"name":"dear","price_amount":999999999999999`)
	return k.ID
}

// outline returns a document's elements and texts, each on a line.
func outline(t *testing.T, text string) string {
	t.Helper()
	var lines []string
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if token == nil {
			require.ErrorContains(t, err, "EOF")
			return strings.Join(lines, "\n")
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			lines = append(lines, token.Name.Local)
		case xml.CharData:
			if strings.TrimSpace(string(token)) != "" {
				lines[len(lines)-1] += " = " + string(token)
			}
		default:
		}
	}
}

func TestAFeedHasAllActiveProducts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id := stocked(t, seller(o, o.Home))
	a := o.Anonymous().GET(feed(id)).Status(200)
	require.Equal(t, "application/xml; charset=utf-8", a.Header("Content-Type"))
	require.Equal(t, "public, max-age=300", a.Header("Cache-Control"))
	require.True(t, strings.HasPrefix(a.Text, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<catalog><product><id>"))
	var found struct {
		Data []struct{ ID string } `json:"data"`
	}
	apptest.Lenient(t, o.Anonymous().GET(catalog+"?company_id="+id.String()), &found)
	require.Equal(t, strings.Join([]string{
		"catalog",
		"product", "id = " + found.Data[2].ID, "name = Brass hook", "description = Hook & plate", "price = 125.50", "currency = INR",
		"image = https://cdn.example/h.jpg?a=1&b=2", "availability = in stock",
		"product", "id = " + found.Data[1].ID, "name = ]]> <b>\"વીંટી\"</b> 😀",
		"description = a\tb\nc\u007f", "price = 0.05", "currency = USD",
		"image", "availability = preorder",
		"product", "id = " + found.Data[0].ID, "name = dear", "description", "price = 9999999999999.99", "currency = INR", "image",
		"availability = in stock",
	}, "\n"), outline(t, a.Text))

	rss := o.Anonymous().GET(feed(id) + "?format=rss").Status(200)
	require.Equal(t, "application/rss+xml; charset=utf-8", rss.Header("Content-Type"))
	require.NotEqual(t, a.Header("ETag"), rss.Header("ETag"))
	lines := strings.Split(outline(t, rss.Text), "\n")
	require.Equal(t, []string{"rss", "channel"}, lines[:2])
	require.Equal(t, strings.Join([]string{
		"item", "id = " + found.Data[2].ID, "title = Brass hook", "description = Hook & plate", "availability = in stock", "condition = new",
		"price = 125.50 INR",
		"link = " + o.Sys.Settings.Outside.FrontendURL + "/products/" + found.Data[2].ID, "image_link = https://cdn.example/h.jpg?a=1&b=2",
		"additional_image_link = https://cdn.example/i.jpg", strings.Replace(lines[2], "title", "brand", 1), "mpn = AB 1",
	}, "\n"), strings.Join(lines[5:], "\n"))
	o.Anonymous().GET(feed(id) + "?format=atom").Status(422)
}

func TestTheFeedOfCommerceManagersHasWhatTheyTake(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	added(t, c, `{"name":"Gone","price_amount":100,"availability":"discontinued","images":["https://cdn.example/g.jpg"],"company_id":"`+
		k.ID.String()+`"}`)
	name := strings.Repeat("हाथ का कड़ा ", 16) + "end"
	added(t, c, `{"name":"`+name+`","price_amount":100,"images":["https://cdn.example/1.jpg","https://cdn.example/2.jpg?a=1&b=2",`+
		`"https://cdn.example/3.jpg"],"company_id":"`+k.ID.String()+`"}`)
	text := outline(t, o.Anonymous().GET(feed(k.ID)+"?format=rss").Status(200).Text)
	require.Equal(t, 1, strings.Count(text, "item"+"\n"), text)
	require.Regexp(t, "(?m)^mpn = [0-9a-f-]{36}$", text, "the id, if there is no SKU")
	require.Contains(t, text, "image_link = https://cdn.example/1.jpg\nadditional_image_link = "+
		"https://cdn.example/2.jpg?a=1&b=2\nadditional_image_link = https://cdn.example/3.jpg\n")
	require.Contains(t, text, "\ndescription = "+name+"\n", "the name, if there is no description")
	_, title, _ := strings.Cut(text, "\nitem\n")
	_, title, _ = strings.Cut(title, "title = ")
	title, _, _ = strings.Cut(title, "\n")
	require.True(t, strings.HasPrefix(name, title+" "), title)
	require.LessOrEqual(t, len([]rune(title)), 150)
}

func TestAFeedThatDidNotChangeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	other := founded(t, c, `{"name":"`+unique()+`"}`)
	empty := o.Anonymous().GET(feed(k.ID)).Status(200)
	require.Equal(t, "catalog", outline(t, empty.Text))
	tag, modified := empty.Header("ETag"), empty.Header("Last-Modified")
	at, err := http.ParseTime(modified)
	require.NoError(t, err)
	for _, have := range [][]string{
		{"If-None-Match", tag}, {"If-None-Match", `"x", W/` + tag}, {"If-None-Match", "*"}, {"If-Modified-Since", modified},
		{"If-Modified-Since", at.Add(time.Hour).Format(http.TimeFormat)},
		{"If-None-Match", tag, "If-Modified-Since", at.Add(-time.Hour).Format(http.TimeFormat)},
	} {
		a := o.Anonymous().With(have...).GET(feed(k.ID)).Status(304).None()
		require.Equal(t, []string{tag, modified}, []string{a.Header("ETag"), a.Header("Last-Modified")})
	}
	for _, have := range [][]string{
		{"If-None-Match", `"x"`}, {"If-Modified-Since", at.Add(-time.Hour).Format(http.TimeFormat)}, {"If-Modified-Since", "yesterday"},
		{"If-None-Match", `"x"`, "If-Modified-Since", modified},
	} {
		o.Anonymous().With(have...).GET(feed(k.ID)).Status(200)
	}

	// A change of the catalog changes the tag; any other change does not.
	last := tag
	changed := func(what string, change func()) {
		change()
		now := o.Anonymous().With("If-None-Match", last).GET(feed(k.ID)).Status(200).Header("ETag")
		require.NotEqual(t, last, now, what)
		last = now
	}
	p := added(t, c, `{"name":"other","price_amount":1,"company_id":"`+other.ID.String()+`"}`)
	c.PATCH(of(k.ID), `{"city":"Pune"}`).Status(200)
	o.Anonymous().With("If-None-Match", tag).GET(feed(k.ID)).Status(304)
	changed("added", func() { p = added(t, c, `{"name":"a","price_amount":1,"company_id":"`+k.ID.String()+`"}`) })
	changed("edited", func() { c.PATCH(item(p.ID), `{"moq":2}`).Status(200) })
	changed("imported", func() { sent(t, c, bulk, "name,price\nb,1", "company_id", k.ID.String()).Status(200) })
	changed("deleted", func() { c.DELETE(item(p.ID)).Status(204) })
	changed("renamed", func() { c.PATCH(of(k.ID), `{"name":"Other"}`).Status(200) })

	c.DELETE(of(k.ID)).Status(204)
	for _, id := range []any{k.ID, uuid.New(), "x"} {
		o.Anonymous().With("If-None-Match", last).GET(feed(id)).Problem(404, "Company not found")
	}
	o.Anonymous().GET(catalog + "/feed/" + other.ID.String()).Status(404)
}
