package ledgerproj

import (
	"math/big"
	"math/bits"

	"github.com/shopspring/decimal"

	"bahi/domain/unit"
	"bahi/projections"
)

// total is a sum of whole paise or milligrams in 128 bits. Sums of rows may exceed 64 bits. Decimals of any size would take a fifth of the
// fold's time.
type total struct {
	high int64
	low  uint64
}

// add adds n.
func (t *total) add(n int64) {
	low, carry := bits.Add64(t.low, uint64(n), 0)
	t.high, t.low = t.high+n>>63+int64(carry), low
}

// plus adds another total, or subtracts it if sign is -1.
func (t *total) plus(of total, sign int64) {
	if sign < 0 {
		of.low, of.high = -of.low, ^of.high
		if of.low == 0 {
			of.high++
		}
	}
	low, carry := bits.Add64(t.low, of.low, 0)
	t.high, t.low = t.high+of.high+int64(carry), low
}

// small returns the sum if it fits into 64 bits.
func (t *total) small() (int64, bool) {
	n := int64(t.low)
	return n, t.high == n>>63
}

func (t *total) big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(t.high), 64)
	return n.Add(n, new(big.Int).SetUint64(t.low))
}

// cash and fine are totals of money and metal in the format of Postgres.
type (
	cash struct{ total }
	fine struct{ total }
)

func (c *cash) String() string {
	if n, ok := c.small(); ok {
		return unit.Money(n).String()
	}
	return decimal.NewFromBigInt(c.big(), -unit.MoneyPlaces).String()
}

func (f *fine) String() string {
	if n, ok := f.small(); ok {
		return unit.Grams(n).String()
	}
	return decimal.NewFromBigInt(f.big(), -unit.GramsPlaces).String()
}

func (t *total) copy(into *projections.Copy, places int) {
	if n, ok := t.small(); ok {
		into.Numeric(n, places)
	} else {
		into.BigNumeric(t.big(), places)
	}
}

// Scan reads a numeric.
func (c *cash) Scan(v any) error { return c.scan(v, unit.MoneyPlaces) }

// Scan reads a numeric.
func (f *fine) Scan(v any) error { return f.scan(v, unit.GramsPlaces) }

func (t *total) scan(v any, places int32) error {
	var d decimal.Decimal
	if err := d.Scan(v); err != nil {
		return err
	}
	n := d.Shift(places).BigInt()
	t.low = new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1)).Uint64() // of the two's complement
	t.high = new(big.Int).Rsh(n, 64).Int64()
	return nil
}
