// Package booktest has what the tests of all ledgers share.
package booktest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Today is the day of the tests.
var Today = unit.DateOf(time.Date(2025, 3, 31, 0, 0, 0, 0, time.UTC))

// Grams, Percent and Rupees parse a quantity. They panic on an invalid one.
var (
	Grams   = parsed(unit.ParseGrams)
	Percent = parsed(unit.ParsePercent)
	Rupees  = parsed(unit.ParseMoney)
)

func parsed[Q any](parse func(string) (Q, error)) func(string) *Q {
	return func(text string) *Q {
		q, err := parse(text)
		if err != nil {
			panic(err)
		}
		return &q
	}
}

// account has the rows of the tests.
const account = 4

// Add returns a command that adds a row of today.
func Add[In, Out book.Entry](l *book.Ledger, in []In, out []Out) event.Command[book.Row] {
	return book.AddRow{Ledger: l, Account: account, Today: Today,
		RowInput: book.RowInput{Date: &Today, In: book.Entries(in), Out: book.Entries(out)}}
}

// Edit returns a command that changes entries of a row; a nil side is unchanged.
func Edit[In, Out book.Entry](l *book.Ledger, in []In, out []Out) event.Command[book.Row] {
	c := book.EditRow{Ledger: l, Account: account, Today: Today}
	if in != nil {
		c.In = book.Entries(in)
	}
	if out != nil {
		c.Out = book.Entries(out)
	}
	return c
}

// Added is the event that adds a row of today with these entries.
func Added[In, Out book.Entry](in []In, out []Out) book.RowAdded {
	return book.RowAdded{Account: account, Date: Today, In: book.SideOf(in), Out: book.SideOf(out)}
}

// Laws checks a ledger's laws with random entries. A row that is sent back unchanged does not change. The row that reverses it has ordinary
// entries, which add exactly its sums on the other side.
func Laws[In, Out book.Entry](t *testing.T, l *book.Ledger) {
	t.Helper()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		in := taking(t, func(list []In) event.Command[book.Row] { return Add[In, Out](l, list, nil) })
		out := taking(t, func(list []Out) event.Command[book.Row] { return Add[In](l, nil, list) })
		events, err := Add(l, in, out).Decide(book.Row{})
		if err != nil {
			return
		}
		taken++
		row := events[0].Evolve(book.Row{})
		require.Equal(t, row, must(l.Measured(stored(row)))(t))
		in, out = must(book.EntriesOf[In](row.In))(t), must(book.EntriesOf[Out](row.Out))(t)
		for _, c := range []event.Command[book.Row]{Edit(l, in, out), Edit[In, Out](l, in, nil), Edit[In](l, nil, out)} {
			require.Empty(t, must(c.Decide(row))(t), "writing back what was read changes nothing")
		}
		newIn, newOut, err := l.Mirror(row.In, row.Out)
		require.NoError(t, err)
		require.Equal(t, []book.Effect{row.Out.Effect, row.In.Effect}, []book.Effect{newIn.Effect, newOut.Effect})
		in, out = sendable(must(book.EntriesOf[In](newIn))(t)), sendable(must(book.EntriesOf[Out](newOut))(t))
		again := must(Add(l, in, out).Decide(book.Row{}))(t)[0].Evolve(book.Row{})
		require.Equal(t, []book.Side{book.SideOf(in), book.SideOf(out)}, []book.Side{again.In, again.Out})
	})
	require.Positive(t, taken)
}

// stored returns the row without the sums of its sides.
func stored(r book.Row) book.Row {
	r.In, r.Out = book.StoredSide(string(r.In.JSON()), book.Effect{}), book.StoredSide(string(r.Out.JSON()), book.Effect{})
	return r
}

func must[T any](v T, err error) func(*rapid.T) T {
	return func(t *rapid.T) T {
		require.NoError(t, err)
		return v
	}
}

// taking returns no entry, or a single one. With several entries, an edit with the stored entries could change the row: a value that one
// entry has may be computed in another (CONTRACT.md L6).
func taking[E book.Entry](t *rapid.T, add func([]E) event.Command[book.Row]) []E {
	for range rapid.IntRange(0, 20).Draw(t, "tries") {
		list := []E{drawn[E](t)}
		if _, err := add(list).Decide(book.Row{}); err == nil {
			return list
		}
	}
	return nil
}

// drawn returns an entry with random values.
func drawn[E book.Entry](t *rapid.T) (e E) {
	entry := reflect.ValueOf(&e).Elem()
	for i := range entry.NumField() {
		field, kind := entry.Field(i), entry.Type().Field(i)
		if kind.Tag.Get("readOnly") != "" || !rapid.Bool().Draw(t, "has "+kind.Name) {
			continue
		}
		number := func(most int64) int64 { return rapid.Int64Range(0, most).Draw(t, kind.Name) }
		switch field.Interface().(type) {
		case unit.Money:
			field.SetInt(number(int64(unit.MaxMoney)))
		case *unit.Money:
			field.Set(reflect.ValueOf(new(unit.Money(number(int64(unit.MaxMoney))))))
		case *unit.Grams:
			field.Set(reflect.ValueOf(new(unit.Grams(number(int64(unit.MaxGrams))))))
		case *unit.Percent:
			field.Set(reflect.ValueOf(new(unit.Percent(number(int64(unit.Whole))))))
		case *int64:
			field.Set(reflect.ValueOf(new(number(999_999_999))))
		case book.Text:
			field.SetString("पायल")
		default: // one of a few words
			field.SetString(rapid.SampledFrom(strings.Split(kind.Tag.Get("enum"), ",")).Draw(t, kind.Name))
		}
	}
	return e
}

// sendable returns entries without the mark that only the service writes.
func sendable[E book.Entry](list []E) []E {
	for i := range list {
		if counter := reflect.ValueOf(&list[i]).Elem().FieldByName("Counter"); counter.IsValid() {
			counter.SetBool(false)
		}
	}
	return list
}
