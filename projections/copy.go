package projections

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Copy collects rows for a COPY, the quickest way into a table. It writes COPY's text format: numbers
// go as their text, which costs less than pgx's way of making binary numerics of them.
type Copy struct {
	text   bytes.Buffer
	column int
}

func (c *Copy) next() *bytes.Buffer {
	if c.column > 0 {
		c.text.WriteByte('\t')
	}
	c.column++
	return &c.text
}

// Int adds a column.
func (c *Copy) Int(v int64) {
	b := c.next()
	b.Write(strconv.AppendInt(b.AvailableBuffer(), v, 10))
}

// Bool adds a column.
func (c *Copy) Bool(v bool) {
	if v {
		c.next().WriteByte('t')
		return
	}
	c.next().WriteByte('f')
}

// Null adds a column without a value.
func (c *Copy) Null() { c.next().WriteString(`\N`) }

// Plain adds a column whose text has nothing to escape: numbers, dates, uuids.
func (c *Copy) Plain(v string) { c.next().WriteString(v) }

// Text adds a column of any text.
func (c *Copy) Text(v string) {
	b := c.next()
	for i := range len(v) {
		switch v[i] {
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(v[i])
		}
	}
}

// End ends a row.
func (c *Copy) End() {
	c.text.WriteByte('\n')
	c.column = 0
}

// Into copies the rows into the table's columns.
func (c *Copy) Into(ctx context.Context, tx pgx.Tx, table string) error {
	if c.text.Len() == 0 {
		return nil
	}
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, &c.text, `copy `+table+` from stdin`); err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	return nil
}
