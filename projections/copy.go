package projections

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/unit"
)

// Copy collects rows for a COPY in Postgres's binary format, the quickest way into a table: nothing is
// written as text here to be parsed there. Each column's method must be that of the column's type, since
// Postgres converts nothing.
//
// Its memory is kept from one [Copy.Into] to the next.
type Copy struct {
	rows  []byte
	row   int // where the one under way begins
	width int // columns of it so far
}

// signature begins what is copied: the format's name, no flags, no extension.
const signature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// column begins a column of so many bytes.
func (c *Copy) column(size int) {
	if c.width == 0 {
		if len(c.rows) == 0 {
			c.rows = append(c.rows, signature...)
		}
		c.row = len(c.rows)
		c.rows = append(c.rows, 0, 0) // how many columns there are: End knows
	}
	c.width++
	c.rows = binary.BigEndian.AppendUint32(c.rows, uint32(int32(size))) //nolint:gosec // a column has less than 1 GB
}

// Bigint adds a column.
func (c *Copy) Bigint(v int64) {
	c.column(8)
	c.rows = binary.BigEndian.AppendUint64(c.rows, uint64(v)) //nolint:gosec // the same bits
}

// Integer adds a column.
func (c *Copy) Integer(v int32) {
	c.column(4)
	c.rows = binary.BigEndian.AppendUint32(c.rows, uint32(v)) //nolint:gosec // the same bits
}

// Smallint adds a column.
func (c *Copy) Smallint(v int16) {
	c.column(2)
	c.rows = binary.BigEndian.AppendUint16(c.rows, uint16(v)) //nolint:gosec // the same bits
}

// Boolean adds a column.
func (c *Copy) Boolean(v bool) {
	c.column(1)
	if v {
		c.rows = append(c.rows, 1)
	} else {
		c.rows = append(c.rows, 0)
	}
}

// Null adds a column without a value, of any type.
func (c *Copy) Null() { c.column(-1) }

// Text adds a column.
func (c *Copy) Text(v string) {
	c.column(len(v))
	c.rows = append(c.rows, v...)
}

// Postgres counts time from the beginning of 2000.
const (
	daysTo2000         = 10957
	microsecondsTo2000 = daysTo2000 * 24 * 60 * 60 * 1_000_000
)

// Date adds a column.
func (c *Copy) Date(v unit.Date) { c.Integer(int32(v) - daysTo2000) }

// Timestamptz adds a column.
func (c *Copy) Timestamptz(v time.Time) { c.Bigint(v.UnixMicro() - microsecondsTo2000) }

// A numeric's digits have base 10000. They stand on both sides of the point, so that 12.34 is the two
// digits 12 and 3400.
const (
	base       = 10_000
	baseDigits = 4
	negative   = 0x4000
)

// Numeric adds a column: n units of the last of at most 4 decimal places.
func (c *Copy) Numeric(n int64, places int) {
	sign, size := uint16(0), uint64(n) //nolint:gosec // made positive in the next line
	if n < 0 {
		sign, size = negative, -size
	}
	scale := uint64(1)
	for range places {
		scale *= 10
	}
	var digits [6]uint16 // from the last
	used, fraction := 0, size%scale*(base/scale)
	if fraction != 0 {
		digits[0], used = uint16(fraction), 1
	}
	whole := size / scale
	weight := -1
	for ; whole > 0; whole /= base {
		digits[used] = uint16(whole % base)
		used, weight = used+1, weight+1
	}
	c.numeric(digits[:used], weight, sign, places)
}

// BigNumeric is Numeric for what 64 bits don't hold.
func (c *Copy) BigNumeric(n *big.Int, places int) {
	sign, size := uint16(0), new(big.Int).Abs(n)
	if n.Sign() < 0 {
		sign = negative
	}
	size.Mul(size, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(baseDigits-places)), nil)) // one digit of the fraction
	var digits []uint16
	for digit, divisor := new(big.Int), big.NewInt(base); size.Sign() > 0; {
		size.QuoRem(size, divisor, digit)
		digits = append(digits, uint16(digit.Uint64())) //nolint:gosec // less than the base
	}
	c.numeric(digits, len(digits)-2, sign, places)
}

// numeric adds a column of digits that come from the last on. The first has a weight: the power of the
// base that it counts.
func (c *Copy) numeric(digits []uint16, weight int, sign uint16, places int) {
	if len(digits) == 0 {
		weight = 0
	}
	c.column(8 + 2*len(digits))
	for _, v := range []uint16{uint16(len(digits)), uint16(int16(weight)), sign, uint16(places)} { //nolint:gosec // all are small
		c.rows = binary.BigEndian.AppendUint16(c.rows, v)
	}
	for i := len(digits) - 1; i >= 0; i-- {
		c.rows = binary.BigEndian.AppendUint16(c.rows, digits[i])
	}
}

// End ends a row.
func (c *Copy) End() {
	binary.BigEndian.PutUint16(c.rows[c.row:], uint16(c.width)) //nolint:gosec // a table has at most 1600
	c.width = 0
}

// Into copies the rows into the table's columns, and forgets them.
func (c *Copy) Into(ctx context.Context, tx pgx.Tx, table string) error {
	if len(c.rows) == 0 {
		return nil
	}
	rows := append(c.rows, 0xff, 0xff) // the end
	c.rows, c.width = rows[:0], 0
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(rows), `copy `+table+` from stdin (format binary)`); err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	return nil
}
