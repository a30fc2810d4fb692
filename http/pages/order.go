package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/shopspring/decimal"
)

// takadaLine is a takada in the list of an order.
type takadaLine struct {
	Link, Date string
	Items      []string
	Weight     string
}

// orderPage is the content of the page of an order.
type orderPage struct {
	orderForm // of a new takada

	Order    orderLine
	Deleted  bool
	Takadas  []takadaLine
	History  []change
	Karigars refs
	Items    refs // names of the order's items
}

func (v *visit) order() (page, error) { return v.showOrder(orderForm{}) }

// showOrder shows an order with its takadas, and the form of a new takada.
func (v *visit) showOrder(f orderForm) (page, error) {
	id, shown := v.r.PathValue("id"), orderPage{orderForm: f}
	names, err := v.orderNames()
	if err != nil {
		return page{}, err
	}
	if shown.History, err = v.recordHistory("order", id, names); err != nil {
		return page{}, err
	}
	var order map[string]any
	_, err = v.call("get-client-order", request{vars: []string{id}}, &order)
	if refused := refusal(err); refused != nil && refused.Status == http.StatusNotFound { // deleted: its history is left
		shown.Deleted, shown.Order.ID = true, id
		return page{template: "order", title: "Order", status: f.status, body: shown}, nil
	}
	if err != nil {
		return page{}, err
	}
	shown.Order, shown.Karigars = v.orderLineOf(order), names["karigar_id"]
	var takadas []map[string]any
	if _, err := v.call("list-takadas", request{query: url.Values{"client_order_id": {id}}}, &takadas); err != nil {
		return page{}, err
	}
	for _, t := range takadas {
		line := takadaLine{Link: orderPath(id) + "/takadas/" + plain(t["id"]), Date: textOf(t["date"]), Weight: grams(weightOf(t["items"]))}
		named, _ := names.texts(t).(map[string]any)
		for _, item := range itemsOf(named["items"]) {
			line.Items = append(line.Items, v.lang.line(item))
		}
		shown.Takadas = append(shown.Takadas, line)
		history, err := v.recordHistory("takada", plain(t["id"]), names)
		if err != nil {
			return page{}, err
		}
		shown.History = append(shown.History, history...)
	}
	slices.SortStableFunc(shown.History, func(a, b change) int { return cmp.Compare(position(b), position(a)) })
	form, _, err := v.recordSchema("add-takada", names)
	if err != nil {
		return page{}, err
	}
	shown.draw(form, map[string]any{"date": v.day()}, "date")
	shown.Items = suggestItems(shown.Fields, order)
	return page{template: "order", title: v.lang.tf("Order %s", id), status: f.status, body: shown}, nil
}

// suggestItems gives a datalist of the order's items to the items of a takada.
func suggestItems(fields []field, order map[string]any) refs {
	r := refs{List: "item-names"}
	for _, item := range entriesOf(order["items"]) {
		r.Choices = append(r.Choices, choice{Text: textOf(item["item_name"])})
	}
	for _, f := range fields {
		for _, line := range f.Lines {
			for i := range line {
				if line[i].Key == "item_name" {
					line[i].List = r.List
				}
			}
		}
	}
	return r
}

func position(c change) int64 {
	n, _ := strconv.ParseInt(c.Position, 10, 64)
	return n
}

// orderNames returns the references of orders and takadas.
func (v *visit) orderNames() (references, error) {
	clients, err := v.accountRefs("client")
	if err != nil {
		return nil, err
	}
	karigars, err := v.accountRefs("karigar")
	return references{"client_id": clients, "karigar_id": karigars}, err
}

// deliver adds a takada to an order, or shows what it would be.
func (v *visit) deliver() (page, error) {
	id := v.r.PathValue("id")
	names, err := v.orderNames()
	if err != nil {
		return page{}, err
	}
	form, _, err := v.recordSchema("add-takada", names)
	if err != nil {
		return page{}, err
	}
	body := form.read(v.r.PostForm, false)
	body["client_order_id"] = number(id, "")
	say := func(takada map[string]any) *preview {
		var order map[string]any
		if _, err := v.call("get-client-order", request{vars: []string{id}}, &order); err != nil {
			return &preview{}
		}
		left, _ := toDecimal(order["pending_weight"])
		return &preview{Says: []string{v.lang.orderWords(takada), v.lang.left(left.Sub(weightOf(takada["items"])))}}
	}
	return v.writeOrder("add-takada", names, request{body: body}, say, v.showOrder, func(map[string]any) (to, word string) {
		return orderPath(id), "delivered"
	})
}

// left returns the words for what is left after a delivery.
func (l language) left(weight decimal.Decimal) string {
	if weight.IsNegative() {
		return l.tf("After it %s too much is delivered.", grams(json.Number(weight.String())))
	}
	return l.tf("After it %s is left.", grams(json.Number(weight.String())))
}
