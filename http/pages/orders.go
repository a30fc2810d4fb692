package pages

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

func (p *Pages) ordersRoutes() {
	p.member("GET /app/orders", (*visit).orders)
	p.member("POST /app/orders", (*visit).addOrder)
	const order = "/app/orders/{id}"
	p.member("GET "+order, (*visit).order)
	p.member("GET "+order+"/edit", (*visit).showRecord)
	p.member("POST "+order+"/edit", (*visit).editRecord)
	p.member("POST "+order+"/takadas", (*visit).deliver)
	p.member("GET "+order+"/takadas/{takada}", (*visit).showRecord)
	p.member("POST "+order+"/takadas/{takada}", (*visit).editRecord)
	p.member("GET /app/drafts", (*visit).drafts)
	p.member("GET /app/drafts/{id}", (*visit).draft)
	p.member("POST /app/drafts/{id}", (*visit).editDraft)
	p.member("POST /app/drafts/{id}/delete", (*visit).deleteDraft)
}

func orderPath(id string) string { return Path + "/orders/" + url.PathEscape(id) }

// orderLine is an order in a list, or in the head of its page.
type orderLine struct {
	ID, Link, Client, ClientLink, Slip, Date, Delivery string
	Status, Class                                      string // in words; class of the chip
	Ordered, Delivered, Left                           string
	TooMuch, Late                                      bool // Left is what was delivered too much; the day of delivery is over
	Items, Warnings                                    []string
}

var statusWords = map[string]string{"open": "open", "partial": "partly delivered", "delivered": "delivered"}

func (v *visit) orderLineOf(o map[string]any) orderLine {
	status, id := textOf(o["status"]), plain(o["id"])
	line := orderLine{
		ID: id, Link: orderPath(id), Client: textOf(o["client_name"]), ClientLink: accountPath("client", plain(o["client_id"])),
		Slip: textOf(o["slip_number"]),
		Date: textOf(o["date"]), Delivery: textOf(o["delivery_date"]), Status: statusWords[status], Class: status,
		Ordered: grams(weightOf(o["items"])), Delivered: grams(o["delivered_weight"]), Left: grams(o["pending_weight"]),
		Warnings: warningsOf(o),
	}
	left, _ := toDecimal(o["pending_weight"])
	line.TooMuch = left.IsNegative()
	line.Late = status != "delivered" && line.Delivery != "" && line.Delivery < v.day()
	for _, item := range itemsOf(o["items"]) {
		line.Items = append(line.Items, v.lang.line(item))
	}
	return line
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

// itemsOf returns items with the keys of entryFields.
func itemsOf(items any) []map[string]any {
	shown := entriesOf(items)
	for i, from := range shown {
		item := map[string]any{
			"item_name": from["item_name"], "slip_number": from["slip_number"], "pieces": from["quantity"], "weight": from["weight"],
			"karigar": from["karigar_id"], "client": from["client_id"],
		}
		if charge, _ := toDecimal(from["making_charge"]); !charge.IsZero() {
			item["making_charge"] = from["making_charge"]
		}
		shown[i] = item
	}
	return shown
}

func warningsOf(record map[string]any) (messages []string) {
	for _, w := range entriesOf(record["warnings"]) {
		messages = append(messages, textOf(w["message"]))
	}
	return messages
}

// count returns a number of items in words.
func (l language) count(items int) string {
	if items == 1 {
		return l.t("1 item")
	}
	return l.tf("%s items", items)
}

// orderWords returns an order as a part of a sentence: Patel Jewellers, slip 12, 3 items, 130.750 g.
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

// pager has the numbers of the pages beside the one that is shown; 0: there is none.
type pager struct{ Newer, Older int }

// newestFirst reads a page of records, the newest first. The interface counts pages from the oldest record; so its last page has a few
// records, and the first page here has those of the page before it too.
func (v *visit) newestFirst(read func(page url.Values) (records []map[string]any, total int, err error)) ([]map[string]any, pager, error) {
	var (
		records []map[string]any
		beside  pager
	)
	_, total, err := read(url.Values{"page_size": {"1"}})
	if err != nil {
		return nil, beside, err
	}
	full := total / rowsShown
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page")) // 0 without one
	number = min(max(number, 1), max(full, 1))
	if number > 1 {
		beside.Newer = number - 1
	}
	if number < full {
		beside.Older = number + 1
	}
	for n := max(1, full-number+1); n <= full || number == 1 && n == full+1; n++ {
		some, _, err := read(url.Values{"page": {strconv.Itoa(n)}, "page_size": {strconv.Itoa(rowsShown)}})
		if err != nil {
			return nil, beside, err
		}
		records = append(records, some...)
		if number != 1 {
			break
		}
	}
	slices.Reverse(records)
	return records, beside, nil
}

// ordersPage is the content of the list of orders.
type ordersPage struct {
	orderForm

	Orders      []orderLine
	Pages       pager
	Client      string // as the visitor typed it
	ClientWrong string
	Clients     refs
	PDF         string
	Made        []orderLine // of the draft that was converted
	Open        bool        // the form
}

func (v *visit) orders() (page, error) { return v.showOrders(orderForm{}) }

// showOrders lists the orders, with the form of a new one.
func (v *visit) showOrders(f orderForm) (page, error) {
	shown := ordersPage{orderForm: f, Open: f.body != nil}
	clients, err := v.accountRefs("client")
	if err != nil {
		return page{}, err
	}
	shown.Clients, shown.Client = clients, strings.TrimSpace(v.r.URL.Query().Get("client"))
	query := url.Values{}
	if shown.Client != "" {
		id, wrong := clients.find(v.lang, shown.Client)
		if shown.ClientWrong = wrong; wrong == "" {
			query.Set("client_id", id)
		}
	}
	pdf, err := v.request("get-client-orders-pdf", request{query: query})
	if err != nil {
		return page{}, err
	}
	shown.PDF = pdf.URL.String()
	if err := v.listOrders(query, &shown); err != nil {
		return page{}, err
	}
	for _, id := range v.r.URL.Query()["made"] {
		if _, err := strconv.ParseUint(id, 10, 63); err == nil { // no other text of an address is shown
			shown.Made = append(shown.Made, orderLine{ID: id, Link: orderPath(id)})
		}
	}
	form, _, err := v.recordSchema("add-client-order", references{"client_id": clients})
	if err != nil {
		return page{}, err
	}
	shown.draw(form, map[string]any{"date": v.day()}, "client_id")
	return page{template: "orders", title: "Orders", status: f.status, body: shown}, nil
}

const itemsShown = 3 // of an order in the list

func (v *visit) listOrders(query url.Values, shown *ordersPage) error {
	var list struct {
		Items []map[string]any `json:"items"`
		Total int              `json:"total"`
	}
	orders, beside, err := v.newestFirst(func(page url.Values) ([]map[string]any, int, error) {
		maps.Copy(page, query)
		list.Items = nil // or the decoder fills the records of the page before
		_, err := v.call("list-client-orders", request{query: page}, &list)
		return list.Items, list.Total, err
	})
	shown.Pages = beside
	for _, o := range orders {
		line := v.orderLineOf(o)
		if more := len(line.Items) - itemsShown; more > 1 {
			line.Items = append(line.Items[:itemsShown], v.lang.tf("and %s more", more))
		}
		shown.Orders = append(shown.Orders, line)
	}
	return err
}

// recordSchema returns the schema of an operation's body, and the form's, which has texts for references and no ids of items.
func (v *visit) recordSchema(operation string, names references) (form, of *schema, err error) {
	of, err = v.schemaOf(operation)
	if err != nil {
		return nil, nil, err
	}
	return names.schema(of.without("client_order_id")), of, nil
}

// arranged puts a field first, and gives the fields of orders their labels. The hints of the interface are for programs.
func arranged(fields []field, first string) []field {
	slices.SortStableFunc(fields, func(a, b field) int {
		return cmp.Compare(btoi(a.Key != first), btoi(b.Key != first))
	})
	for i := range fields {
		f := &fields[i]
		f.Hint = ""
		switch f.Key {
		case "id":
			f.Kind = "hidden"
		case "quantity":
			f.Label = "Pieces"
		}
		for _, line := range f.Lines {
			arranged(line, "")
		}
	}
	return fields
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// withoutEmptyItems drops the items of a body that have an id alone: their inputs were emptied.
func withoutEmptyItems(body map[string]any) map[string]any {
	if items, is := body["items"].([]any); is {
		body["items"] = slices.DeleteFunc(items, func(item any) bool {
			fields, _ := item.(map[string]any)
			return len(fields) == 1 && fields["id"] != nil
		})
	}
	return body
}

// addOrder adds an order, or shows what it would be.
func (v *visit) addOrder() (page, error) {
	clients, err := v.accountRefs("client")
	if err != nil {
		return page{}, err
	}
	names := references{"client_id": clients}
	form, _, err := v.recordSchema("add-client-order", names)
	if err != nil {
		return page{}, err
	}
	body := withoutEmptyItems(form.read(v.r.PostForm, false))
	return v.writeOrder("add-client-order", names, request{body: body}, v.sayOrder, v.showOrders, func(made map[string]any) (to, word string) {
		return orderPath(plain(made["id"])), "added"
	})
}

// orderForm is the form of an order or of a takada.
type orderForm struct {
	Fields      []field
	Wrong       []string
	Preview     *preview
	Key, Reason string

	body   map[string]any // as it was sent; nil: it was not
	faults map[string]string
	status int
}

// draw draws the inputs, with what was sent or with the values of now.
func (f *orderForm) draw(form *schema, now map[string]any, first string) {
	if f.body != nil {
		now = f.body
	}
	f.Fields = arranged(form.fields("", now, f.faults, 1), first)
	f.Wrong = append(f.Wrong, misplaced(f.Fields, f.faults)...)
}

// writeOrder runs the operation of a form, or tries it. Again shows the form that was tried or refused; saved returns the address and the
// word of the confirmation.
func (v *visit) writeOrder(operation string, names references, in request, say func(map[string]any) *preview,
	again func(orderForm) (page, error), saved func(map[string]any) (to, word string),
) (page, error) {
	form := v.r.PostForm
	in.key, in.match, in.dry = form.Get("key"), form.Get("revision"), form.Get("preview") != ""
	in.reason = strings.TrimSpace(form.Get("reason"))
	var record map[string]any
	out, err := v.callNaming(operation, names, in, &record)
	refused := refusal(err)
	if err != nil && refused == nil {
		return page{}, err
	}
	f := orderForm{Key: in.key, Reason: in.reason, faults: refused.faults()}
	f.body, _ = in.body.(map[string]any)
	switch {
	case in.dry && refused != nil:
		f.Preview = v.refusedPreview(refused)
	case in.dry:
		f.Preview = say(record)
	case refused != nil:
		f.Wrong, f.status = general(refused), refused.Status
	default:
		to, word := saved(record)
		return page{redirect: after(out, to, word)}, nil
	}
	if form.Get("preview") == "part" {
		return page{template: "order", part: "preview", body: f.Preview}, nil
	}
	return again(f)
}

// general returns the detail of a problem without faults of fields.
func general(p *problem) []string {
	if len(p.Errors) > 0 {
		return nil
	}
	return []string{p.Detail}
}

// sayOrder returns the preview of an order.
func (v *visit) sayOrder(order map[string]any) *preview {
	return &preview{Says: []string{v.lang.orderWords(order)}, Warnings: warningsOf(order)}
}

// pathWords returns the words of the JSON path of a field: items[1].weight is line 2, Weight.
func (l language) pathWords(path string) string {
	array, rest, in := strings.Cut(path, "[")
	digits, key, of := strings.Cut(rest, "].")
	n, err := strconv.Atoi(digits)
	if !in || !of || err != nil {
		return l.t(fieldLabel(cmp.Or(array, path)))
	}
	return l.tf("line %s", n+1) + ", " + l.t(fieldLabel(key))
}

// fieldLabel returns the label of a field of an order.
func fieldLabel(key string) string {
	if key == "quantity" {
		return "Pieces"
	}
	return labelOf(key)
}
