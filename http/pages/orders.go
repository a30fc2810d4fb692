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

// weightOf returns the weight of all items.
func weightOf(items any) decimal.Decimal {
	sum := decimal.Zero
	for _, item := range entriesOf(items) {
		weight, _ := toDecimal(item["weight"])
		sum = sum.Add(weight)
	}
	return sum
}

func warningsOf(record map[string]any) (messages []string) {
	for _, w := range entriesOf(record["warnings"]) {
		messages = append(messages, textOf(w["message"]))
	}
	return messages
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

// newestFirst reads a page of records, newest first. The API counts pages from the oldest record, so its last page may be short. The
// first page here therefore includes the API's last two pages.
func (v *visit) newestFirst(read func(number, size int) ([]map[string]any, int)) (records []map[string]any, total int) {
	_, total = read(1, 1)
	full, number := total/rowsShown, v.number()
	number = min(number, max(full, 1))
	for n := max(1, full-number+1); n <= full || number == 1 && n == full+1; n++ {
		some, _ := read(n, rowsShown)
		records = append(records, some...)
		if number != 1 {
			break
		}
	}
	slices.Reverse(records)
	return records, total
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

// recordSchema returns the form schema of an operation's body, with texts for references and without ids of items.
func (v *visit) recordSchema(operation string, names references) *schema {
	return names.schema(v.schemaOf(operation).without("client_order_id"))
}

// arranged puts a field first, and gives the fields of orders their labels.
func arranged(fields []field, first string) []field {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.Key == first }); i > 0 {
		f := fields[i]
		copy(fields[1:], fields[:i])
		fields[0] = f
	}
	ofItems(fields, "")
	return fields
}

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

// pathWords returns the display text of a field's JSON path: items[1].weight is line 2, Weight.
func (l language) pathWords(path string) string {
	array, n, key := lineAt(path)
	if key == "" {
		return l.t(fieldLabel(cmp.Or(array, path)))
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

// newestChanges describes the history of an order or a takada, newest change first.
func (d *desk) newestChanges(noun, operation, id string) []change {
	var versions []map[string]any
	d.read(operation, request{vars: []string{id}}, &versions)
	return d.lang.history(noun, versions, d.refs, d.actor)
}
