package projections

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/unit"
)

// CopyInto copies n rows into a table's columns with COPY in Postgres's binary format, the fastest way to fill a table. write adds the
// columns of one row. It runs while Postgres processes earlier rows.
func CopyInto(ctx context.Context, tx pgx.Tx, table string, n int, write func(c *Copy, row int)) error {
	if n == 0 {
		return nil
	}
	c := &Copy{rows: append(make([]byte, 0, 2*copyChunk), signature...)}
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, &copyReader{copied: c, n: n, write: write},
		`copy `+table+` from stdin (format binary)`); err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	return nil
}

// copyChunk is the number of bytes of rows that are encoded at once.
const copyChunk = 64 << 10

// copyReader encodes rows as they are read.
type copyReader struct {
	copied   *Copy
	row, n   int
	write    func(c *Copy, row int)
	read     int // read part of the encoded bytes
	finished bool
}

func (r *copyReader) Read(into []byte) (n int, err error) {
	c := r.copied
	if r.read == len(c.rows) {
		c.rows, r.read = c.rows[:0], 0
	}
	for ; r.row < r.n && len(c.rows) < copyChunk; r.row++ {
		r.write(c, r.row)
		c.end()
	}
	if r.row == r.n && !r.finished {
		r.finished = true
		c.rows = append(c.rows, 0xff, 0xff)
	}
	if r.read == len(c.rows) {
		return 0, io.EOF
	}
	n = copy(into, c.rows[r.read:])
	r.read += n
	return n, nil
}

// Copy encodes the columns of a row. Each method must match its column's type: Postgres converts nothing.
type Copy struct {
	rows  []byte
	row   int // start of the current row
	width int // number of its columns so far
}

// signature is the header of the format: its name, no flags, no extension.
const signature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// column starts a column of size bytes.
func (c *Copy) column(size int) {
	if c.width == 0 {
		c.row = len(c.rows)
		c.rows = append(c.rows, 0, 0) // number of columns, set by end
	}
	c.width++
	c.rows = binary.BigEndian.AppendUint32(c.rows, uint32(int32(size)))
}

// Bigint adds a column.
func (c *Copy) Bigint(v int64) {
	c.column(8)
	c.rows = binary.BigEndian.AppendUint64(c.rows, uint64(v))
}

// Integer adds a column.
func (c *Copy) Integer(v int32) {
	c.column(4)
	c.rows = binary.BigEndian.AppendUint32(c.rows, uint32(v))
}

// Smallint adds a column.
func (c *Copy) Smallint(v int16) {
	c.column(2)
	c.rows = binary.BigEndian.AppendUint16(c.rows, uint16(v))
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

// A numeric's digits have base 10000. They are aligned to the decimal point: 12.34 has the two digits 12 and 3400.
const (
	base       = 10_000
	baseDigits = 4
	negative   = 0x4000
)

// Numeric adds a column: n units of the last of at most 4 decimal places.
func (c *Copy) Numeric(n int64, places int) {
	sign, size := uint16(0), uint64(n)
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

// BigNumeric is Numeric for values over 64 bits.
func (c *Copy) BigNumeric(n *big.Int, places int) {
	sign, size := uint16(0), new(big.Int).Abs(n)
	if n.Sign() < 0 {
		sign = negative
	}
	size.Mul(size, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(baseDigits-places)), nil)) // one digit of the fraction
	var digits []uint16
	for digit, divisor := new(big.Int), big.NewInt(base); size.Sign() > 0; {
		size.QuoRem(size, divisor, digit)
		digits = append(digits, uint16(digit.Uint64()))
	}
	c.numeric(digits, len(digits)-2, sign, places)
}

// numeric adds a column of digits in reverse order. weight is the exponent of the first digit's base.
func (c *Copy) numeric(digits []uint16, weight int, sign uint16, places int) {
	if len(digits) == 0 {
		weight = 0
	}
	c.column(8 + 2*len(digits))
	for _, v := range []uint16{uint16(len(digits)), uint16(int16(weight)), sign, uint16(places)} {
		c.rows = binary.BigEndian.AppendUint16(c.rows, v)
	}
	for _, digit := range slices.Backward(digits) {
		c.rows = binary.BigEndian.AppendUint16(c.rows, digit)
	}
}

func (c *Copy) end() {
	binary.BigEndian.PutUint16(c.rows[c.row:], uint16(c.width))
	c.width = 0
}
