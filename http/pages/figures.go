package pages

import (
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"bahi/domain/unit"
)

// toDecimal returns the number of a JSON value. It reports false for values that are no numbers, null included.
func toDecimal(n any) (decimal.Decimal, bool) {
	if n == nil {
		return decimal.Zero, false
	}
	d, err := decimal.NewFromString(fmt.Sprint(n))
	return d, err == nil && max(d.Exponent(), -d.Exponent()) < 30 // formatting 1e999999999 takes too many digits
}

// unsigned returns the absolute value with Indian grouping, "" for a value that is no number. The sign is shown in words.
func unsigned(n any, places int32) string {
	d, ok := toDecimal(n)
	if !ok {
		return ""
	}
	return unit.Indian(d.Abs().StringFixed(places))
}

// rupees formats an amount without its sign, as in ₹3,12,400.00.
func rupees(n any) string { return around("₹", unsigned(n, unit.MoneyPlaces), "") }

// charge formats an amount as rupees does, "" for zero.
func charge(n any) string { return rupees(nonzero(n)) }

// nonzero returns a number, nil for zero.
func nonzero(n any) any {
	if d, _ := toDecimal(n); d.IsZero() {
		return nil
	}
	return n
}

// grams formats a weight without its sign, as in 1,204.500 g.
func grams(n any) string { return around("", unsigned(n, unit.GramsPlaces), " g") }

// percent formats a percentage with its decimal places, as in 99.5 %.
func percent(n any) string { return around("", plain(n), " %") }

// plain formats a number with its sign and decimal places.
func plain(n any) string {
	d, ok := toDecimal(n)
	if !ok {
		return ""
	}
	return d.String()
}

func around(before, figure, after string) string {
	if figure == "" {
		return ""
	}
	return before + figure + after
}

// monthNames are the short names of the months.
var monthNames = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// day formats a date such as 2025-03-01 as 01 Mar 2025. It returns other texts unchanged.
func (l language) day(date string) string {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return date
	}
	return l.dayOf(t)
}

func (l language) dayOf(t time.Time) string {
	return fmt.Sprintf("%02d %s %d", t.Day(), l.t(monthNames[t.Month()-1]), t.Year())
}

// moment formats an RFC 3339 time in a zone, as in 01 Mar 2025, 14:05. It returns other texts unchanged.
func (l language) moment(at string, zone *time.Location) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	t = t.In(zone)
	return l.dayOf(t) + t.Format(", 15:04")
}

// balance is a balance of an account with the words and the CSS class of its sign.
type balance struct{ Figure, Words, Class string }

// owed returns the words and the CSS class of a position. Without a position, the balance is that of a bank.
func owed(position string, figure any) (words, class string) {
	switch position {
	case "we_owe":
		return "you owe", "owe"
	case "they_owe":
		return "owes you", "owed"
	case "settled":
		return "settled", "settled"
	}
	if d, _ := toDecimal(figure); d.IsNegative() {
		return "overdrawn", "owe"
	}
	return "", ""
}

// signed returns the words for the sign of a balance, which is IN minus OUT.
func (l language) signed(kind string, n any) string {
	d, known := toDecimal(n)
	position := "settled"
	switch {
	case !known:
		return ""
	case kind == "bank":
		position = ""
	case d.IsPositive():
		position = "we_owe"
	case d.IsNegative():
		position = "they_owe"
	}
	words, _ := owed(position, n)
	return l.t(words)
}

// balancesOf returns the balances of an account, or of a row, in the order cash, metal. It omits those that the API omitted.
func (l language) balancesOf(kind string, account map[string]any) []balance {
	if kind == "bank" {
		figure, n := rupees(account["balance"]), account["balance"]
		if figure == "" {
			return nil
		}
		words, class := owed("", n)
		if words == "overdrawn" {
			figure = "−" + figure
		}
		return []balance{{figure, l.t(words), class}}
	}
	var found []balance
	add := func(figure string, position any) {
		if words, class := owed(textOf(position), nil); figure != "" && words != "" {
			found = append(found, balance{figure, l.t(words), class})
		}
	}
	add(rupees(account["cash_balance"]), account["cash_position"])
	weight := grams(account["crystal_balance"])
	switch {
	case weight == "":
	case kind == "polisher":
		weight = l.tf("%s weight", weight)
	default:
		weight = l.tf("%s fine", weight)
	}
	add(weight, account["crystal_position"])
	return found
}

// textOf returns a JSON value as text, "" for null.
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}
