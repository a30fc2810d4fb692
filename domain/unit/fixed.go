// Package unit has the quantities of the books: money, grams, percents and dates. A value is exact: a whole number of its smallest part
// (paisa, milligram, thousandth of a percent). Its JSON is a decimal number (CONTRACT.md 0.3, G21).
package unit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/shopspring/decimal"
)

// Money is an amount in paise, the hundredth part of a rupee.
type Money int64

// Grams is a weight in milligrams.
type Grams int64

// Percent is a share in thousandths of a percent: 99.5 % is 99500.
type Percent int64

// Share is a Percent with a fraction as its JSON: 99.5 % is 0.995.
type Share Percent

// Decimal places of the quantities (CONTRACT.md G21).
const (
	MoneyPlaces = 2
	GramsPlaces = 3
)

// Maximum values in the books: 13 digits before the point of an amount, 9 of a weight; and 100 percent.
const (
	MaxMoney Money   = 999_999_999_999_999
	MaxGrams Grams   = 999_999_999_999
	Whole    Percent = 100_000
)

const (
	percentPlaces = 3
	sharePlaces   = 5

	moneyDigits  = 13
	weightDigits = 9
)

var errNumber = errors.New("expected a number")

// ParseMoney parses a decimal with at most 2 places.
func ParseMoney(text string) (Money, error) {
	n, err := parse(text, moneyDigits, MoneyPlaces)
	return Money(n), err
}

// ParseGrams parses a decimal with at most 3 places.
func ParseGrams(text string) (Grams, error) {
	n, err := parse(text, weightDigits, GramsPlaces)
	return Grams(n), err
}

// ParsePercent parses a decimal with at most 3 places.
func ParsePercent(text string) (Percent, error) {
	n, err := parse(text, weightDigits, percentPlaces)
	return Percent(n), err
}

// Decimal returns the amount in rupees.
func (m Money) Decimal() decimal.Decimal { return decimal.New(int64(m), -MoneyPlaces) }

// Decimal returns the weight in grams.
func (g Grams) Decimal() decimal.Decimal { return decimal.New(int64(g), -GramsPlaces) }

// Decimal returns the percentage.
func (p Percent) Decimal() decimal.Decimal { return decimal.New(int64(p), -percentPlaces) }

// MoneyOf returns the amount of d rupees, which must have at most 2 places.
func MoneyOf(d decimal.Decimal) Money { return Money(d.Shift(MoneyPlaces).IntPart()) }

// GramsOf returns the weight of d grams, which must have at most 3 places.
func GramsOf(d decimal.Decimal) Grams { return Grams(d.Shift(GramsPlaces).IntPart()) }

func (m Money) String() string   { return string(fixed(int64(m), MoneyPlaces)) }
func (g Grams) String() string   { return string(fixed(int64(g), GramsPlaces)) }
func (p Percent) String() string { return string(fixed(int64(p), percentPlaces)) }

// MarshalJSON returns a JSON number.
func (m Money) MarshalJSON() ([]byte, error) { return fixed(int64(m), MoneyPlaces), nil }

// MarshalJSON returns a JSON number.
func (g Grams) MarshalJSON() ([]byte, error) { return fixed(int64(g), GramsPlaces), nil }

// MarshalJSON returns a JSON number.
func (p Percent) MarshalJSON() ([]byte, error) { return fixed(int64(p), percentPlaces), nil }

// MarshalJSON returns a JSON number.
func (s Share) MarshalJSON() ([]byte, error) { return fixed(int64(s), sharePlaces), nil }

// UnmarshalJSON parses a JSON number exactly.
func (s *Share) UnmarshalJSON(text []byte) error {
	return unmarshal((*int64)(s), text, weightDigits, sharePlaces)
}

// UnmarshalJSON parses a JSON number exactly.
func (m *Money) UnmarshalJSON(text []byte) error {
	return unmarshal((*int64)(m), text, moneyDigits, MoneyPlaces)
}

// UnmarshalJSON parses a JSON number exactly.
func (g *Grams) UnmarshalJSON(text []byte) error {
	return unmarshal((*int64)(g), text, weightDigits, GramsPlaces)
}

// UnmarshalJSON parses a JSON number exactly.
func (p *Percent) UnmarshalJSON(text []byte) error {
	return unmarshal((*int64)(p), text, weightDigits, percentPlaces)
}

func unmarshal(into *int64, text []byte, digits, places int) error {
	if string(text) == "null" { // encoding/json requires this of an Unmarshaler
		return nil
	}
	n, err := parse(string(text), digits, places)
	if err == nil {
		*into = n
	}
	return err
}

// parse returns text as a whole number of the unit's smallest part. It accepts JSON's numbers, except exponents, with limits for the digits
// before and after the point.
func parse(text string, digits, places int) (int64, error) {
	rest, negative := text, false
	if rest != "" && rest[0] == '-' {
		rest, negative = rest[1:], true
	}
	var n int64
	before, after, point := 0, 0, false
	for i := range len(rest) {
		c := rest[i]
		switch {
		case c == '.' && !point && before > 0:
			point = true
		case c >= '0' && c <= '9':
			if point {
				after++
			} else {
				before++
			}
			if before > digits {
				return 0, fmt.Errorf("at most %d digits before the decimal point", digits)
			}
			if after > places {
				return 0, fmt.Errorf("at most %d decimal places", places)
			}
			n = n*10 + int64(c-'0')
		case (c == 'e' || c == 'E') && before > 0:
			return 0, errors.New("exponents are not allowed")
		default:
			return 0, errNumber
		}
	}
	if before == 0 || point && after == 0 || before > 1 && rest[0] == '0' {
		return 0, errNumber
	}
	for ; after < places; after++ {
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, nil
}

// fixed returns n as a decimal without trailing zeros.
func fixed(n int64, places int) (b []byte) {
	if n < 0 {
		b = append(b, '-')
	}
	scale := uint64(1)
	for range places {
		scale *= 10
	}
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	b = strconv.AppendUint(b, magnitude/scale, 10)
	rest := magnitude % scale
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for scale /= 10; rest > 0; scale /= 10 {
		b = append(b, byte('0'+rest/scale))
		rest %= scale
	}
	return b
}
