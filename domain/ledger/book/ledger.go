package book

import (
	"encoding/json"
	"reflect"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Ledger is one of the five ledgers, with the functions that all of them share.
type Ledger struct {
	Name  string // in paths and tables: bank
	Title string // shown to users: Bank
	Types int    // number of types of its accounts, from 0; 0: no types
	Metal bool   // it has a balance of fine metal besides cash
	Gross bool   // its metal balance is gross weight, not fine weight
	Held  bool   // a balance above 0 is an asset of the workshop, not a debt

	Accounts *event.Kind[Account]
	Rows     *event.Kind[Row]

	NoAccount error
	NoRow     error

	in, out codec

	transferIn, transferOut func(Movement) SideInput
	mirror                  func(in, out Side) (newIn, newOut Side, err error)
	decide                  func(before Row, asked RowInput) (after Row, wrong []fault.Field)
}

// Spec describes one ledger.
type Spec[In, Out Entry] struct {
	Name      string
	Title     string
	Events    string // permanent; begins the stored names of an account's events; those of a row have Row in place of Account
	Types     int
	Metal     bool
	Gross     bool
	Held      bool
	NoAccount string // error text for an unknown account

	// Mirror returns the entries of the row that reverses another one. IN entries become OUT entries, and OUT entries become IN entries.
	// Each new side has the effect of the opposite old side.
	Mirror func(in []In, out []Out) (newIn []In, newOut []Out)

	// In and Out return the entry of a transfer.
	In  func(Movement) In
	Out func(Movement) Out

	// AddCounterEntries returns the sides of a row with the counter entries that they require, such as the money of a rate cut. asked has
	// completed entries without faults, and before has the stored entries. It adds faults and warnings to c under full field names, such as
	// "out_entries[0].rate". Each write of entries calls it. nil: the ledger has no counter entries.
	AddCounterEntries func(c *Computer, asked, before Sides[In, Out]) Sides[In, Out]
}

// Sides are the entries of a row.
type Sides[In, Out Entry] struct {
	In  []In
	Out []Out
}

// Exchange is the Mirror of a ledger with one type of entry.
func Exchange[E Entry](in, out []E) (newIn, newOut []E) { return out, in }

// New returns a ledger. Its streams are <name>-<number> for accounts and <name>row-<number> for rows.
func New[In, Out Entry](s Spec[In, Out]) *Ledger {
	l := &Ledger{
		Name: s.Name, Title: s.Title, Types: s.Types, Metal: s.Metal, Gross: s.Gross, Held: s.Held,
		NoAccount: fault.New(fault.NotFound, s.NoAccount), NoRow: fault.New(fault.NotFound, s.Title+" ledger row not found"),
		in: codecOf[In](inEntries), out: codecOf[Out](outEntries),
		transferIn:  func(v Movement) SideInput { return Entries([]In{s.In(v)}) },
		transferOut: func(v Movement) SideInput { return Entries([]Out{s.Out(v)}) },
		decide:      func(before Row, asked RowInput) (Row, []fault.Field) { return decideRow(s, before, asked) },
	}
	l.mirror = func(in, out Side) (newIn, newOut Side, err error) {
		ins, err := EntriesOf[In](in)
		if err != nil {
			return newIn, newOut, err
		}
		outs, err := EntriesOf[Out](out)
		ins, outs = s.Mirror(ins, outs)
		return SideOf(ins), SideOf(outs), err
	}
	l.Accounts = event.NewKind(s.Name, s.accountEvents()...)
	l.Rows = event.NewKind(s.Name+"row", s.rowEvents(l.readRow)...)
	return l
}

// Mirror returns the sides of the row that reverses another one.
func (l *Ledger) Mirror(in, out Side) (newIn, newOut Side, err error) { return l.mirror(in, out) }

// Entries returns the types of the ledger's IN and OUT entries.
func (l *Ledger) Entries() (in, out reflect.Type) { return l.in.entry, l.out.entry }

// Fields returns the names of the fields of IN and OUT entries.
func (l *Ledger) Fields() (in, out []string) { return l.in.fields(), l.out.fields() }

// Input returns the requested content of a row with entries in JSON.
func (l *Ledger) Input(date *unit.Date, in, out json.RawMessage) (r RowInput, err error) {
	r.Date = date
	if r.In, err = l.in.input(in); err == nil {
		r.Out, err = l.out.input(out)
	}
	return r, err
}

// Lines returns the entries of a row.
func (l *Ledger) Lines(r Row) (in, out []Line, err error) {
	if in, err = l.in.lines(r.In); err == nil {
		out, err = l.out.lines(r.Out)
	}
	return in, out, err
}

// Measured returns the row with the effects of its sides computed from their entries.
func (l *Ledger) Measured(r Row) (Row, error) {
	err := l.measure(&r.In, &r.Out)
	return r, err
}

// measure computes the effects of two sides.
func (l *Ledger) measure(in, out *Side) (err error) {
	if *in, err = l.in.measured(*in); err == nil {
		*out, err = l.out.measured(*out)
	}
	return err
}

func (l *Ledger) readRow(e event.Event[Row]) (event.Event[Row], error) {
	switch e := e.(type) {
	case RowAdded:
		err := l.measure(&e.In, &e.Out)
		return e, err
	case RowEdited:
		in, out := &Side{}, &Side{}
		if e.In != nil {
			in = e.In
		}
		if e.Out != nil {
			out = e.Out
		}
		return e, l.measure(in, out)
	default:
		return e, nil
	}
}
