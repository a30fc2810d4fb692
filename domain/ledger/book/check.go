package book

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/domain/unit"
)

// Text is a text that a user wrote in an entry. Surrounding spaces are removed (CONTRACT.md D19).
type Text string

// UnmarshalText trims the text and removes marks of writing direction.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(person.Unmarked(string(text)))
	return nil
}

// The maximum lengths of texts in characters (CONTRACT.md 0.8, D19).
const (
	MaxDescription = 500
	MaxItemName    = 200
	MaxSlipNumber  = 40
)

const maxPieces = 999_999_999

// CheckText returns the faults of a text field with at most limit characters.
func CheckText(field string, text Text, limit int) []fault.Field {
	switch {
	case utf8.RuneCountInString(string(text)) > limit:
		return []fault.Field{{Field: field, Message: fmt.Sprintf("at most %d characters", limit)}}
	case !clean(string(text)):
		return []fault.Field{{Field: field, Message: "control characters are not allowed"}}
	default:
		return nil
	}
}

// Checker collects the faults of an entry by field.
type Checker struct{ wrong []fault.Field }

// Wrong adds a fault.
func (c *Checker) Wrong(field, message string) {
	c.wrong = append(c.wrong, fault.Field{Field: field, Message: message})
}

// Text checks a text of at most limit characters.
func (c *Checker) Text(field string, text Text, limit int) {
	c.wrong = append(c.wrong, CheckText(field, text, limit)...)
}

// Weight refuses a negative weight. nil is valid.
func (c *Checker) Weight(field string, weight *unit.Grams) {
	if weight != nil && *weight < 0 {
		c.Wrong(field, negative)
	}
}

// Amount refuses a negative amount. nil is valid.
func (c *Checker) Amount(field string, amount *unit.Money) {
	if amount != nil && *amount < 0 {
		c.Wrong(field, negative)
	}
}

// Pieces refuses a negative number of pieces and one with more than 9 digits. nil is valid.
func (c *Checker) Pieces(field string, pieces *int64) {
	if pieces != nil && (*pieces < 0 || *pieces > maxPieces) {
		c.Wrong(field, fmt.Sprintf("must be from 0 to %d", maxPieces))
	}
}

// percent refuses a percentage outside 0 to 100. nil is valid.
func (c *Checker) percent(field string, share *unit.Percent) {
	if share != nil && (*share < 0 || *share > unit.Whole) {
		c.Wrong(field, "must be from 0 to 100")
	}
}

// Metal checks the weight, the touch and the fine weight of an entry. An entry has the weight and one of the others, or only the fine
// weight, or none of them (CONTRACT.md L3). weightField and shareField are the ledger's names for the weight and the touch.
func (c *Checker) Metal(weightField string, weight *unit.Grams, shareField string, share *unit.Percent, fine *unit.Grams) {
	c.Weight(weightField, weight)
	c.percent(shareField, share)
	c.Weight("fine_weight", fine)
	switch {
	case weight != nil && share == nil && fine == nil:
		c.Wrong(weightField, "requires "+shareField+" or fine_weight")
	case weight == nil && share != nil:
		c.Wrong(shareField, "requires "+weightField)
	}
}

// Metal is the name of a metal in lower case, such as gold or silver.
type Metal string

// UnmarshalText trims the name and converts it to lower case.
func (m *Metal) UnmarshalText(text []byte) error {
	*m = Metal(strings.ToLower(person.Unmarked(string(text))))
	return nil
}

// maxMetal is the maximum length of a metal's name in characters.
const maxMetal = 40

// Metallic checks the name of a metal. Only an entry with metal may name a metal.
func (c *Checker) Metallic(name Metal, hasMetal bool) {
	c.Text("metal", Text(name), maxMetal)
	if name != "" && !hasMetal {
		c.Wrong("metal", "requires a weight")
	}
}

// checkMetal requires that all entries with metal of a row have the same metal.
func checkMetal[E Entry](name string, s Side, metal string) (wrong []fault.Field) {
	list, _ := EntriesOf[E](s) // encoded by this package, so they decode
	for i, e := range list {
		if one, ok := any(e).(Metallic); ok && e.Effect().Fine != 0 && string(one.MetalName()) != metal {
			at := fmt.Sprintf("%s[%d].metal", name, i)
			wrong = append(wrong, fault.Field{Field: at, Message: "all entries of a row must have one metal: expected " + metal})
		}
	}
	return wrong
}

// Rate requires a positive price. nil is valid.
func (c *Checker) Rate(field string, rate *unit.Money) {
	if rate != nil && *rate <= 0 {
		c.Wrong(field, "must be more than 0")
	}
}

// Wastage checks a wastage in percent of a weight, in grams, or both.
func (c *Checker) Wastage(percent *unit.Percent, grams *unit.Grams, weightField string, weight *unit.Grams) {
	c.percent("wastage_percent", percent)
	if percent != nil && weight == nil {
		c.Wrong("wastage_percent", "requires "+weightField)
	}
	c.Weight("wastage_weight", grams)
}

// Absent refuses a field that entries of this kind do not have.
func (c *Checker) Absent(kind, field string, given bool) {
	if given {
		c.Wrong(field, "an entry of kind "+kind+" has none")
	}
}

// Empty adds the fault of an entry without a positive weight or amount (CONTRACT.md 0.4).
func (c *Checker) Empty() { c.Wrong("", "a weight or an amount above 0 is needed") }

// Value returns the value, or 0 for nil.
func Value[Q unit.Money | unit.Grams | unit.Percent](given *Q) (q Q) {
	if given != nil {
		q = *given
	}
	return q
}

const negative = "must not be negative"

// Faults returns the collected faults.
func (c *Checker) Faults() []fault.Field { return c.wrong }

// clean reports whether a text can be stored and printed. Postgres refuses NUL. Other control characters only hide text,
// and marks of writing direction can disguise a statement.
func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
}
