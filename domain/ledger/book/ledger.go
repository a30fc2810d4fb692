package book

import "bahi/domain/event"

// Ledger is one of the five: its name in paths, its kinds of streams, and what it answers when
// something is not there.
type Ledger[L any, In, Out Entry] struct {
	Name      string
	Accounts  *event.Kind[Account[L]]
	Rows      *event.Kind[Row[In, Out]]
	Bulks     *event.Kind[Bulk[In, Out]]
	NoAccount error
	NoRow     error
}
