package pages

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// orderResource are the orders of clients, with the takadas that were delivered for each.
func orderResource() *resource {
	fields := []string{"client_id", "date", "delivery_date", "slip_number", "items"}
	takada := takadaResource()
	return &resource{
		base: Path, word: "orders", title: "Orders", list: "list-client-orders", get: "get-client-order", oldest: true,
		pdf:  "get-client-orders-pdf",
		refs: map[string]string{"client_id": "client", "karigar_id": "karigar"}, cells: "orders",
		weights: []string{"ordered", "delivered", "left"},
		without: []string{"slip_number"},
		columns: []string{"order", "status", "client", "slip_number", "date", "delivery_date", "items", "ordered", "left"},
		live: []string{
			"client", "status", "date", "slip_number", "delivery_date", "ordered", "delivered", "left", "items", "warnings", "takadas",
		},
		history: (*desk).orderHistory,
		actions: []action{{
			operation: "add-client-order", button: "Add an order", did: "added", fields: fields, starts: startsToday, preview: (*desk).sayOrder,
			to: func(d *desk, made map[string]any) string { return d.of.address("", plain(made["id"])) },
		}},
		each: []action{
			{
				operation: "add-takada", button: "Deliver", did: "delivered", another: true, fields: []string{"date", "items"}, starts: startsToday,
				preview: (*desk).sayTakada,
			},
			{
				operation: "edit-client-order", button: "Correct", did: "edited-order", edit: true, fields: fields, preview: (*desk).sayOrder,
				reason: &reasonInput{Hint: "It is shown in the history."},
			},
			{
				operation: "delete-client-order", button: "Delete", did: "delete", reason: required, danger: true,
				about: "The order and its takadas go. Their history stays.",
			},
		},
		parts: []*resource{takada},
	}
}

func takadaResource() *resource {
	return &resource{
		word: "takadas", title: "Takadas", by: "client_order_id", list: "list-takadas", get: "get-takada",
		refs: map[string]string{"karigar_id": "karigar"}, cells: "takadas", weights: []string{"weight"},
		columns: []string{"takada", "date", "items", "weight"}, live: []string{"date", "items", "weight"},
		history: func(d *desk, _ map[string]any) []change { return d.changes("takada", "read-takada-history", d.id) },
		when:    func(map[string]any) bool { return false }, // the page of the order has them
		each: []action{
			{
				operation: "edit-takada", button: "Correct", did: "edited-takada", edit: true, fields: []string{"date", "items"},
				preview: (*desk).sayOrder, reason: &reasonInput{Hint: "It is shown in the history."}, to: (*desk).toOrder,
			},
			{
				operation: "delete-takada", button: "Delete", did: "delete", reason: required, danger: true,
				about: "The takada goes. Its history stays.", to: (*desk).toOrder,
			},
		},
	}
}

func (d *desk) toOrder(map[string]any) string { return pagePath("orders", d.parent) }

// startsToday starts a new order, or a takada of an order.
func startsToday(d *desk, order map[string]any) map[string]any {
	values := map[string]any{"date": d.Today()}
	if order != nil {
		values["client_order_id"] = order["id"]
	}
	return values
}

const itemsShown = 3 // of an order in the list

// AccountOf returns the address of the account that the record of the page references, "" in a list.
func (d *desk) AccountOf(kind string, record map[string]any) string {
	if id, wrong := d.refs[kind+"_id"].find(d.lang, textOf(record[kind+"_id"])); wrong == "" && d.id != "" {
		return pagePath("accounts", kind, id)
	}
	return ""
}

// Items returns the items of an order or a takada, a line for each. The list of orders shows only the first ones.
func (d *desk) Items(record map[string]any) (lines []string) {
	for _, item := range entriesOf(record["items"]) {
		lines = append(lines, d.lang.line(item))
	}
	if more := len(lines) - itemsShown; more > 1 && d.id == "" && d.of.parent == nil {
		lines = append(lines[:itemsShown], d.lang.tf("and %s more", more))
	}
	return lines
}

// takadasOf returns the takadas of the order of the page.
func (d *desk) takadasOf() (all []map[string]any) {
	d.read("list-takadas", request{query: url.Values{"client_order_id": {d.id}}}, &all)
	return all
}

// Takadas returns a table of the takadas of an order.
func (d *desk) Takadas() display { return d.tableOf(d.of.parts[0], d.takadasOf()) }

// orderHistory returns the changes of an order and of its takadas.
func (d *desk) orderHistory(order map[string]any) []change {
	all := d.changes("clientorder", "read-client-order-history", d.id)
	if order == nil {
		return all
	}
	for _, t := range d.takadasOf() {
		all = append(all, d.changes("takada", "read-takada-history", plain(t["id"]))...)
	}
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(len(b.Position)-len(a.Position), strings.Compare(b.Position, a.Position))
	})
	return all
}

// sayOrder returns the preview of an order.
func (d *desk) sayOrder(order map[string]any) *preview {
	return &preview{Says: []string{d.lang.orderWords(order)}, Warnings: d.lang.warnings(order["warnings"])}
}

// sayTakada returns the preview of a takada, with the items left after it.
func (d *desk) sayTakada(takada map[string]any) *preview {
	p := d.sayOrder(takada)
	var order map[string]any
	if _, refused := d.ask("get-client-order", request{vars: []string{d.id}}, &order); refused == nil {
		left, _ := toDecimal(order["pending_weight"])
		p.Says = append(p.Says, d.lang.left(left.Sub(weightOf(takada["items"]))))
	}
	return p
}

// left returns the words for what is left after a delivery.
func (l language) left(weight decimal.Decimal) string {
	if weight.IsNegative() {
		return l.tf("After it %s too much is delivered.", grams(json.Number(weight.String())))
	}
	return l.tf("After it %s is left.", grams(json.Number(weight.String())))
}

// ofItems gives the fields of orders their labels, and the datalist of the names of items. It removes the API's hints, which address
// programs.
func ofItems(fields []field, list string) {
	each(fields, func(f *field) {
		f.Hint = ""
		switch f.Key {
		case "id":
			f.Kind = "hidden"
		case "quantity":
			f.Label = "Pieces"
		case "item_name":
			f.List = list
		}
	})
}

// weightOf returns the weight of all items.
func weightOf(items any) decimal.Decimal {
	sum := decimal.Zero
	for _, item := range entriesOf(items) {
		weight, _ := toDecimal(item["weight"])
		sum = sum.Add(weight)
	}
	return sum
}

// count returns a number of items as display text.
func (l language) count(items int) string {
	if items == 1 {
		return l.t("1 item")
	}
	return l.tf("%s items", items)
}

// orderWords describes an order within a sentence: Patel Jewellers, slip 12, 3 items, 130.750 g.
func (l language) orderWords(o map[string]any) string {
	var parts []string
	if client := textOf(o["client_name"]); client != "" {
		parts = append(parts, client)
	}
	if slip := textOf(o["slip_number"]); slip != "" {
		parts = append(parts, l.tf("slip %s", slip))
	}
	parts = append(parts, l.count(len(entriesOf(o["items"]))), grams(weightOf(o["items"])))
	return strings.Join(parts, ", ")
}

// number returns the number of the page of a list, from 1.
func (v *visit) number() int {
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page")) // 0 without one
	return max(number, 1)
}

// turned returns the addresses of the pages beside the page of a list with a number, "" for none.
func turned(address string, query url.Values, number int, more bool) (newer, older string) {
	at := func(number int) string {
		to := url.Values{}
		maps.Copy(to, query)
		to.Set("page", strconv.Itoa(number))
		return address + "?" + to.Encode()
	}
	if number > 1 {
		newer = at(number - 1)
	}
	if more {
		older = at(number + 1)
	}
	return newer, older
}

// older reports whether a list that begins with the oldest record has another page.
func (v *visit) older(total int) bool { return v.number() < total/rowsShown }

// withoutEmptyItems drops items that have only an id, because the user cleared their inputs.
func withoutEmptyItems(body map[string]any) map[string]any {
	if items, is := body["items"].([]any); is {
		body["items"] = slices.DeleteFunc(items, func(item any) bool {
			fields, _ := item.(map[string]any)
			return len(fields) == 1 && fields["id"] != nil
		})
	}
	return body
}

// general returns the detail of a problem that has no field errors.
func general(p *problem) []string {
	if len(p.Errors) > 0 {
		return nil
	}
	return []string{p.Detail}
}

// pathWords returns the display text of a field's JSON path: items[1].weight is line 2, Weight, and items[1] is Items, line 2.
func (l language) pathWords(path string) string {
	array, n, key := lineAt(path)
	name := l.t(fieldLabel(cmp.Or(array, path)))
	switch {
	case n < 0:
		return name
	case key == "":
		return l.tf("%s, line %s", name, n+1)
	}
	return l.tf("line %s", n+1) + ", " + l.t(fieldLabel(key))
}

// lineAt returns the parts of the path of a field in an array: items[1].weight. Without a number, n is -1 and the key is empty.
func lineAt(path string) (array string, n int, key string) {
	array, rest, _ := strings.Cut(path, "[")
	digits, key, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return array, -1, ""
	}
	return array, n, strings.TrimPrefix(key, ".")
}

// fieldLabel returns the label of a field of an order.
func fieldLabel(key string) string {
	if key == "quantity" {
		return "Pieces"
	}
	return labelOf(key)
}

// changes describes the history that an operation reads, newest change first.
func (d *desk) changes(noun, operation string, vars ...string) []change {
	var versions []map[string]any
	d.read(operation, request{vars: vars}, &versions)
	return d.lang.history(noun, versions, d.refs, d.Actor)
}
