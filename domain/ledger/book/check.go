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

// Text is what somebody wrote in a line of the book. Spaces around it are not kept (CONTRACT.md D19).
type Text string

// UnmarshalText trims, and drops marks of direction.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(person.Unmarked(string(text)))
	return nil
}

// The longest texts, in characters. A description is a line of the book, not a letter (CONTRACT.md 0.8, D19).
const (
	MaxDescription = 500
	MaxItemName    = 200
	MaxSlipNumber  = 40
)

const maxPieces = 999_999_999

// CheckText returns what is wrong with a text field of at most limit characters, nil when nothing is.
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

// Checker collects what is wrong with an entry, field by field.
type Checker struct{ wrong []fault.Field }

// Wrong notes a fault.
func (c *Checker) Wrong(field, message string) {
	c.wrong = append(c.wrong, fault.Field{Field: field, Message: message})
}

// Text checks a text of at most limit characters.
func (c *Checker) Text(field string, text Text, limit int) {
	c.wrong = append(c.wrong, CheckText(field, text, limit)...)
}

// Weight wants a weight that is not negative, where one is given.
func (c *Checker) Weight(field string, weight *unit.Grams) {
	if weight != nil && *weight < 0 {
		c.Wrong(field, negative)
	}
}

// Amount wants an amount that is not negative, where one is given.
func (c *Checker) Amount(field string, amount *unit.Money) {
	if amount != nil && *amount < 0 {
		c.Wrong(field, negative)
	}
}

// Pieces wants a number of pieces that has up to 9 digits, where one is given.
func (c *Checker) Pieces(field string, pieces *int64) {
	if pieces != nil && (*pieces < 0 || *pieces > maxPieces) {
		c.Wrong(field, fmt.Sprintf("must be from 0 to %d", maxPieces))
	}
}

// Percent wants a share from 0 to 100, where one is given.
func (c *Checker) Percent(field string, share *unit.Percent) {
	if share != nil && (*share < 0 || *share > unit.Whole) {
		c.Wrong(field, "must be from 0 to 100")
	}
}

// Metal checks a metal leg: a weight, the share of it that is fine, and the fine weight. It wants the weight with one of the
// others, the fine weight alone, or none of them (CONTRACT.md L3). The first two have names of their own in each ledger.
func (c *Checker) Metal(weightField string, weight *unit.Grams, shareField string, share *unit.Percent, fine *unit.Grams) {
	c.Weight(weightField, weight)
	c.Percent(shareField, share)
	c.Weight("fine_weight", fine)
	switch {
	case weight != nil && share == nil && fine == nil:
		c.Wrong(weightField, "wants "+shareField+" or fine_weight too")
	case weight == nil && share != nil:
		c.Wrong(shareField, "wants "+weightField+" too")
	}
}

// Metal is the name of a metal, such as gold or silver. It is kept in small letters.
type Metal string

// UnmarshalText trims, and lowers the letters.
func (m *Metal) UnmarshalText(text []byte) error {
	*m = Metal(strings.ToLower(person.Unmarked(string(text))))
	return nil
}

// MaxMetal is the longest name of a metal, in characters.
const MaxMetal = 40

// Metallic checks the name of a metal, which only metal has.
func (c *Checker) Metallic(name Metal, hasMetal bool) {
	c.Text("metal", Text(name), MaxMetal)
	if name != "" && !hasMetal {
		c.Wrong("metal", "wants a weight too")
	}
}

// checkMetal wants all metal of a row to be of one.
func checkMetal[E Entry](name string, s Side, metal string) (wrong []fault.Field) {
	list, _ := EntriesOf[E](s) // which were encoded here
	for i, e := range list {
		if one, ok := any(e).(Metallic); ok && e.Effect().Fine != 0 && string(one.MetalName()) != metal {
			at := fmt.Sprintf("%s[%d].metal", name, i)
			wrong = append(wrong, fault.Field{Field: at, Message: "all metal of a row is of one: expected " + metal})
		}
	}
	return wrong
}

// Rate wants a price above 0, where one is given.
func (c *Checker) Rate(field string, rate *unit.Money) {
	if rate != nil && *rate <= 0 {
		c.Wrong(field, "must be more than 0")
	}
}

// Wastage checks a wastage, in percent of a weight, in grams, or both.
func (c *Checker) Wastage(percent *unit.Percent, grams *unit.Grams, weightField string, weight *unit.Grams) {
	c.Percent("wastage_percent", percent)
	if percent != nil && weight == nil {
		c.Wrong("wastage_percent", "wants "+weightField+" too")
	}
	c.Weight("wastage_weight", grams)
}

// Absent wants no value of a field that entries of a kind do not have.
func (c *Checker) Absent(kind, field string, given bool) {
	if given {
		c.Wrong(field, "an entry of kind "+kind+" has none")
	}
}

// Empty notes that the entry has no weight and no amount above 0: it would count nothing (CONTRACT.md 0.4).
func (c *Checker) Empty() { c.Wrong("", "a weight or an amount above 0 is needed") }

// Value returns what is given, 0 where nothing is.
func Value[Q unit.Money | unit.Grams | unit.Percent](given *Q) (q Q) {
	if given != nil {
		q = *given
	}
	return q
}

const negative = "must not be negative"

// Faults returns what was found.
func (c *Checker) Faults() []fault.Field { return c.wrong }

// clean reports whether text can be stored and printed: Postgres takes no NUL, other control characters
// only hide something, and those that turn the direction of writing can disguise a statement.
func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
}
