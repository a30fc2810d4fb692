package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
)

// todo is a kind of open tasks.
type todo struct{ Count, Text, Link string }

// todos are the kinds of open tasks, with the operations that list and count them.
var todos = []struct {
	needs, operation, query string
	todo
}{
	{"ledger:read", "list-order-drafts", "page_size=1", todo{"", "Drafts to check", Path + "/drafts"}},
	{"ledger:read", "list-khata-uploads", "page_size=1&waiting=true", todo{"", "Khata pages to post", Path + "/khata"}},
	{"messaging:read", "list-messaging-contacts", "limit=1&sort=recent&unread=true", todo{"", "Unread conversations", Path + "/inbox"}},
	{"marketplace:read", "list-enquiries", "page_size=1&status=pending", todo{"", "New enquiries", Path + "/enquiries?status=pending"}},
}

// toDo returns the open tasks that the visitor may read.
func (v *visit) toDo() (waiting []todo) {
	may := v.permissions()
	for _, t := range todos {
		if !may[t.needs] {
			continue
		}
		query, _ := url.ParseQuery(t.query)
		var list any
		out, refused := v.ask(t.operation, request{query: query}, &list)
		if refused != nil {
			continue
		}
		_, total := listOf(list)
		if count := cmp.Or(out.Header.Get("X-Total-Count"), strconv.Itoa(total)); count != "0" {
			t.Count = count
			waiting = append(waiting, t.todo)
		}
	}
	return waiting
}

// today shows who owes what, and the rows of today or the state of an earlier time.
func (v *visit) today() page {
	past, query := v.past(), v.past()
	body := map[string]any{"Past": past, "Day": cmp.Or(past.Get("as_of"), v.Today())}
	if len(past) == 0 {
		body["ToDo"] = v.toDo()
		query.Set("newest", strconv.Itoa(rowsShown))
	}
	status := 0
	if v.permissions()["ledger:read"] {
		var summary map[string]any
		body["Wrong"], status = v.asked("get-books-summary", request{query: query}, &summary)
		body["Summary"] = summary
	}
	return page{template: "today", title: "Today", status: status, body: body}
}

// owings returns the amounts that are not zero.
func owings(cash, metal any) []string {
	texts := []string{charge(cash), grams(nonzero(metal))}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
