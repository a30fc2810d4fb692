package book

import (
	"fmt"
	"reflect"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Ledger is one of the five, for everything that is done alike for all of them.
type Ledger struct {
	Name  string // in paths and tables: bank
	Title string // for people: Bank
	Types int    // of its accounts, numbered from 0; 0: they have none
	Metal bool   // it counts fine metal beside cash
	Gross bool   // the metal is weighed as it is, not by what of it is fine
	Held  bool   // a balance above 0 is what the workshop has, not what it owes

	Accounts *event.Kind[Account]
	Rows     *event.Kind[Row]

	NoAccount error
	NoRow     error

	in, out codec

	transferIn, transferOut func(Movement) SideInput
	mirror                  func(in, out Side) (newIn, newOut Side, err error)
	decide                  func(before Row, asked RowInput) (after Row, wrong []fault.Field)
}

// Spec is what a ledger's own file says of it.
type Spec[In, Out Entry] struct {
	Name      string
	Title     string
	Types     int
	Metal     bool
	Gross     bool
	Held      bool
	NoAccount string // what a client reads where there is no such account

	// Mirror returns the entries of the row that reverses another one: what came IN goes OUT, and the
	// other way round. Each new side counts what the old one counts on the other.
	Mirror func(in []In, out []Out) (newIn []In, newOut []Out)

	// In and Out return the entry of a transfer.
	In  func(Movement) In
	Out func(Movement) Out

	// AddCounterEntries returns the sides of a row as they are to be stored, where an entry of one side wants one on the other, as a rate
	// cut wants its counter entry. It gets them as they are asked for, completed and without faults, and as they were stored
	// before. It tells c of faults and warnings by whole names, such as "out_entries[0].rate". Each write of entries calls it;
	// nil: no entry wants another.
	AddCounterEntries func(c *Computer, asked, before Sides[In, Out]) Sides[In, Out]
}

// Sides are the entries of a row.
type Sides[In, Out Entry] struct {
	In  []In
	Out []Out
}

// Exchange is the Mirror of a ledger that has one sort of entry.
func Exchange[E Entry](in, out []E) (newIn, newOut []E) { return out, in }

// New makes a ledger. It panics where the ledger has no stored names.
func New[In, Out Entry](s Spec[In, Out]) *Ledger {
	n, known := stored[s.Name]
	if !known {
		panic(fmt.Sprintf("ledger %s has no stored names", s.Name))
	}
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
	l.Accounts = kindOf(n.account, n.accounts[:], accountTypes[:], nil)
	l.Rows = kindOf(n.row, n.rows[:], rowTypes[:], l.readRow)
	return l
}

// Mirror returns the sides of the row that reverses another one.
func (l *Ledger) Mirror(in, out Side) (newIn, newOut Side, err error) { return l.mirror(in, out) }

// Entries returns the types of the ledger's IN and OUT entries.
func (l *Ledger) Entries() (in, out reflect.Type) { return l.in.entry, l.out.entry }

// Lines returns the entries of a row one by one.
func (l *Ledger) Lines(r Row) (in, out []Line, err error) {
	if in, err = l.in.lines(r.In); err == nil {
		out, err = l.out.lines(r.Out)
	}
	return in, out, err
}

// Measured returns the row with what its sides count, which not everybody keeps who keeps the entries.
func (l *Ledger) Measured(r Row) (Row, error) {
	err := l.measure(&r.In, &r.Out)
	return r, err
}

// measure works out what the entries of two sides count.
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
