package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// publicPaths are further path prefixes of pages outside Path: the marketplace, links in mails, and the identity provider's redirect.
var publicPaths = []string{callback, "/products", "/companies", "/enquiries", "/contacts"}

// toEnquiries redirects a mail's link to the page of one enquiry or of all.
func (v *visit) toEnquiries() page {
	return page{redirect: Path + v.r.URL.EscapedPath()}
}

// toContact redirects a mail's link to the contact's company.
func (v *visit) toContact() page {
	var contact map[string]any
	v.read("get-contact", request{vars: []string{v.r.PathValue("id")}}, &contact)
	return page{redirect: Path + "/list/companies/" + textOf(contact["company_id"])}
}

// goodsPage is the content of the public page of a company or a product.
type goodsPage struct {
	Company, Product map[string]any // Product: nil on the page of a company
	Products         []map[string]any
	Older            string // address of the next page of products, "" for none
	Form             actForm
	Link             string
	Asked            bool
}

// relative returns the address of a file of this server without the server, which opens at the visitor's address of it.
func (p *Pages) relative(address string) (_ string, own bool) {
	path, own := strings.CutPrefix(address, p.PublicURL+"/")
	if own {
		return "/" + path, true
	}
	return address, false
}

const offers = 24 // on a page

// honeypot is a hidden field that only programs fill.
const honeypot = "website"

// goodsResources are the public pages of companies and products, with the enquiry form.
func goodsResources() []*resource {
	fields := []string{"user_name", "user_email", "user_phone", "quantity", "message", honeypot}
	ask := action{operation: "create-enquiry", button: "Send", did: "asked", another: true, fields: fields}
	ofSeller := ask
	ofSeller.fields = slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return name == "quantity" })
	ofSeller.starts = func(_ *desk, c map[string]any) map[string]any { return map[string]any{"to_company_id": c["id"]} }
	ask.starts = func(_ *desk, p map[string]any) map[string]any {
		return map[string]any{"to_company_id": p["company_id"], "product_id": p["id"]}
	}
	return []*resource{
		{base: "/", word: "products", public: true, get: "get-product", own: (*desk).product, cells: "goods", each: []action{ask}},
		{base: "/", word: "companies", public: true, get: "get-company", own: (*desk).seller, cells: "goods", each: []action{ofSeller}},
	}
}

func (d *desk) product(in sent) page {
	p := d.found()
	shown := goodsPage{Product: p}
	d.read("get-company", request{vars: []string{textOf(p["company_id"])}}, &shown.Company)
	return d.goods(shown, p, in)
}

func (d *desk) seller(in sent) page {
	c := d.found()
	if slug := textOf(c["slug"]); slug != d.id && d.r.Method == http.MethodGet {
		return page{redirect: "/companies/" + url.PathEscape(slug)}
	}
	shown := goodsPage{Company: c}
	number := d.number()
	var list struct {
		Data  []map[string]any `json:"data"`
		Total int              `json:"total"`
	}
	query := url.Values{"company_id": {textOf(c["id"])}, "limit": {strconv.Itoa(offers)}, "page": {strconv.Itoa(number)}}
	d.read("list-products", request{query: query}, &list)
	shown.Products = list.Data
	_, shown.Older = turned(d.r.URL.EscapedPath(), nil, number, list.Total > number*offers)
	return d.goods(shown, c, in)
}

func (d *desk) goods(shown goodsPage, of map[string]any, in sent) page {
	forms := d.forms(in, of)
	if d.failed != nil {
		return page{}
	}
	shown.Form, shown.Link, shown.Asked = forms[0], d.r.URL.EscapedPath(), d.r.URL.Query().Get("done") == "asked"
	return page{template: "goods", title: textOf(of["name"]), status: in.status, body: shown}
}

// priceOf returns the price of a product, "" for none. Its amount is in hundredths.
func priceOf(p map[string]any) string {
	amount, ok := toDecimal(p["price_amount"])
	if !ok || amount.IsZero() {
		return ""
	}
	amount = amount.Shift(-2)
	if currency := textOf(p["price_currency"]); currency != "INR" {
		return currency + " " + amount.StringFixed(2)
	}
	return rupees(amount)
}

// oneLineOf returns the beginning of a text as one line.
func oneLineOf(text any) string {
	words := []rune(strings.Join(strings.Fields(textOf(text)), " "))
	return string(words[:min(len(words), 200)])
}
