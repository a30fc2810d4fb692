package unit

import "github.com/shopspring/decimal"

// Sum is what amounts add up to: money in rupees or metal in grams, exact and of any size. JSON has it
// as a number.
type Sum struct {
	decimal.Decimal
}

// MarshalJSON writes a JSON number.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a JSON number.
func (s *Sum) UnmarshalJSON(text []byte) error {
	d, err := decimal.NewFromString(string(text))
	s.Decimal = d
	return err
}
