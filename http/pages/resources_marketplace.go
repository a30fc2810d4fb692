package pages

import "net/url"

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
