package unit

import "github.com/shopspring/decimal"

// Sum is an exact sum of any size: money in rupees or metal in grams. Its JSON is a number.
type Sum struct {
	decimal.Decimal
}

// MarshalJSON returns a JSON number.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON parses a JSON number.
func (s *Sum) UnmarshalJSON(text []byte) error {
	d, err := decimal.NewFromString(string(text))
	s.Decimal = d
	return err
}
