package book

import (
	"encoding/json"
	"slices"

	"github.com/shopspring/decimal"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// warning reports that a given value differs from its formula. The given value is stored, because the agreement on paper
// takes precedence (CONTRACT.md 6.2).
type warning struct {
	Field    string   `json:"field"`
	Message  string   `json:"message"`
	Given    unit.Sum `json:"given"`
	Computed unit.Sum `json:"computed"`
}

// Warnings are the stored warnings of a row: a JSON array, "" for none.
type Warnings string

func warningsOf(list []warning) Warnings {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}
	return Warnings(text)
}

// of returns the warnings about a side.
func (w Warnings) of(side string) (list []warning) {
	var all []warning
	if w == "" || json.Unmarshal([]byte(w), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(one warning) bool { return len(one.Field) < len(side) || one.Field[:len(side)] != side })
}

// MarshalJSON writes the array.
func (w Warnings) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("[]"), nil
	}
	return []byte(w), nil
}

// UnmarshalJSON stores the array unchanged.
func (w *Warnings) UnmarshalJSON(text []byte) error {
	*w = Warnings(text)
	if *w == "[]" || *w == "null" {
		*w = ""
	}
	return nil
}

// Bahi warns of a value that differs from its formula by more than the tolerance and by more than this share of the formula's value.
var (
	tolerance     = decimal.New(1, -2) // grams or rupees
	tolerancePart = decimal.New(5, -3)
)

// Computer computes the absent values of one entry. It warns of given values that differ much from their formulas.
type Computer struct {
	prefix   string
	before   map[string]bool // computed fields of the stored entries, with their values
	computed []string
	warnings []warning
	wrong    []fault.Field
}

// Grams returns the given weight, or the formula's value if none is given. It rounds half away from zero. A weight that
// Bahi computed earlier counts as not given if the client sends it back unchanged.
func (c *Computer) Grams(field string, given *unit.Grams, formula decimal.Decimal) *unit.Grams {
	if given != nil && !c.before[field+" "+given.String()] {
		c.compare(field, given.Decimal(), formula, unit.GramsPlaces)
		return given
	}
	rounded := formula.Round(unit.GramsPlaces)
	if c.computes(field, rounded, unit.MaxGrams.Decimal()) {
		given = new(unit.GramsOf(rounded))
	}
	return given
}

// Money returns the given amount, or the formula's value if none is given, by the rules of [Computer.Grams].
func (c *Computer) Money(field string, given *unit.Money, formula decimal.Decimal) *unit.Money {
	if sent := c.Sent(field, given); sent != nil {
		c.compare(field, sent.Decimal(), formula, unit.MoneyPlaces)
		return sent
	}
	rounded := formula.Round(unit.MoneyPlaces)
	if c.computes(field, rounded, unit.MaxMoney.Decimal()) {
		given = new(unit.MoneyOf(rounded))
	}
	return given
}

// Sent returns the given amount. It returns nil if Bahi computed the amount earlier and the client sent it back
// unchanged.
func (c *Computer) Sent(field string, given *unit.Money) *unit.Money {
	if given != nil && c.before[field+" "+given.String()] {
		return nil
	}
	return given
}

// Part is [Computer.Grams] with the formula weight x percent / 100. It returns the given value if the weight or the
// percentage is absent.
func (c *Computer) Part(field string, given, weight *unit.Grams, percent *unit.Percent) *unit.Grams {
	if weight == nil || percent == nil {
		return given
	}
	return c.Grams(field, given, Share(*weight, *percent))
}

// Share returns a percentage of a weight without rounding.
func Share(weight unit.Grams, percent unit.Percent) decimal.Decimal {
	return weight.Decimal().Mul(percent.Decimal()).Shift(-2)
}

// Wrong adds a fault of a field.
func (c *Computer) Wrong(field, message string) {
	c.wrong = append(c.wrong, fault.Field{Field: field, Message: message})
}

// Computed returns the names of the computed fields, for the field computed of the entry.
func (c *Computer) Computed() []string { return c.computed }

func (c *Computer) compare(field string, given, formula decimal.Decimal, places int32) {
	if given.Sub(formula).Abs().GreaterThan(decimal.Max(tolerance, formula.Abs().Mul(tolerancePart))) {
		c.warnings = append(c.warnings, warning{
			Field: c.prefix + field, Message: "differs from what the other values say",
			Given: unit.Sum{Decimal: given}, Computed: unit.Sum{Decimal: formula.Round(places)},
		})
	}
}

func (c *Computer) computes(field string, value, most decimal.Decimal) bool {
	switch {
	case value.IsNegative(): // Check refuses a negative value that was given
		return false
	case value.GreaterThan(most):
		c.Wrong(field, tooMany)
		return false
	}
	c.computed = append(c.computed, field)
	return true
}

// tooMany is the message for a value that is too large to be reversed (CONTRACT.md L10).
const tooMany = "the computed value is too large"

// computedIn returns the fields that the entries of a side list as computed, with their values.
func computedIn(stored Side) map[string]bool {
	var entries []map[string]json.RawMessage
	if stored.text == "" || json.Unmarshal([]byte(stored.text), &entries) != nil {
		return nil
	}
	found := map[string]bool{}
	for _, e := range entries {
		var fields []string
		if json.Unmarshal(e["computed"], &fields) == nil {
			for _, f := range fields {
				found[f+" "+string(e[f])] = true
			}
		}
	}
	return found
}
