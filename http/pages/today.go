package pages

import (
	"cmp"
	"maps"
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

// todayPage is the content of the first page.
type todayPage struct {
	Day           string
	AsOf, KnownAt string // for an earlier state
	ToDo          []todo
	Owed          []map[string]any // a summary of each kind of accounts
	None          bool             // the workspace has no accounts
	Rows          []map[string]any
	Wrong         []string
}

// today shows who owes what, and the rows of today.
func (v *visit) today() page {
	past := v.past()
	shown := todayPage{Day: v.Today(), AsOf: past.Get("as_of"), KnownAt: past.Get("known_at")}
	if shown.AsOf != "" {
		shown.Day = shown.AsOf
	}
	if len(past) == 0 {
		shown.ToDo = v.toDo()
	}
	if !v.permissions()["ledger:read"] {
		return page{template: "today", title: "Today", body: shown}
	}
	var summary struct {
		Kinds []map[string]any
		Day   struct{ Newest []map[string]any }
	}
	query := maps.Clone(past)
	if len(past) == 0 {
		query.Set("newest", strconv.Itoa(rowsShown))
	}
	_, refused := v.ask("get-books-summary", request{query: query}, &summary)
	switch {
	case refused != nil && len(past) > 0:
		shown.Wrong = []string{detail(refused)}
		return page{template: "today", title: "Today", status: refused.Status, body: shown}
	case refused != nil:
		return v.deny(refused)
	}
	shown.Owed, shown.Rows = summary.Kinds, summary.Day.Newest
	shown.None = !slices.ContainsFunc(shown.Owed, func(o map[string]any) bool { return plain(o["accounts"]) != "0" })
	return page{template: "today", title: "Today", body: shown}
}

// owings returns the amounts that are not zero.
func owings(cash, metal any) []string {
	texts := []string{charge(cash), grams(nonzero(metal))}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
