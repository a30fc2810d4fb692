// Package ledger has the projections of the ledger area.
package ledger

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/projections"
)

//go:embed books.sql
var booksDDL string

// Books has the accounts and rows of all ledgers, every version of them, and what they amount to.
//
// It folds a batch in memory and writes the result with few statements: what a row of the log costs
// decides how fast the whole system writes and rebuilds. `bahi bench` measures it.
var Books = projections.Define("books", 3, booksDDL,
	projections.Apply(booksTypes(), foldBooks).Finishing(finishBooks).Resuming(resumeBooks)).Parted(partOf)

// stillCurrent ends the interval of what is current.
const stillCurrent = math.MaxInt64

// ledgerOf says which ledger a category of streams belongs to.
var ledgerOf = map[string]string{
	bank.Accounts.Category(): bank.Ledger.Name, bank.Rows.Category(): bank.Ledger.Name, bank.Bulks.Category(): bank.Ledger.Name,
}

func booksTypes() []string {
	return slices.Concat(bank.Accounts.Names(), bank.Rows.Names(), bank.Bulks.Names(), bookslock.Kind.Names())
}

// account is what the fold knows of an account.
type account struct {
	id        int64
	ledger    string
	workspace uuid.UUID
	name      string
	revision  int64
	opened    int64
	deleted   int64
	changed   bool
}

// lock is what the fold knows of the lock of a workspace's books.
type lock struct {
	through  *unit.Date
	moved    event.Position
	revision int64
	changed  bool
}

// version is a row as it was between two positions.
type version struct {
	row, from, to int64
	account       int64
	date          unit.Date
	in, out       json.RawMessage
	inSum, outSum book.Effect
	revision      int64
	first         int64 // revision with which the version began
	deleted       bool
	void          bool
	bulk          int64
	reverses      int64
	reversedBy    int64
	reversal      int64
	actor, reason string
	at            time.Time
	stored        bool // it was in the table before this batch
}

func (v *version) sum() book.Effect { return v.inSum.Minus(v.outSum) }

// books folds one batch.
type books struct {
	*kept

	current  map[int64]*version // by row
	versions []*version         // new ones, in order
	ended    []*version         // stored ones that are no longer current
	passed   []*version         // stored ones whose streams went on without changing them
	notes    []note             // where they, and others, did
	names    []renamed
	bulks    []bulk
	filled   map[int64]int64
	sums     *sums
}

type renamed struct {
	account  int64
	position int64
	name     string
	revision int64
	first    bool
}

// note is an event of a row's own stream that changed nothing of the row.
type note struct{ row, position, revision int64 }

type bulk struct {
	id       int64
	ledger   string
	position int64

	followUps int
}

// partOf shares a fill out by accounts. Who changes a row does not say which account it is of, so every part
// looks whether it is of one of its own; and a lock concerns all accounts of its workspace.
func partOf(r *event.Recorded[any]) (account int64, all bool) {
	switch e := r.Data.(type) {
	case book.AccountChange:
		id, err := numbered(r)
		return id, err != nil // all of them refuse what has no number
	case book.RowChange:
		c := e.RowChange()
		return c.Account, c.Op != book.Add
	case book.BulkChange:
		if rows := e.BulkChange(); len(rows) > 0 {
			return rows[0].Account, false
		}
	}
	return 0, true
}

func foldBooks(ctx context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	k, ok := b.Kept.(*kept)
	if !ok {
		k = newKept(b)
	}
	var err error
	k, err = k.bounded(ctx, b)
	if err != nil {
		return err
	}
	b.Kept = k
	f := &books{kept: k, current: map[int64]*version{}, filled: map[int64]int64{}, sums: newSums(k)}
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

// fold takes one event. Rules that span streams are decided here, by position: what breaks one
// changes nothing.
func (f *books) fold(r *event.Recorded[any]) error {
	switch e := r.Data.(type) {
	case bookslock.Moved:
		l := f.lock(r.Meta.Workspace)
		l.through, l.moved, l.revision, l.changed = e.To, r.Position, r.Revision, true
		return nil
	case book.AccountChange:
		return f.foldAccount(r, e.AccountChange())
	case book.RowChange:
		row, err := numbered(r)
		if err != nil {
			return err
		}
		if r.Meta.Of != 0 { // it only fills the stream of a row that its bulk has posted or reversed
			f.carryOut(r, row, e.RowChange())
			return nil
		}
		f.foldRow(r, row, 0, e.RowChange(), r.Revision)
		return nil
	case book.BulkChange:
		return f.foldBulk(r, e.BulkChange())
	default:
		return fmt.Errorf("%T is nothing that the books know", r.Data)
	}
}

func (f *books) foldAccount(r *event.Recorded[any], c book.AccountChanged) error {
	id, err := numbered(r)
	if err != nil {
		return err
	}
	a := f.accounts[id]
	switch {
	case c.Opened != "":
		category, _ := event.SplitStream(r.Stream)
		f.accounts[id] = &account{
			id: id, ledger: ledgerOf[category], workspace: r.Meta.Workspace, name: c.Opened,
			revision: r.Revision, opened: int64(r.Position), deleted: stillCurrent, changed: true,
		}
		f.names = append(f.names, renamed{account: id, position: int64(r.Position), name: c.Opened, revision: r.Revision, first: true})
		f.sums.touch(id)
		return nil
	case a == nil:
		return fmt.Errorf("account %d was not opened", id)
	case c.Renamed != "":
		a.name = c.Renamed
		f.names = append(f.names, renamed{account: id, position: int64(r.Position), name: c.Renamed, revision: r.Revision})
	case c.Deleted:
		l := f.lock(a.workspace)
		if (book.Standing{AccountOpen: true, LockedThrough: l.through, LockMoved: l.moved}).RefusesDeletion(c) == nil {
			a.deleted = int64(r.Position)
		}
	}
	a.revision, a.changed = r.Revision, true
	return nil
}

// standing is how the rules see the account at this event.
func (f *books) standing(id int64, r *event.Recorded[any]) book.Standing {
	a := f.accounts[id]
	category, _ := event.SplitStream(r.Stream)
	return book.Standing{
		AccountOpen:   a != nil && a.deleted == stillCurrent && a.workspace == r.Meta.Workspace && a.ledger == ledgerOf[category],
		LockedThrough: f.lock(r.Meta.Workspace).through,
	}
}

func (f *books) lock(workspace uuid.UUID) *lock {
	l := f.locks[workspace]
	if l == nil {
		l = &lock{}
		f.locks[workspace] = l
	}
	return l
}

func entries(s *book.Side) json.RawMessage {
	text, err := json.Marshal(s.Entries)
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	return text
}

// numbered answers the number in the stream's name.
func numbered(r *event.Recorded[any]) (int64, error) {
	n, err := strconv.ParseInt(r.StreamID(), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("stream %s has no number", r.Stream)
	}
	return n, nil
}
