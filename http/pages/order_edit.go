package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// record is an order or a takada that a page edits. The operations of both have the same names but for the noun.
type record struct {
	noun, operation, id string // noun: order or takada
	link, back          string
}

// recordOf returns the takada that the path names, else its order.
func (v *visit) recordOf() record {
	back := orderPath(v.r.PathValue("id"))
	if id := v.r.PathValue("takada"); id != "" {
		return record{"takada", "takada", id, back + "/takadas/" + url.PathEscape(id), back}
	}
	return record{"order", "client-order", v.r.PathValue("id"), back + "/edit", back}
}

// orderRecord is the content of the page that edits an order or a takada.
type orderRecord struct {
	orderForm

	Noun, ID, Link, Back, Order, Revision string
	Names                                 []refs
	History                               []change // of a takada
	Theirs                                []difference
	Deleted                               bool
	Do                                    string
}

func (v *visit) showRecord() (page, error) { return v.showRecordOf(orderForm{}) }

// showRecordOf shows the form of a record.
func (v *visit) showRecordOf(f orderForm) (page, error) {
	shown := orderRecord{orderForm: f, Do: v.r.PostForm.Get("do")}
	r := v.recordOf()
	shown.Noun, shown.ID, shown.Link, shown.Back, shown.Order = r.noun, r.id, r.link, r.back, v.r.PathValue("id")
	names, err := v.orderNames()
	if err != nil {
		return page{}, err
	}
	result := page{template: "order-edit", title: "Order", status: f.status}
	if r.noun == "takada" {
		result.title = "Takada"
		if shown.History, err = v.recordHistory("takada", r.id, names); err != nil {
			return page{}, err
		}
		slices.Reverse(shown.History)
	}
	var now map[string]any
	_, err = v.call("get-"+r.operation, request{vars: []string{r.id}}, &now)
	if refused := refusal(err); refused != nil && refused.Status == http.StatusNotFound && len(shown.History) > 0 {
		shown.Deleted = true
		result.body = shown
		return result, nil
	}
	if err != nil {
		return page{}, err
	}
	if of := now["client_order_id"]; of != nil && plain(of) != shown.Order {
		return page{}, errNoPage
	}
	form, _, err := v.recordSchema("edit-"+r.operation, names)
	if err != nil {
		return page{}, err
	}
	theirs, _ := names.texts(now).(map[string]any)
	if f.status == http.StatusPreconditionFailed {
		shown.Theirs = v.lang.recordDifferences(theirs, f.body)
	}
	first := "date"
	if r.noun == "order" {
		first, shown.Names = "client_id", []refs{names["client_id"]}
	} else {
		shown.Names = []refs{names["karigar_id"]}
	}
	shown.Revision = plain(now["revision"])
	shown.draw(form, theirs, first)
	result.body = shown
	return result, nil
}

// editRecord edits or deletes an order or a takada, or shows what an edit would do.
func (v *visit) editRecord() (page, error) {
	r := v.recordOf()
	in := request{vars: []string{r.id}}
	if v.r.PostForm.Get("do") == "delete" {
		if strings.TrimSpace(v.r.PostForm.Get("reason")) == "" {
			return v.showRecordOf(orderForm{Wrong: []string{v.lang.t("Say why.")}, status: http.StatusUnprocessableEntity})
		}
		return v.writeOrder("delete-"+r.operation, nil, in, v.sayOrder, v.showRecordOf, func(map[string]any) (to, word string) {
			return r.back, "delete"
		})
	}
	names, err := v.orderNames()
	if err != nil {
		return page{}, err
	}
	fields, _, err := v.recordSchema("edit-"+r.operation, names)
	if err != nil {
		return page{}, err
	}
	in.body = withoutEmptyItems(fields.read(v.r.PostForm, true))
	return v.writeOrder("edit-"+r.operation, names, in, v.sayOrder, v.showRecordOf, func(map[string]any) (to, word string) {
		return r.back, "edited-" + r.noun
	})
}

// recordSentences say what was done to an order or a takada.
var recordSentences = map[string]string{
	"order added": "%s added the order", "order edited": "%s edited the order", "order deleted": "%s deleted the order",
	"takada added": "%s added the takada of %s", "takada edited": "%s edited the takada of %s",
	"takada deleted": "%s deleted the takada of %s",
}

// recordHistory returns the history of an order or a takada in words, the oldest change first.
func (v *visit) recordHistory(noun, id string, names references) ([]change, error) {
	operation := "read-takada-history"
	if noun == "order" {
		operation = "read-client-order-history"
	}
	var versions []map[string]any
	if _, err := v.call(operation, request{vars: []string{id}}, &versions); err != nil {
		return nil, err
	}
	who := v.actor()
	changes := make([]change, 0, len(versions))
	for _, version := range versions {
		before, _ := names.texts(version["before"]).(map[string]any)
		after, _ := names.texts(version["after"]).(map[string]any)
		c := change{
			At: textOf(version["at"]), Actor: who(textOf(version["actor"])), Reason: textOf(version["reason"]),
			Position: textOf(version["position"]),
			Lines:    v.lang.recordDifferences(before, after),
		}
		words := []any{c.Actor}
		if noun == "takada" {
			day := after["date"]
			if day == nil {
				day = before["date"]
			}
			words = append(words, v.lang.day(textOf(day)))
		}
		c.Sentence = v.lang.tf(recordSentences[noun+" "+textOf(version["change"])], words...)
		changes = append(changes, c)
	}
	return changes, nil
}

// recordDifferences compares two versions of an order or a takada, both with texts in place of ids.
func (l language) recordDifferences(before, after map[string]any) (found []difference) {
	for _, key := range []string{"client_id", "slip_number", "date", "delivery_date"} {
		was, is := textOf(before[key]), textOf(after[key])
		if strings.HasSuffix(key, "date") {
			was, is = l.day(was), l.day(is)
		}
		if was != is {
			found = append(found, difference{l.t(labelOf(key)), was, is})
		}
	}
	return append(found, l.itemDifferences(l.t("Items"), before["items"], after["items"])...)
}

// itemDifferences compares items by their places.
func (l language) itemDifferences(what string, before, after any) []difference {
	list := func(items any) any {
		all := itemsOf(items)
		list := make([]any, len(all))
		for i := range all {
			list[i] = all[i]
		}
		return list
	}
	return l.differences(what, list(before), list(after))
}
