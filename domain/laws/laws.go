// Package laws checks that a log obeys the rules between its records (docs/events.md, "Rules between records"). Commands check these rules
// before they write, so an event that breaks a rule comes from a faulty program or another writer.
package laws

import (
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/period"
	"bahi/domain/ledger/takada"
	"bahi/domain/marketplace/product"
	"bahi/domain/request"
	"bahi/domain/unit"
)

// Breach is an event that breaks a law.
type Breach struct {
	Position event.Position
	Stream   string
	Law      string
}

// Checker reads a log from its first event on. It uses about 130 bytes of memory for each row, order, takada and unique value.
type Checker struct {
	values

	accounts map[int64]account
	rows     map[int64]row
	locks    map[uuid.UUID]*unit.Date
	periods  map[uuid.UUID]period.State
	orders   map[int64]ordered
	takadas  map[int64]int64 // order of each existing takada
	backs    []back          // rows of the transaction that reverse others
	pairs    []pairing       // rows that the transaction pairs

	at    Breach // the event being checked
	wrong []Breach
}

type account struct {
	ledger    *book.Ledger
	workspace uuid.UUID
	open      bool

	opened, deleted event.Position
}

type row struct {
	account, reverses, paired int64
	date                      unit.Date
	in, out                   book.Effect
	loss                      unit.Grams // wastage of the IN side; the OUT side has none
	reversed, void            bool
}

// back is a row that reverses another row.
type back struct {
	at  Breach
	row int64 // the other one
}

// pairing is a row that is paired.
type pairing struct {
	at  Breach
	row int64
	book.RowPaired
}

type ordered struct {
	client    int64
	workspace uuid.UUID
	takadas   int
}

// New returns a Checker for an empty log.
func New() *Checker {
	return &Checker{
		values:   values{claimed: map[uint64]value{}, records: map[uint64][]held{}, changes: map[uint64]int{}, sellers: map[uint64]uuid.UUID{}},
		accounts: map[int64]account{}, rows: map[int64]row{}, locks: map[uuid.UUID]*unit.Date{},
		periods: map[uuid.UUID]period.State{},
		orders:  map[int64]ordered{}, takadas: map[int64]int64{},
	}
}

// Next checks the next event, and returns the laws that the event breaks by itself. Commit checks the transaction as a whole.
func (c *Checker) Next(e event.Recorded[any]) []Breach {
	c.wrong, c.at = nil, Breach{Position: e.Position, Stream: e.Stream}
	id, _ := strconv.ParseInt(e.StreamID(), 10, 64) // 0 if the id is no number; then no law uses it
	switch data := e.Data.(type) {
	case bookslock.Moved:
		c.lock(e, data)
	case event.Event[period.State]:
		c.period(e, data)
	case request.Accepted:
		c.law(e.Revision == 0, "an Idempotency-Key has one effect")
	case event.Event[book.Account]:
		c.account(e, id, data)
	case event.Event[book.Row]:
		c.row(e, id, data)
	case event.Event[order.State]:
		c.order(e, id, data)
	case event.Event[takada.State]:
		c.takada(e, id, data)
	default:
		c.unique(e)
	}
	return c.wrong
}

// judged has the categories of streams with events that a Checker reads, except the categories of ledgers.
var judged = append(slices.Concat(slices.Collect(maps.Keys(claimants)), slices.Collect(maps.Values(claimants))), product.Batches.Category(),
	bookslock.Kind.Category(), period.Kind.Category(), request.Kind.Category(), order.Kind.Category(), takada.Kind.Category())

// Commit ends a transaction. It returns the laws that the transaction breaks as a whole.
func (c *Checker) Commit() []Breach {
	c.wrong = nil
	for _, b := range c.backs {
		c.at = b.at
		c.law(c.rows[b.row].reversed, "a row that names another one reverses it")
	}
	c.backs = c.backs[:0]
	for _, p := range c.pairs {
		c.at = p.at
		other := c.rows[p.With]
		c.law(other.paired == p.row && other.account == p.Account && other.account != c.rows[p.row].account,
			"two paired rows have different accounts and name each other")
		c.law(c.debit(p.row).Plus(c.debit(p.With)) == book.Effect{}, "the values of two paired rows are opposite")
	}
	c.pairs = c.pairs[:0]
	c.commitValues()
	return c.wrong
}

// Reads reports whether a Checker reads the events of a category of streams.
func Reads(category string) bool {
	return slices.Contains(judged, category) || ledger.Of(category) != nil
}

// law records a broken law if kept is false.
func (c *Checker) law(kept bool, text string) {
	if !kept {
		c.at.Law = text
		c.wrong = append(c.wrong, c.at)
	}
}

func (c *Checker) account(e event.Recorded[any], id int64, data event.Event[book.Account]) {
	category, _ := event.SplitStream(e.Stream)
	switch data := data.(type) {
	case book.AccountOpened:
		c.accounts[id] = account{ledger: ledger.Of(category), workspace: e.Meta.Workspace, open: true, opened: e.Position}
	case book.AccountDeleted:
		c.law(c.isOpen(id, ledger.Of(category), e), "only an open account is deleted")
		c.law(data.EarliestRow == nil || !c.isLocked(e, *data.EarliestRow), "an account with a locked row is not deleted")
		a := c.accounts[id]
		a.open, a.deleted = false, e.Position
		c.accounts[id] = a
	}
}

// debit returns the change of the workshop's assets by a row without wastage, or zero for a void row.
func (c *Checker) debit(id int64) book.Effect {
	r := c.rows[id]
	moved := r.in.Minus(r.out).Minus(book.Effect{Fine: r.loss})
	if of := c.accounts[r.account].ledger; of != nil && of.Held {
		return moved
	}
	return book.Effect{}.Minus(moved)
}

// isOpen reports whether an account of a ledger is open in the workspace of an event.
func (c *Checker) isOpen(id int64, of *book.Ledger, e event.Recorded[any]) bool {
	a := c.accounts[id]
	return a.open && a.ledger == of && a.workspace == e.Meta.Workspace
}

func (c *Checker) isLocked(e event.Recorded[any], date unit.Date) bool {
	through := c.locks[e.Meta.Workspace]
	return through != nil && date <= *through
}

func (c *Checker) row(e event.Recorded[any], id int64, data event.Event[book.Row]) {
	category, _ := event.SplitStream(e.Stream)
	before, known := c.rows[id]
	added, adds := data.(book.RowAdded)
	if adds {
		c.law(!known, "a row is added once")
		before = row{account: added.Account, date: added.Date, in: added.In.Effect, out: added.Out.Effect, loss: added.In.Loss,
			reverses: added.Reverses}
		if added.Reverses != 0 {
			c.backs = append(c.backs, back{c.at, added.Reverses})
		}
	} else {
		c.law(known, "only an existing row is changed")
	}
	after := before
	c.law(c.isOpen(before.account, ledger.Of(category), e), "a row is of an open account of its workspace")
	if reversed, ok := data.(book.RowReversed); ok {
		c.law(!before.reversed && !before.void, "a row is reversed once")
		by := c.rows[reversed.By]
		c.law(by.reverses == id && by.account == before.account, "a row is reversed by a row of its account that names it")
		after.reversed = true
		c.rows[id] = after
		return
	}
	switch data := data.(type) {
	case book.RowPaired:
		c.law(before.paired == 0, "a row is paired once")
		after.paired = data.With
		c.pairs = append(c.pairs, pairing{c.at, id, data})
		c.rows[id] = after
		return
	case book.RowUnpaired:
		c.law(before.paired != 0, "only a paired row is unpaired")
		after.paired = 0
		c.rows[id] = after
		return
	}
	if !adds {
		c.law(!before.reversed && !before.void && before.reverses == 0, "a settled row does not change")
	}
	switch data := data.(type) {
	case book.RowEdited:
		if data.Date != nil {
			after.date = *data.Date
		}
		if data.In != nil {
			after.in, after.loss = data.In.Effect, data.In.Loss
		}
		if data.Out != nil {
			after.out = data.Out.Effect
		}
		if after.paired != 0 {
			c.pairs = append(c.pairs, pairing{c.at, id, book.RowPaired{With: after.paired, Account: c.rows[after.paired].account}})
		}
	case book.RowVoided:
		after.void = true
	}
	c.law(!c.isLocked(e, before.date) && !c.isLocked(e, after.date), "no row changes on a locked day")
	c.law(!c.isClosed(e, before.date) && !c.isClosed(e, after.date), "no row changes in a closed period")
	c.rows[id] = after
	if _, deleted := data.(book.RowDeleted); deleted {
		delete(c.rows, id)
	}
}

func (c *Checker) order(e event.Recorded[any], id int64, data event.Event[order.State]) {
	o, known := c.orders[id]
	_, adds := data.(order.Added)
	c.law(known != adds, "an order is added once, and changed while it exists")
	switch data := data.(type) {
	case order.Added:
		o = ordered{client: data.Client, workspace: e.Meta.Workspace}
	case order.Edited:
		if data.Client.Present() {
			c.law(o.takadas == 0, "an order with takadas keeps its client")
			o.client = data.Client.Value
		}
	case order.Deleted:
		delete(c.orders, id)
		return
	}
	c.law(c.isOpen(o.client, client.Ledger, e), "an order is of an open client of its workspace")
	c.orders[id] = o
}

func (c *Checker) takada(e event.Recorded[any], id int64, data event.Event[takada.State]) {
	was, known := c.takadas[id]
	_, adds := data.(takada.Added)
	c.law(known != adds, "a takada is added once, and changed while it exists")
	now, items := was, []takada.Item{}
	switch data := data.(type) {
	case takada.Added:
		now, items = data.Order, data.Items
	case takada.Edited:
		now, items = data.Order.Or(was), data.Items.Value
	case takada.Deleted:
		c.attach(was, -1)
		delete(c.takadas, id)
		return
	}
	c.law(c.hasOrder(now, e), "a takada belongs to an existing order")
	c.law(!known || c.orders[was].client == c.orders[now].client, "a takada stays with its client")
	for _, item := range items {
		c.law(item.Karigar == nil || c.isOpen(*item.Karigar, karigar.Ledger, e), "a takada names open karigars of its workspace")
	}
	if known {
		c.attach(was, -1)
	}
	c.attach(now, 1)
	c.takadas[id] = now
}

// hasOrder reports whether an order exists in the workspace of an event. Deleting a client deletes its orders.
func (c *Checker) hasOrder(id int64, e event.Recorded[any]) bool {
	o, known := c.orders[id]
	return known && o.workspace == e.Meta.Workspace && c.isOpen(o.client, client.Ledger, e)
}

// attach adds a takada to an order's count, or subtracts it.
func (c *Checker) attach(id int64, by int) {
	if o, known := c.orders[id]; known {
		o.takadas += by
		c.orders[id] = o
	}
}
