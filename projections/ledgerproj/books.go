// Package ledgerproj has the projections of the ledger area.
package ledgerproj

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/metal"
	"bahi/domain/unit"
	"bahi/projections"
)

//go:embed books.sql
var booksDDL string

// Books has the accounts and rows of all ledgers, all versions of them, and their balances.
//
// It folds a batch in memory and writes the result with few statements, because the cost of a row limits the throughput
// of writes and rebuilds (`make bench` measures it). The Evolve methods of the domain compute the states.
var Books = projections.Define("books", 11, booksDDL,
	projections.Apply(booksTypes(),
		foldBooks).Finishing(finishBooks).Resuming(resumeBooks)).PartitionedBy(partOf).WithBatchDelay(booksGather)

// booksGather is the maximum delay of a row's event while no request waits for it. Folding one row costs as much as
// folding ten.
const booksGather = 10 * time.Millisecond

// stillCurrent is the end position of current versions.
const stillCurrent = math.MaxInt64

// booksTypes returns the types of events that the projection folds.
func booksTypes() []string {
	all := slices.Concat(bookslock.Kind.Names(), metal.Kind.Names())
	for _, l := range ledger.All {
		all = slices.Concat(all, l.Accounts.Names(), l.Rows.Names())
	}
	return all
}

// account is the folded state of an account.
type account struct {
	book.Account

	id        int64
	ledger    string
	workspace uuid.UUID
	revision  int64
	changed   bool // by this batch
}

// lock is a change of the lock of a workspace's books in this batch.
type lock struct {
	through  *unit.Date
	position event.Position
	revision int64
}

// metalSet is a change of the metal of a workspace's books.
type metalSet struct {
	workspace uuid.UUID
	position  event.Position
	metal     string
	revision  int64
}

// version is a row between two positions.
type version struct {
	book.Row

	row, from, to int64
	revision      int64
	loss          unit.Grams // wastage that the row adds to its account; a reversal subtracts that of the reversed row
	actor, reason string
	at            time.Time
	stored        bool // the version was in the table before this batch
}

// counted returns what the row adds to its account.
func (v *version) counted() counted {
	in, out := v.Counts()
	return counted{in.Minus(out), in, v.loss}
}

// books folds one batch.
type books struct {
	*kept

	changed  []*account
	current  map[int64]*version // by row
	versions []*version         // new ones, in order
	ended    []*version         // stored versions that this batch replaces
	names    []renamed
	locks    map[uuid.UUID]lock
	metals   []metalSet
	sums     *sums
}

// renamed has the name, type and metal of an account from a position on.
type renamed struct {
	account  int64
	position int64
	name     string
	kind     *int
	metal    string
	revision int64
	first    bool
}

// posting is an event that posts rows to an account.
type posting interface{ PostsTo() int64 }

// partOf partitions a fill by accounts. An event that changes a row does not contain the account, so every partition checks whether the row
// belongs to one of its accounts.
func partOf(r *event.Recorded[any]) (account int64, all bool) {
	switch e := r.Data.(type) {
	case event.Event[book.Account]:
		id, err := numbered(r)
		return id, err != nil // every partition refuses a stream without a number
	case posting:
		return e.PostsTo(), false
	case bookslock.Moved, metal.Set:
		return 0, false
	default:
		return 0, true
	}
}

func foldBooks(ctx context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	k, ok := b.FoldState.(*kept)
	if !ok {
		k = newKept(b)
	}
	var err error
	k, err = k.bounded(ctx, b)
	if err != nil {
		return err
	}
	b.FoldState = k
	f := &books{kept: k, current: map[int64]*version{}, locks: map[uuid.UUID]lock{}, sums: newSums(k)}
	if err := f.load(ctx, b.Tx, events); err != nil {
		return err
	}
	for i := range events {
		if err := f.fold(&events[i]); err != nil {
			return fmt.Errorf("position %d: %w", events[i].Position, err)
		}
	}
	if err := f.sums.settle(ctx, b.Tx); err != nil {
		return err
	}
	return f.write(ctx, b)
}

// fold applies one event.
func (f *books) fold(r *event.Recorded[any]) error {
	switch e := r.Data.(type) {
	case bookslock.Moved:
		f.locks[r.Meta.Workspace] = lock{e.To, r.Position, r.Revision}
		return nil
	case metal.Set:
		f.metals = append(f.metals, metalSet{r.Meta.Workspace, r.Position, e.To, r.Revision})
		return nil
	}
	id, err := numbered(r)
	if err != nil {
		return err
	}
	switch e := r.Data.(type) {
	case event.Event[book.Account]:
		return f.foldAccount(r, id, e)
	case event.Event[book.Row]:
		f.foldRow(r, id, e)
		return nil
	default:
		return fmt.Errorf("unknown event %T", r.Data)
	}
}

func (f *books) foldAccount(r *event.Recorded[any], id int64, e event.Event[book.Account]) error {
	a := f.accounts[id]
	_, first := e.(book.AccountOpened)
	if first {
		a = &account{id: id, ledger: ledgerOf(r), workspace: r.Meta.Workspace}
		f.accounts[id] = a
		f.sums.opened[id] = true
	}
	if a == nil {
		return fmt.Errorf("account %d was not opened", id)
	}
	a.revision = r.Revision
	if !a.changed {
		a.changed = true
		f.changed = append(f.changed, a)
	}
	was := a.Deleted
	a.Account = event.Evolve(a.Account, e, r.Position)
	if was == 0 && a.Deleted != 0 {
		f.sums.closed[id] = true
	}
	switch e.(type) {
	case book.AccountOpened, book.AccountRenamed, book.AccountTypeChanged, book.AccountMetalChanged:
		f.names = append(f.names, renamed{id, int64(r.Position), a.Name, a.Type, a.Metal, r.Revision, first})
	}
	return nil
}

// ledgerOf returns the name of the ledger of an account's event: the category of its stream.
func ledgerOf(r *event.Recorded[any]) string {
	name, _ := event.SplitStream(r.Stream)
	return name
}

// numbered returns the number in the stream's name.
func numbered(r *event.Recorded[any]) (int64, error) {
	n, err := strconv.ParseInt(r.StreamID(), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("stream %s has no number", r.Stream)
	}
	return n, nil
}
