package pages

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// owedOf has the sums that the accounts of a kind owe, and are owed.
type owedOf struct {
	Kind, Name, Accounts  string
	WeOwe, TheyOwe, InAll []string
}

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
	Owed          []owedOf
	None          bool // the workspace has no accounts
	Rows          []rowLine
	Wrong         []string
}

// today shows who owes what, and the rows of today.
func (v *visit) today() page {
	past := v.past()
	shown := todayPage{Day: v.day(), AsOf: past.Get("as_of"), KnownAt: past.Get("known_at")}
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
		Kinds []struct {
			Kind     string         `json:"kind"`
			Accounts any            `json:"accounts"`
			Cash     map[string]any `json:"cash"`
			Crystal  map[string]any `json:"crystal"`
		} `json:"kinds"`
		Day struct {
			Newest []enteredRow `json:"newest"`
		} `json:"day"`
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
	for _, k := range summary.Kinds {
		o := owedOf{Kind: k.Kind, Name: kindName(k.Kind), Accounts: plain(k.Accounts)}
		if k.Kind == "bank" {
			o.InAll = []string{v.held(k.Cash["net"])}
		} else {
			o.WeOwe = owings(k.Cash["we_owe"], k.Crystal["we_owe"])
			o.TheyOwe = owings(k.Cash["they_owe"], k.Crystal["they_owe"])
			if len(o.WeOwe)+len(o.TheyOwe) == 0 {
				o.InAll = []string{v.lang.t("settled")}
			}
		}
		shown.Owed = append(shown.Owed, o)
	}
	shown.None = !slices.ContainsFunc(shown.Owed, func(o owedOf) bool { return o.Accounts != "0" })
	for _, r := range summary.Day.Newest {
		shown.Rows = append(shown.Rows, v.entered(r))
	}
	return page{template: "today", title: "Today", body: shown}
}

// owings returns the amounts that are not zero.
func owings(cash, metal any) (texts []string) {
	if amount, known := toDecimal(cash); known && !amount.IsZero() {
		texts = append(texts, rupees(cash))
	}
	if weight, known := toDecimal(metal); known && !weight.IsZero() {
		texts = append(texts, grams(metal))
	}
	return texts
}
