package apitest

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Filled returns the values that a browser sends for the inputs of a form.
func Filled(form string) url.Values {
	values := url.Values{}
	page, err := html.Parse(strings.NewReader(form))
	if err != nil {
		return nil
	}
	attributes := func(n *html.Node) map[string]string {
		all := map[string]string{}
		for _, a := range n.Attr {
			all[a.Key] = a.Val
		}
		return all
	}
	for n := range page.Descendants() {
		a := attributes(n)
		_, checked := a["checked"]
		switch {
		case n.Data == "input" && a["name"] != "" && (a["type"] != "checkbox" && a["type"] != "radio" && a["type"] != "file" || checked):
			values.Set(a["name"], a["value"])
		case n.Data == "textarea" && n.FirstChild != nil:
			values.Set(a["name"], n.FirstChild.Data)
		case n.Data == "option" && n.Parent.Data == "select":
			name := attributes(n.Parent)["name"]
			if _, selected := a["selected"]; selected || !values.Has(name) {
				values.Set(name, a["value"])
			}
		}
	}
	return values
}
