package pages

import (
	"net/url"
	"slices"
)

// owedOf is what the accounts of a kind owe, and are owed.
type owedOf struct {
	Kind, Name, Accounts  string
	WeOwe, TheyOwe, InAll []string
}

// todayPage is the content of the first page.
type todayPage struct {
	Day    string
	Owed   []owedOf
	Rows   []rowLine
	Closes string
}

// today shows who owes what, and the rows of today.
func (v *visit) today() (page, error) {
	shown := todayPage{Day: v.day()}
	if !v.permissions()["ledger:read"] {
		return page{template: "today", title: "Today", body: shown}, nil
	}
	var summary struct {
		Kinds []struct {
			Kind     string         `json:"kind"`
			Accounts any            `json:"accounts"`
			Cash     map[string]any `json:"cash"`
			Crystal  map[string]any `json:"crystal"`
		} `json:"kinds"`
	}
	if _, err := v.call("get-books-summary", request{}, &summary); err != nil {
		return page{}, err
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
	var book struct {
		Days []struct {
			Rows []enteredRow `json:"rows"`
		} `json:"days"`
	}
	if _, err := v.call("get-daybook", request{query: url.Values{"from": {shown.Day}, "to": {shown.Day}}}, &book); err != nil {
		return page{}, err
	}
	for _, day := range book.Days {
		for _, r := range slices.Backward(day.Rows) {
			if shown.Rows = append(shown.Rows, v.entered(r)); len(shown.Rows) == rowsShown {
				break
			}
		}
	}
	return page{template: "today", title: "Today", body: shown}, nil
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
