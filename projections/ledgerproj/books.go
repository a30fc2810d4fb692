// Package ledger has the projections of the ledger area.
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
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/metal"
	"bahi/domain/unit"
	"bahi/projections"
)

//go:embed books.sql
var booksDDL string

// Books has the accounts and rows of all ledgers, every version of them, and what they amount to.
//
// It folds a batch in memory and writes the result with few statements: what a row of the log costs
// decides how fast the whole system writes and rebuilds. `bahi bench` measures it. What becomes of an account or a
// row the domain's own Evolve says.
var Books = projections.Define("books", 8, booksDDL,
	projections.Apply(booksTypes(),
		foldBooks).Finishing(finishBooks).Resuming(resumeBooks)).PartitionedBy(partOf).WithBatchDelay(booksGather)

// booksGather is how long a row may wait for others while nobody reads the books: the fold of one row costs as much as that of ten.
const booksGather = 10 * time.Millisecond

// stillCurrent ends the interval of what is current.
const stillCurrent = math.MaxInt64

// booksTypes names what the books fold: also events of ledgers that this program does not have yet, so that a ledger
// comes without a new version of the tables.
func booksTypes() []string {
	return slices.Concat(book.EventNames(), bookslock.Kind.Names(), metal.Kind.Names())
}

// account is what the fold knows of an account.
type account struct {
	book.Account

	id        int64
	ledger    string
	workspace uuid.UUID
	revision  int64
	changed   bool // by this batch
}

// lock is the lock of a workspace's books, which this batch moves.
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

// version is a row as it was between two positions.
type version struct {
	book.Row

	row, from, to int64
	revision      int64
	loss          unit.Grams // that the row adds to its account's: one that reverses another takes that one's away
	actor, reason string
	at            time.Time
	stored        bool // it was in the table before this batch
}

// sum is what the row adds to its account.
func (v *version) sum() book.Effect {
	in, out := v.Counts()
	return in.Minus(out)
}

// books folds one batch.
type books struct {
	*kept

	changed  []*account
	current  map[int64]*version // by row
	versions []*version         // new ones, in order
	ended    []*version         // stored ones that are no longer current
	names    []renamed
	locks    map[uuid.UUID]lock
	metals   []metalSet
	sums     *sums
}

// renamed is what an account was called from a position on, and which type and metal it had.
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

// partOf shares a fill out by accounts. An event that changes a row does not name the account, so every part looks
// whether the row is of one of its own.
func partOf(r *event.Recorded[any]) (account int64, all bool) {
	switch e := r.Data.(type) {
	case event.Event[book.Account]:
		id, err := numbered(r)
		return id, err != nil // all of them refuse what has no number
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

// fold takes one event.
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
		return fmt.Errorf("%T is nothing that the books know", r.Data)
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

// ledgerOf is the name of the ledger that the event's stream belongs to.
func ledgerOf(r *event.Recorded[any]) string {
	category, _ := event.SplitStream(r.Stream)
	return book.LedgerOf(category)
}

// numbered returns the number in the stream's name.
func numbered(r *event.Recorded[any]) (int64, error) {
	n, err := strconv.ParseInt(r.StreamID(), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("stream %s has no number", r.Stream)
	}
	return n, nil
}
