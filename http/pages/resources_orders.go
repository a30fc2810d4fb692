package pages

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

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
		columns: []string{"order", "status", "client", "slip_number", "date", "delivery_date", "items", "ordered", "delivered", "left"},
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
				because: "It is shown in the history.",
			},
			{
				operation: "delete-client-order", button: "Delete", did: "delete", reason: true, danger: true,
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
		history: func(d *desk, _ map[string]any) []change { return d.takadaHistory(d.id) },
		when:    func(map[string]any) bool { return false }, // the page of the order has them
		each: []action{
			{
				operation: "edit-takada", button: "Correct", did: "edited-takada", edit: true, fields: []string{"date", "items"},
				preview: (*desk).sayOrder, because: "It is shown in the history.", to: (*desk).toOrder,
			},
			{
				operation: "delete-takada", button: "Delete", did: "delete", reason: true, danger: true,
				about: "The takada goes. Its history stays.", to: (*desk).toOrder,
			},
		},
	}
}

func orderPath(id string) string { return Path + "/orders/" + url.PathEscape(id) }

func (d *desk) toOrder(map[string]any) string { return orderPath(d.parent) }

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
		return accountPath(kind, id)
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

// Takadas returns a table of the takadas of an order, nil for none.
func (d *desk) Takadas() *display {
	if all := d.takadasOf(); len(all) > 0 {
		return new(d.tableOf(d.of.parts[0], all))
	}
	return nil
}

// orderHistory returns the changes of an order and of its takadas.
func (d *desk) orderHistory(order map[string]any) []change {
	all := d.newestChanges("clientorder", "read-client-order-history", d.id)
	if order == nil {
		return all
	}
	for _, t := range d.takadasOf() {
		all = append(all, d.takadaHistory(plain(t["id"]))...)
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(position(b), position(a)) })
	return all
}

func (d *desk) takadaHistory(id string) []change {
	return d.newestChanges("takada", "read-takada-history", id)
}

func position(c change) int64 {
	n, _ := strconv.ParseInt(c.Position, 10, 64)
	return n
}

// sayOrder returns the preview of an order.
func (d *desk) sayOrder(order map[string]any) *preview {
	return &preview{Says: []string{d.lang.orderWords(order)}, Warnings: warningsOf(order)}
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

// itemNames are the names of an order's items. Its takadas use the same names.
func itemNames(order map[string]any) refs {
	r := refs{List: "item-names"}
	for _, item := range entriesOf(order["items"]) {
		r.Choices = append(r.Choices, choice{Text: textOf(item["item_name"])})
	}
	return r
}

// ofItems gives the fields of orders their labels, and the datalist of the names of items. It removes the API's hints, which address
// programs.
func ofItems(fields []field, list string) {
	for i := range fields {
		f := &fields[i]
		f.Hint = ""
		switch f.Key {
		case "id":
			f.Kind = "hidden"
		case "quantity":
			f.Label = "Pieces"
		case "item_name":
			f.List = list
		}
		for _, line := range f.Lines {
			ofItems(line, list)
		}
	}
}
