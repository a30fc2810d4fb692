package pages

import (
	"encoding/json"
	"maps"
	"slices"
)

// filled returns the body of the row that the address requests, and the side of the form. settle makes the balances zero; again
// repeats the newest row. For other addresses filled returns no body.
func (v *visit) filled(kind string, account, newest map[string]any) (body map[string]any, side string) {
	q := v.r.URL.Query()
	switch {
	case q.Get("settle") != "" && kind != "bank":
		body = settling(kind, account)
	case q.Get("again") != "":
		body = map[string]any{"in_entries": given(newest["in_entries"]), "out_entries": given(newest["out_entries"])}
	}
	switch in, out := len(entriesOf(body["in_entries"])), len(entriesOf(body["out_entries"])); {
	case in+out == 0:
		return nil, ""
	case in == 0:
		return body, "out"
	case out == 0:
		return body, "in"
	default:
		return body, "both"
	}
}

// settling returns a row with an entry for each balance that is not zero: it gives a sum owed to the account, and
// takes a sum that the account owes.
func settling(kind string, account map[string]any) map[string]any {
	body, metal := map[string]any{}, "fine_weight"
	if kind == "polisher" {
		metal = "weight"
	}
	for _, one := range []struct{ balance, field string }{{"cash_balance", "amount"}, {"crystal_balance", metal}} {
		balance, known := toDecimal(account[one.balance])
		if !known || balance.IsZero() {
			continue
		}
		side, name := "out_entries", one.field
		if balance.IsNegative() {
			if side = "in_entries"; kind == "karigar" && name == "amount" {
				name = "other"
			}
		}
		entries, _ := body[side].([]any)
		body[side] = append(entries, map[string]any{name: json.Number(balance.Abs().String())})
	}
	return body
}

// given returns the entries as a person entered them, without computed values and counter entries.
func given(side any) []any {
	entries := []any{}
	for _, e := range entriesOf(side) {
		if e["counter"] == true {
			continue
		}
		e = maps.Clone(e)
		for _, key := range append(computedOf(e), "computed") {
			delete(e, key)
		}
		entries = append(entries, e)
	}
	return entries
}

// since returns the first day of the statement since the last settlement, "" if these rows, newest first, have none. The newest row
// may be the settlement itself.
func since(rows []rowLine) string {
	for i := 1; i < len(rows); i++ {
		open := func(b balance) bool { return b.Class != "settled" }
		if len(rows[i].Balances) > 0 && !slices.ContainsFunc(rows[i].Balances, open) {
			return rows[i-1].Date
		}
	}
	return ""
}
