package marketplace

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/marketplace/company"
	"bahi/http/api"
	views "bahi/readmodels/marketplace"
)

const (
	xmlType = "application/xml; charset=utf-8"
	rssType = "application/rss+xml; charset=utf-8"

	// feedVersion is part of the feed's tag: a change of what is written raises it.
	feedVersion = 1

	// feedKept is how long a feed may be kept without asking again (CONTRACT.md 7.1).
	feedKept = 5 * time.Minute
)

// Feed registers the feed of a catalog, which commerce managers read.
func (r *Routes) Feed() {
	op := open(api.Op{
		ID: "get-catalog-feed", Method: "GET", Path: catalog + "/feed/{company_id}.xml", Summary: "Read all active products of a company as XML, oldest first",
		Limit: "catalog_general", Reads: []string{"products"}, Errors: []int{http.StatusNotFound},
	})
	api.Download(r.API, op, map[string]any{xmlType: nil, rssType: nil}, func(ctx context.Context, in *struct {
		CompanyID string `path:"company_id" doc:"The company's id"`
		Format    string `query:"format" enum:"xml,rss" default:"xml" doc:"rss: RSS 2.0 with the fields g: of commerce managers"`
	}) (api.Content, error) {
		id, err := uuid.Parse(in.CompanyID)
		if err != nil || !company.IsID(in.CompanyID) {
			return api.Content{}, company.ErrNotFound
		}
		state, err := r.Views.Catalog(ctx, id)
		if err != nil {
			return api.Content{}, err
		}
		begin, each, end := catalogXML()
		content := api.Content{
			Type: xmlType, Modified: state.ChangedAt, Kept: feedKept, ETag: api.ETag(fmt.Sprintf(`"%d-%d-%s"`, feedVersion, state.Changed, in.Format)),
		}
		if in.Format == "rss" {
			content.Type = rssType
			begin, each, end = r.catalogRSS(state.CompanyName)
		}
		content.Write = func(ctx context.Context, w io.Writer) error {
			if _, err := io.WriteString(w, xml.Header+begin); err != nil {
				return err
			}
			if err := r.Views.EachProduct(ctx, id, func(p views.Product) error {
				_, err := io.WriteString(w, each(p))
				return err
			}); err != nil {
				return err
			}
			_, err := io.WriteString(w, end)
			return err
		}
		return content, nil
	})
}

// catalogXML returns the parts of a feed as SPEC.txt has it.
func catalogXML() (begin string, each func(views.Product) string, end string) {
	return "<catalog>", func(p views.Product) string {
		return elements("product", "id", p.ID.String(), "name", p.Name, "description", textOf(p.Description), "price", decimalOf(p.PriceAmount),
			"currency", p.PriceCurrency, "image", firstOf(p.Images), "availability", p.Availability)
	}, "</catalog>\n"
}

// catalogRSS returns the parts of a feed as the large commerce managers read it. What has no image or no price is left out: they refuse it.
func (r *Routes) catalogRSS(brand string) (begin string, each func(views.Product) string, end string) {
	frontend := strings.TrimSuffix(r.Frontend, "/")
	begin = `<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel>` +
		element("title", brand) + element("link", frontend) + element("description", "Products of "+brand)
	return begin, func(p views.Product) string {
		if len(p.Images) == 0 || p.PriceAmount == 0 {
			return ""
		}
		return elements("item", "g:id", p.ID.String(), "g:title", p.Name, "g:description", textOf(p.Description), "g:availability", p.Availability,
			"g:condition", "new", "g:price", decimalOf(p.PriceAmount)+" "+p.PriceCurrency, "g:link", frontend+"/products/"+p.ID.String(),
			"g:image_link", firstOf(p.Images), "g:brand", brand, "g:mpn", p.ID.String())
	}, "</channel></rss>\n"
}

// elements returns an element of elements: names and texts in turn.
func elements(name string, children ...string) string {
	var b strings.Builder
	b.WriteString("<" + name + ">")
	for i := 0; i < len(children); i += 2 {
		b.WriteString(element(children[i], children[i+1]))
	}
	b.WriteString("</" + name + ">")
	return b.String()
}

// element returns an element with a text, without the characters that XML does not have.
func element(name, text string) string {
	var b strings.Builder
	b.WriteString("<" + name + ">")
	_ = xml.EscapeText(&b, []byte(strings.Map(inXML, text))) // to memory
	b.WriteString("</" + name + ">")
	return b.String()
}

// inXML drops a character that XML 1.0 does not have (section 2.2).
func inXML(c rune) rune {
	if c == '\t' || c == '\n' || c == '\r' || c >= 0x20 && c <= 0xd7ff || c >= 0xe000 && c < 0xfffe || c >= 0x10000 && c <= 0x10ffff {
		return c
	}
	return -1
}

// decimalOf returns an amount with two places.
func decimalOf(hundredths int64) string {
	return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func firstOf(images []string) string {
	if len(images) == 0 {
		return ""
	}
	return images[0]
}
