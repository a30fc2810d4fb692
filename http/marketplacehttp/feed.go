package marketplacehttp

import (
	"bytes"
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
	"bahi/readmodels/marketplaceview"
)

const (
	xmlType = "application/xml; charset=utf-8"
	rssType = "application/rss+xml; charset=utf-8"

	// feedVersion is part of the feed's ETag. A change of the format increases it.
	feedVersion = 3

	// maxTitle is the maximum length of a title for commerce managers, in characters.
	maxTitle = 150

	// feedKept is the time for which clients may cache a feed (CONTRACT.md 7.1).
	feedKept = 5 * time.Minute
)

// feed registers the feed of a catalog for commerce managers.
func (r *Routes) feed() {
	op := open(api.Op{
		ID: "get-catalog-feed", Method: "GET", Path: catalog + "/feed/{company_id}.xml",
		Summary: "Read all active products of a company as XML, oldest first",
		Limit:   "catalog_general", Reads: []string{"products"}, Errors: []int{http.StatusNotFound},
	})
	api.Download(r.API, op, map[string]any{xmlType: nil, rssType: nil}, func(ctx context.Context, in *struct {
		CompanyID string `path:"company_id" doc:"The company's id"`
		Format    string `query:"format" enum:"xml,rss" default:"xml" doc:"rss: RSS 2.0 with the fields g: of commerce managers"`
	}) (api.Content, error) {
		id, err := uuid.Parse(in.CompanyID)
		if err != nil || !company.IsID(in.CompanyID) {
			return api.Content{}, company.ErrNotFound
		}
		state, err := r.Views.Catalog(ctx, api.At(ctx), id)
		if err != nil {
			return api.Content{}, err
		}
		begin, each, end := catalogXML()
		content := api.Content{
			Type: xmlType, Drawn: true, Modified: state.ChangedAt, Kept: feedKept,
			ETag: api.ETag(fmt.Sprintf(`"%d-%d-%s"`, feedVersion, state.Changed, in.Format)),
		}
		if in.Format == "rss" {
			content.Type = rssType
			begin, each, end = r.catalogRSS(state.CompanyName)
		}
		content.Write = func(ctx context.Context, w io.Writer) error {
			var b bytes.Buffer
			b.WriteString(xml.Header + begin)
			if err := r.Views.EachOffer(ctx, api.At(ctx), id, func(o marketplaceview.Offer) error {
				each(&b, o)
				_, err := b.WriteTo(w)
				return err
			}); err != nil {
				return err
			}
			b.WriteString(end)
			_, err := b.WriteTo(w)
			return err
		}
		return content, nil
	})
}

// catalogXML returns the parts of a feed in SPEC.txt's form.
func catalogXML() (begin string, each func(*bytes.Buffer, marketplaceview.Offer), end string) {
	return "<catalog>", func(b *bytes.Buffer, o marketplaceview.Offer) {
		b.WriteString("<product>")
		element(b, "id", o.ID)
		element(b, "name", o.Name)
		element(b, "description", o.Description)
		element(b, "price", decimalOf(o.Price))
		element(b, "currency", o.Currency)
		element(b, "image", o.Image)
		element(b, "availability", o.Availability)
		b.WriteString("</product>")
	}, "</catalog>\n"
}

// catalogRSS returns the parts of a feed in the form for the large commerce managers. It omits products without an image or a price, and
// discontinued products, because commerce managers refuse them.
func (r *Routes) catalogRSS(brand string) (begin string, each func(*bytes.Buffer, marketplaceview.Offer), end string) {
	frontend := strings.TrimSuffix(r.Frontend, "/")
	var b bytes.Buffer
	b.WriteString(`<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel>`)
	element(&b, "title", []byte(brand))
	element(&b, "link", []byte(frontend))
	element(&b, "description", []byte("Products of "+brand))
	return b.String(), func(b *bytes.Buffer, o marketplaceview.Offer) {
		if o.Image == nil || o.Price == 0 || string(o.Availability) == "discontinued" {
			return
		}
		if o.Description == nil {
			o.Description = o.Name
		}
		b.WriteString("<item>")
		element(b, "g:id", o.ID)
		element(b, "g:title", titled(o.Name))
		element(b, "g:description", o.Description)
		element(b, "g:availability", o.Availability)
		element(b, "g:condition", []byte("new"))
		element(b, "g:price", fmt.Appendf(nil, "%s %s", decimalOf(o.Price), o.Currency))
		element(b, "g:link", fmt.Appendf(nil, "%s/products/%s", frontend, o.ID))
		element(b, "g:image_link", o.Image)
		for image := range bytes.SplitSeq(o.More, []byte("\n")) {
			if len(image) > 0 {
				element(b, "g:additional_image_link", image)
			}
		}
		element(b, "g:brand", []byte(brand))
		if o.SKU == nil {
			o.SKU = o.ID
		}
		element(b, "g:mpn", o.SKU)
		b.WriteString("</item>")
	}, "</channel></rss>\n"
}

// titled returns a name cut to the words that fit in a title.
func titled(name []byte) []byte {
	runes := []rune(string(name))
	if len(runes) <= maxTitle {
		return name
	}
	short := string(runes[:maxTitle])
	if end := strings.LastIndexByte(short, ' '); end > len(short)/2 && runes[maxTitle] != ' ' {
		short = short[:end]
	}
	return []byte(strings.TrimSpace(short))
}

// element writes an element with a text, without the characters that XML excludes.
func element(b *bytes.Buffer, name string, text []byte) {
	b.WriteByte('<')
	b.WriteString(name)
	b.WriteByte('>')
	if bytes.ContainsFunc(text, marked) {
		_ = xml.EscapeText(b, bytes.Map(inXML, text)) // to memory
	} else {
		b.Write(text)
	}
	b.WriteString("</")
	b.WriteString(name)
	b.WriteByte('>')
}

// marked reports whether XML may require an escape for a character.
func marked(c rune) bool {
	return c < ' ' || c >= 0x7f || c == '<' || c == '>' || c == '&' || c == '\'' || c == '"'
}

// inXML drops a character that XML 1.0 excludes (section 2.2).
func inXML(c rune) rune {
	if c == '\t' || c == '\n' || c == '\r' || c >= 0x20 && c <= 0xd7ff || c >= 0xe000 && c < 0xfffe || c >= 0x10000 && c <= 0x10ffff {
		return c
	}
	return -1
}

// decimalOf returns an amount with two decimal places.
func decimalOf(hundredths int64) []byte {
	return fmt.Appendf(nil, "%d.%02d", hundredths/100, hundredths%100)
}
