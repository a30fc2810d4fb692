package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// marketplaceResources are the resources of the marketplace.
var marketplaceResources = []*resource{
	{
		word: "companies", title: "Companies", button: "Add a company", about: "Your companies, as buyers find them.",
		list: "list-companies", get: "get-company", create: "create-company", edit: "edit-company", remove: "delete-company",
		fixed: url.Values{"mine": {"true"}}, columns: []string{"name", "city", "category", "verified"},
		without: []string{"slug", "warnings"}, given: []string{"verified"},
		links: func(d *desk, _ map[string]any) []choice {
			return []choice{{Value: "/companies/" + d.id, Text: "What everybody sees"}}
		},
		note: func(c map[string]any) string {
			if textOf(c["email"]) != "" && c["email_confirmed"] != true {
				return "A link was mailed to the address of the company. Enquiries go there once somebody has opened it."
			}
			return ""
		},
		parts: []*resource{{
			word: "contacts", title: "People to turn to", button: "Add a person", by: "company_id",
			list: "list-contacts", get: "get-contact", create: "add-contact", edit: "edit-contact", remove: "delete-contact",
			columns: []string{"first_name", "designation", "phone", "email", "is_primary"}, without: []string{"warnings"},
		}},
	},
	products,
}

var products = &resource{
	word: "products", title: "Products", button: "Add a product", about: "What you sell, as buyers find it.",
	list: "list-products", get: "get-product", create: "add-product", edit: "edit-product", remove: "delete-product",
	columns: []string{"name", "sku", "price_amount", "moq", "category", "availability", "is_active"},
	first:   "company_id", lacks: "Products belong to a company: add your company first.",
	actions: []action{{
		operation: "import-products", button: "Import a file", shows: true,
		about: "A product with the SKU of a row is changed, others are added.",
		links: []choice{
			{Value: "/api/v1/catalog/bulk/template.xlsx", Text: "Empty Excel file"},
			{Value: "/api/v1/catalog/bulk/template.csv", Text: "Empty CSV file"},
		},
	}},
}

// enquiryResource are the buyers' enquiries. A reply by chat or mail changes the status pending or lost to contacted.
func enquiryResource() *resource {
	return &resource{
		base: Path, word: "enquiries", title: "Enquiries", list: "list-enquiries", find: (*desk).enquiry,
		stream: "follow-enquiries", events: "enquiry",
		without: []string{"source_platform"}, columns: []string{"buyer", "message", "company", "status", "came"},
		live:    []string{"message", "status", "product", "quantity", "phone", "email", "company", "came", "notes", "who_was_told"},
		history: (*desk).enquiryHistory, watch: func(map[string]any) bool { return false },
		cells: "enquiries",
		links: func(d *desk, e map[string]any) []choice {
			if textOf(e["user_email"]) == "" || !d.permissions()["marketplace:write"] {
				return nil
			}
			subject := d.lang.tf("Your enquiry to %s", d.NameOf("companies", textOf(e["to_company_id"])))
			query := url.Values{"subject": {subject}, "body": {d.lang.tf("Hello %s,", d.buyer(e)) + "\r\n\r\n"}}
			mail := "mailto:" + url.PathEscape(textOf(e["user_email"])) + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
			return []choice{{Value: mail, Text: "Answer by mail"}}
		},
		each: []action{
			{
				name: "chat", operation: "edit-enquiry", button: "Answer by chat", did: "contacted", body: contacted, to: (*desk).toTalk,
				when: func(e map[string]any) bool { return e["contact"] != nil && unanswered(e) },
			},
			{
				name: "talk", operation: "edit-enquiry", button: "Answer by chat", to: (*desk).toTalk,
				body: func(e map[string]any) any { return map[string]any{"status": e["status"]} },
				when: func(e map[string]any) bool { return e["contact"] != nil && !unanswered(e) },
			},
			{
				name: "mail", operation: "edit-enquiry", button: "I have answered", did: "contacted", body: contacted,
				when: func(e map[string]any) bool { return e["user_email"] != nil && unanswered(e) },
			},
			{operation: "edit-enquiry", button: "Change", did: "enquiry", edit: true},
		},
	}
}

// unanswered reports whether a reply changes the status of an enquiry.
var unanswered = inStatus("pending", "lost")

func contacted(map[string]any) any { return map[string]any{"status": "contacted"} }

func (v *visit) buyer(e map[string]any) string {
	return cmp.Or(textOf(e["user_name"]), v.lang.t("Erased person"))
}

// readEnquiry returns an enquiry. The address says whether it is spam, which the list hides by default.
func (v *visit) readEnquiry(id string) (e map[string]any, refused *problem) {
	_, refused = v.ask("get-enquiry", request{vars: []string{id}, query: v.chosen("spam")}, &e)
	return e, refused
}

// enquiry returns the page's enquiry, with the contact of its phone.
func (d *desk) enquiry() (map[string]any, *problem) {
	e, refused := d.readEnquiry(d.id)
	if contact := d.chatWith(textOf(e["user_phone"])); contact != "" {
		e["contact"] = contact
	}
	return e, refused
}

// toTalk redirects to the conversation with the buyer of an enquiry.
func (d *desk) toTalk(e map[string]any) string {
	return withQuery(pagePath("inbox", d.chatWith(textOf(e["user_phone"]))), url.Values{"enquiry": {d.id}})
}

// Notified returns the notifications of an enquiry with their states.
func (d *desk) Notified(e map[string]any) (all []string) {
	for _, way := range [][2]string{{"email", "Mail to you"}, {"chat", "Chat to you"}, {"crm", "CRM"}} {
		one := inner(inner(e, "notifications"), way[0])
		if state := textOf(one["status"]); state != "" {
			all = append(all, d.lang.t(way[1])+": "+d.lang.t(wordOf(state, "sent"))+around(" (", d.lang.said(textOf(one["error"])), ")"))
		}
	}
	return all
}

// Address returns the address of the record of a list.
func (d *desk) Address(record map[string]any) string {
	return withQuery(d.of.address(d.parent, idOf(record)), d.chosen("spam"))
}

// enquiryHistory returns the status changes, newest first.
func (d *desk) enquiryHistory(map[string]any) (all []change) {
	var moves []map[string]any
	if _, refused := d.ask("get-enquiry-history", request{vars: []string{d.id}}, &moves); refused != nil {
		if refused.Status != http.StatusNotFound { // spam has no history
			d.deny(refused)
		}
		return nil
	}
	for _, m := range slices.Backward(moves) {
		c := changeOf(m, d.Actor)
		if c.Sentence = d.lang.t("The enquiry came."); m["from"] != nil {
			was, is := d.lang.t(wordOf(m["from"])), d.lang.t(wordOf(m["to"]))
			c.Sentence = d.lang.tf("%s: from %s to %s", c.Actor, was, is)
		}
		all = append(all, c)
	}
	return all
}

// chatWith returns the id of the contact with a phone. It returns "" without a contact, or if the visitor may not write to contacts.
func (v *visit) chatWith(phone string) string {
	number := strings.TrimPrefix(phone, "+")
	if number == "" || !v.permissions()["messaging:write"] {
		return ""
	}
	var found []map[string]any
	v.ask("list-messaging-contacts", request{query: url.Values{"search": {number}, "sort": {"recent"}}}, &found)
	for _, c := range found {
		if textOf(c["phone"]) == number {
			return plain(c["id"])
		}
	}
	return ""
}

// greeting returns the beginning of a reply to the enquiry in the address, nil without one.
func (v *visit) greeting() map[string]any {
	id := v.r.URL.Query().Get("enquiry")
	if id == "" || !v.permissions()["marketplace:read"] {
		return nil
	}
	e, refused := v.readEnquiry(id)
	if refused != nil {
		return nil
	}
	text := v.lang.tf("Hello %s,", v.buyer(e)) + " " + v.lang.t("thank you for your enquiry.")
	if message := textOf(e["message"]); message != "" {
		text += "\n\n> " + strings.ReplaceAll(message, "\n", "\n> ") + "\n\n"
	}
	return map[string]any{"text": text}
}

// publicPaths are further path prefixes of pages outside Path: the marketplace, links in mails, and the identity provider's redirect.
var publicPaths = []string{callback, "/products", "/companies", "/enquiries", "/contacts"}

// toContact redirects a mail's link to the contact's company.
func (v *visit) toContact() page {
	return page{redirect: Path + "/list/companies/" + textOf(v.one("get-contact", v.r.PathValue("id"))["company_id"])}
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
	return d.goods(map[string]any{"Company": d.one("get-company", textOf(p["company_id"])), "Product": p}, p, in)
}

func (d *desk) seller(in sent) page {
	c := d.found()
	if slug := textOf(c["slug"]); slug != d.id && d.r.Method == http.MethodGet {
		return page{redirect: "/companies/" + url.PathEscape(slug)}
	}
	number := d.number()
	products, total, refused := d.paged("list-products", request{query: url.Values{"company_id": {textOf(c["id"])}}}, number, offers)
	d.require(refused)
	_, older := turned(d.r.URL.EscapedPath(), nil, number, total > number*offers)
	return d.goods(map[string]any{"Company": c, "Products": products, "Older": older}, c, in)
}

// goods shows a company or a product, with the enquiry form.
func (d *desk) goods(body, of map[string]any, in sent) page {
	forms := d.forms(in, of)
	if d.failed != nil {
		return page{}
	}
	body["Form"], body["Link"], body["Asked"] = forms[0], d.r.URL.EscapedPath(), d.r.URL.Query().Get("done") == "asked"
	return page{template: "goods", title: textOf(of["name"]), status: in.status, body: body}
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
