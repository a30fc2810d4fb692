package pages

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// publicPaths are the paths outside of Path, beside those of doors, below which pages are: what is sold, links of mails, and the way
// back from the identity provider.
var publicPaths = []string{callback, "/products", "/companies", "/enquiries", "/contacts"}

// publicRoutes registers them.
func (p *Pages) publicRoutes() {
	p.open("GET "+Path+"/sign-in/provider", (*visit).toProvider)
	p.open("GET "+callback, (*visit).fromProvider)
	p.open("POST "+callback, (*visit).fromProvider)
	p.open("GET /products/{id}", (*visit).productPage)
	p.open("POST /products/{id}", (*visit).askForProduct)
	p.open("GET /companies/{id}", (*visit).sellerPage)
	p.open("POST /companies/{id}", (*visit).askSeller)
	p.open("GET /enquiries", (*visit).toEnquiries)
	p.open("GET /enquiries/{id}", (*visit).toEnquiries)
	p.member("GET /contacts/{id}", (*visit).toContact)
}

// toEnquiries leads from the link of a mail to the page of the enquiries, or of one.
func (v *visit) toEnquiries() (page, error) {
	return page{redirect: Path + v.r.URL.EscapedPath()}, nil
}

// toContact leads from the link of a mail to the company of the contact.
func (v *visit) toContact() (page, error) {
	var contact map[string]any
	if _, err := v.call("get-contact", request{vars: []string{v.r.PathValue("id")}}, &contact); err != nil {
		return page{}, err
	}
	return page{redirect: Path + "/list/companies/" + textOf(contact["company_id"])}, nil
}

// goodsPage is the content of the public page on a company, or on what it sells.
type goodsPage struct {
	Company, Product map[string]any // Product: nil on the page of a company
	Description      string         // one line, for previews
	Price            string
	Pictures         []picture
	Products         []offer
	Older            int // number of the next page of products, 0 for none
	Form             filled
	Link             string
	Asked            bool
}

// picture is a picture of a product. Only those of this server are drawn, as the policy says; others are links.
type picture struct {
	Number  int
	Address string
	Own     bool
}

// offer is a product in a list.
type offer struct{ Name, Link, Price, Availability string }

const offers = 24 // on a page

// enquiryFields are those of an enquiry. People do not see the last one, which only programs fill.
var enquiryFields = []asked{
	{name: "user_name"}, {name: "user_email", about: "The company answers there."}, {name: "user_phone"}, {name: "quantity"},
	{name: "message"},
}

const honeypot = "website"

func (v *visit) productPage() (page, error) { return v.showProduct(nil) }

func (v *visit) showProduct(sent *rejected) (page, error) {
	shown := goodsPage{Link: v.r.URL.EscapedPath()}
	if _, err := v.call("get-product", request{vars: []string{v.r.PathValue("id")}}, &shown.Product); err != nil {
		return page{}, err
	}
	p := shown.Product
	if _, err := v.call("get-company", request{vars: []string{textOf(p["company_id"])}}, &shown.Company); err != nil {
		return page{}, err
	}
	shown.Price, shown.Description = priceOf(p), oneLineOf(p["description"])
	images, _ := p["images"].([]any)
	for i, image := range images {
		address, own := strings.CutPrefix(textOf(image), v.PublicURL+"/")
		if own {
			address = "/" + address
		}
		shown.Pictures = append(shown.Pictures, picture{i + 1, address, own})
	}
	return v.goods(shown, textOf(p["name"]), enquiryFields, sent)
}

func (v *visit) sellerPage() (page, error) { return v.showSeller(nil) }

func (v *visit) showSeller(sent *rejected) (page, error) {
	id := v.r.PathValue("id")
	shown := goodsPage{Link: v.r.URL.EscapedPath()}
	if _, err := v.call("get-company", request{vars: []string{id}}, &shown.Company); err != nil {
		return page{}, err
	}
	shown.Description = oneLineOf(shown.Company["description"])
	if slug := textOf(shown.Company["slug"]); slug != id && v.r.Method == http.MethodGet {
		return page{redirect: "/companies/" + url.PathEscape(slug)}, nil
	}
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page"))
	number = max(number, 1)
	var list struct {
		Data  []map[string]any `json:"data"`
		Total int              `json:"total"`
	}
	query := url.Values{"company_id": {textOf(shown.Company["id"])}, "limit": {strconv.Itoa(offers)}, "page": {strconv.Itoa(number)}}
	if _, err := v.call("list-products", request{query: query}, &list); err != nil {
		return page{}, err
	}
	for _, p := range list.Data {
		shown.Products = append(shown.Products, offer{textOf(p["name"]), "/products/" + textOf(p["id"]), priceOf(p), textOf(p["availability"])})
	}
	if list.Total > number*offers {
		shown.Older = number + 1
	}
	return v.goods(shown, textOf(shown.Company["name"]), slices.DeleteFunc(slices.Clone(enquiryFields),
		func(f asked) bool { return f.name == "quantity" }), sent)
}

func (v *visit) goods(shown goodsPage, title string, fields []asked, sent *rejected) (page, error) {
	s, err := v.schemaOf("create-enquiry")
	if err != nil {
		return page{}, err
	}
	shown.Form, shown.Asked = v.fill(s.ask(fields...), nil, "", sent), v.r.URL.Query().Get("done") == "asked"
	return page{template: "goods", title: title, status: sent.status(), body: shown}, nil
}

func (v *visit) askForProduct() (page, error) {
	var product map[string]any
	if _, err := v.call("get-product", request{vars: []string{v.r.PathValue("id")}}, &product); err != nil {
		return page{}, err
	}
	return v.ask(map[string]any{"to_company_id": product["company_id"], "product_id": product["id"]}, v.showProduct)
}

func (v *visit) askSeller() (page, error) {
	var seller map[string]any
	if _, err := v.call("get-company", request{vars: []string{v.r.PathValue("id")}}, &seller); err != nil {
		return page{}, err
	}
	return v.ask(map[string]any{"to_company_id": seller["id"]}, v.showSeller)
}

// ask sends an enquiry.
func (v *visit) ask(to map[string]any, again func(*rejected) (page, error)) (page, error) {
	s, err := v.schemaOf("create-enquiry")
	if err != nil {
		return page{}, err
	}
	body := s.ask(enquiryFields...).read(v.r.PostForm, false)
	maps.Copy(to, body)
	if filled := v.r.PostForm.Get(honeypot); filled != "" {
		to[honeypot] = filled
	}
	_, sent, err := v.post("create-enquiry", request{body: to}, body, nil)
	switch {
	case err != nil:
		return page{}, err
	case sent != nil:
		return again(sent)
	}
	return page{redirect: v.r.URL.EscapedPath() + "?done=asked"}, nil
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
