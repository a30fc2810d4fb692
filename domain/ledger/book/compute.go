package book

import (
	"encoding/json"
	"slices"

	"github.com/shopspring/decimal"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Warning tells that a given value differs from what its formula says. The given one is in the books: the
// agreement on paper is the truth (CONTRACT.md 6.2).
type Warning struct {
	Field    string          `json:"field"`
	Message  string          `json:"message"`
	Given    decimal.Decimal `json:"given"`
	Computed decimal.Decimal `json:"computed"`
}

// MarshalJSON writes numbers as numbers.
func (w Warning) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Field    string      `json:"field"`
		Message  string      `json:"message"`
		Given    json.Number `json:"given"`
		Computed json.Number `json:"computed"`
	}{w.Field, w.Message, json.Number(w.Given.String()), json.Number(w.Computed.String())})
}

// Warnings are a row's warnings as the log has them: a JSON array, "" for none.
type Warnings string

func warningsOf(list []Warning) Warnings {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts and numbers always can be
	}
	return Warnings(text)
}

// of returns those of the warnings that are about a side.
func (w Warnings) of(side string) (list []Warning) {
	var all []Warning
	if w == "" || json.Unmarshal([]byte(w), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(one Warning) bool { return len(one.Field) < len(side) || one.Field[:len(side)] != side })
}

// MarshalJSON writes the array.
func (w Warnings) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("[]"), nil
	}
	return []byte(w), nil
}

// UnmarshalJSON keeps the array as it is.
func (w *Warnings) UnmarshalJSON(text []byte) error {
	*w = Warnings(text)
	if *w == "[]" || *w == "null" {
		*w = ""
	}
	return nil
}

// A value that differs from its formula by more than this much, and this part of it, is warned of.
var (
	tolerance     = decimal.New(1, -2) // grams or rupees
	tolerancePart = decimal.New(5, -3)
)

// Computer computes the values of one entry that were not given, and warns of given ones that are far from
// what they should be.
type Computer struct {
	prefix   string
	before   map[string]bool // fields that were computed with these values in the stored entries
	computed []string
	warnings []Warning
	wrong    []fault.Field
}

// Grams returns the given weight, or what the formula says where none is given: rounded half away from zero.
// A weight that the service computed earlier, and that comes back as it was, counts as not given.
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

// Money returns the given amount, or what the formula says where none is given, as [Computer.Grams] does.
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

// Sent returns the given amount, nil where the service computed it earlier and it comes back as it was.
func (c *Computer) Sent(field string, given *unit.Money) *unit.Money {
	if given != nil && c.before[field+" "+given.String()] {
		return nil
	}
	return given
}

// Part is [Computer.Grams] where the formula is weight x percent / 100. It returns what is given where one of the two is absent.
func (c *Computer) Part(field string, given, weight *unit.Grams, percent *unit.Percent) *unit.Grams {
	if weight == nil || percent == nil {
		return given
	}
	return c.Grams(field, given, Share(*weight, *percent))
}

// Share returns a percentage of a weight, not rounded.
func Share(weight unit.Grams, percent unit.Percent) decimal.Decimal {
	return weight.Decimal().Mul(percent.Decimal()).Shift(-2)
}

// Wrong notes a fault of a field.
func (c *Computer) Wrong(field, message string) {
	c.wrong = append(c.wrong, fault.Field{Field: field, Message: message})
}

// Computed returns the names of the fields that were computed, for the entry's field computed.
func (c *Computer) Computed() []string { return c.computed }

func (c *Computer) compare(field string, given, formula decimal.Decimal, places int32) {
	if given.Sub(formula).Abs().GreaterThan(decimal.Max(tolerance, formula.Abs().Mul(tolerancePart))) {
		c.warnings = append(c.warnings, Warning{
			Field: c.prefix + field, Message: "differs from what the other values say", Given: given, Computed: formula.Round(places),
		})
	}
}

func (c *Computer) computes(field string, value, most decimal.Decimal) bool {
	switch {
	case value.IsNegative(): // so is a given value, which Check refuses
		return false
	case value.GreaterThan(most):
		c.Wrong(field, tooMany)
		return false
	}
	c.computed = append(c.computed, field)
	return true
}

// tooMany is what is wrong with a value that could not be reversed (CONTRACT.md L10).
const tooMany = "comes to more digits than the books have"

// computedIn returns the fields that a side's entries say were computed, each with its value.
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
