package marketplacehttp_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

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
		"product", "id = " + found.Data[1].ID, "name = ]]> <b>\"વીંટી\"</b> 😀", "description = a\tb\nc\u007f", "price = 0.05", "currency = USD",
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
