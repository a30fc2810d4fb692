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
		refs: map[string]string{"client_id": "client", "karigar_id": "karigar"}, cells: orderCells,
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
		refs: map[string]string{"karigar_id": "karigar"}, cells: takadaCells,
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
	values := map[string]any{"date": d.day()}
	if order != nil {
		values["client_order_id"] = order["id"]
	}
	return values
}

const itemsShown = 3 // of an order in the list

var orderCells = map[string]cell{
	"order": func(d *desk, o map[string]any) display {
		id := plain(o["id"])
		return display{Text: d.lang.tf("Order %s", cmp.Or(id, d.id)), Link: orderPath(id)}
	},
	"status": func(d *desk, o map[string]any) display {
		return display{Text: d.lang.t(english["orders"][textOf(o["status"])]), Chip: textOf(o["status"])}
	},
	"client": func(d *desk, o map[string]any) display {
		one := display{Text: textOf(o["client_name"])}
		if id, wrong := d.refs["client_id"].find(d.lang, textOf(o["client_id"])); wrong == "" && d.id != "" {
			one.Link = accountPath("client", id)
		}
		return one
	},
	"delivery_date": func(d *desk, o map[string]any) display {
		day := textOf(o["delivery_date"])
		if day == "" || day >= d.day() || o["status"] == "delivered" {
			return display{Day: day}
		}
		return display{Text: d.lang.day(day) + " · " + d.lang.t("late"), Chip: "late"}
	},
	"items": func(d *desk, o map[string]any) display {
		one := d.items(o)
		if more := len(one.Lines) - itemsShown; more > 1 && d.id == "" {
			one.Lines = append(one.Lines[:itemsShown], entryLine{Text: d.lang.tf("and %s more", more)})
		}
		return one
	},
	"ordered":   func(_ *desk, o map[string]any) display { return weighed(weightOf(o["items"])) },
	"delivered": func(_ *desk, o map[string]any) display { return weighed(o["delivered_weight"]) },
	"left": func(d *desk, o map[string]any) display {
		one := weighed(o["pending_weight"])
		if left, _ := toDecimal(o["pending_weight"]); left.IsNegative() {
			one.Text = d.lang.tf("%s too much", one.Text)
		}
		return one
	},
	"warnings": func(d *desk, o map[string]any) (all display) {
		for _, w := range warningsOf(o) {
			all.Items = append(all.Items, display{Text: d.lang.said(w)})
		}
		return all
	},
	"takadas": (*desk).takadas,
}

var takadaCells = map[string]cell{
	"takada": func(d *desk, t map[string]any) display {
		id := plain(t["id"])
		return display{Text: d.lang.tf("Takada %s", id), Link: d.of.address(d.parent, id)}
	},
	"items":  (*desk).items,
	"weight": func(_ *desk, t map[string]any) display { return weighed(weightOf(t["items"])) },
}

// items returns the items of an order or a takada, a line for each.
func (d *desk) items(record map[string]any) (all display) {
	for _, item := range entriesOf(record["items"]) {
		all.Lines = append(all.Lines, entryLine{Text: d.lang.line(item)})
	}
	return all
}

// takadasOf returns the takadas of the order of the page.
func (d *desk) takadasOf() (all []map[string]any) {
	d.read("list-takadas", request{query: url.Values{"client_order_id": {d.id}}}, &all)
	return all
}

// takadas returns a table of the takadas of an order.
func (d *desk) takadas(map[string]any) display {
	all := d.takadasOf()
	if len(all) == 0 {
		return display{Text: d.lang.t("Nothing was delivered yet.")}
	}
	return d.tableOf(d.of.parts[0], all)
}

// weighed returns the value of a column of weights.
func weighed(n any) display { return display{Text: grams(n), Class: "n weight"} }

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
