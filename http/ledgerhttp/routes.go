// Package ledgerhttp has the operations of the ledger area. They fill commands, handle them, and return views.
package ledgerhttp

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
	"bahi/readmodels/ledgerview"
)

// log converts times and positions of the log.
type log interface {
	// PositionAt returns the greatest position recorded at or before a time, 0 if there is none.
	PositionAt(ctx context.Context, at time.Time) (event.Position, error)
	// RecordedAt returns the time at which the event at a position was recorded.
	RecordedAt(ctx context.Context, position event.Position) (time.Time, error)
	// Whole returns the position itself, or the end of the previous transaction if the position is inside a transaction.
	Whole(ctx context.Context, position event.Position) (event.Position, error)
}

// Routes registers the operations.
type Routes struct {
	API   *api.API
	Books *ledgercmd.Books
	Views *ledgerview.Views
	Log   log
	Store uuid.UUID      // printed on statements
	Zone  *time.Location // time zone of the workshop
	Now   func() time.Time

	Proofs    *auditview.Proofs
	Verifier  string // address of the page that verifies statements, printed on them; "": none
	Scans     *ledgercmd.Khatas
	Periods   *ledgercmd.Periods
	Companies companies

	Confirming *ledgercmd.Confirmations
}

// companies reads the companies of workspaces.
type companies interface {
	// CompanyName returns the name of a workspace's oldest company as of a position, or "".
	CompanyName(ctx context.Context, at *readmodels.At, workspace uuid.UUID, position event.Position) (string, error)
}

// title returns the title of prints: the name of the workspace's company as of a position, or Bahi.
func (r *Routes) title(ctx context.Context, workspace uuid.UUID, at event.Position) (string, error) {
	name, err := r.Companies.CompanyName(ctx, api.At(ctx), workspace, at)
	return cmp.Or(name, "Bahi"), err
}

// The permissions and limits that the area's operations share.
const (
	area      = actor.Ledger
	limit     = "ledger_general"
	limitPDF  = "ledger_pdf"
	bulkBytes = 4 << 20
)

var tags = []string{"Ledger"}

// ledgerOp completes an operation of the area. Reads are strict about the query. Writes are strict about the body and have a dry run.
func ledgerOp(o api.Op) api.Op {
	if o.Limit = cmp.Or(o.Limit, limit); o.Tags == nil {
		o.Tags = tags
	}
	if !o.Operator && !o.Public {
		o.Area = area
	}
	read := o.Method == "GET"
	o.StrictQuery, o.StrictBody, o.DryRun = o.StrictQuery || read, o.Method == "POST" || o.Method == "PUT", !read
	return o
}

// AsOf selects a past state: rows dated up to a day, or the state as known at a position or time.
type AsOf struct {
	Of      api.Optional[unit.Date] `query:"as_of"    doc:"Only rows dated up to this day"`
	KnownAt string                  `query:"known_at" doc:"State of the log at this RFC 3339 time or position"`
}

var errKnownAt = fault.Wrong("known_at", "expected an RFC 3339 time, with its + as %2B in a URL, or a log position")

// errFuture refuses a known_at in the future.
var errFuture = fault.Wrong("known_at", "must not be in the future")

// as reads the parameters.
func (r *Routes) as(ctx context.Context, in AsOf) (as ledgerview.As, err error) {
	as.Of = in.Of.Get()
	if in.KnownAt == "" {
		return as, nil
	}
	if n, err := strconv.ParseUint(in.KnownAt, 10, 63); err == nil {
		position, err := r.Log.Whole(ctx, event.Position(n))
		as.KnownAt = &position
		return as, err
	}
	at, err := time.Parse(time.RFC3339Nano, in.KnownAt)
	if err != nil {
		return as, errKnownAt
	}
	if at.After(r.Now()) {
		return as, errFuture
	}
	position, err := r.Log.PositionAt(ctx, at)
	as.KnownAt = &position
	return as, err
}

// Days selects days of a ledger.
type Days struct {
	AsOf

	From api.Optional[unit.Date] `query:"from" doc:"First day"`
	To   api.Optional[unit.Date] `query:"to"   doc:"Last day"`
}

func (r *Routes) days(ctx context.Context, in Days) (sel ledgerview.Selection, err error) {
	switch from := in.From.Get(); {
	case from != nil && in.To.Set && *from > in.To.Value:
		return sel, fault.Wrong("from", "must not be after to")
	case from != nil && in.Of.Set && *from > in.Of.Value:
		return sel, fault.Wrong("from", "must not be after as_of")
	}
	as, err := r.as(ctx, in.AsOf)
	return ledgerview.Selection{As: as, From: in.From.Get(), To: in.To.Get()}, err
}

// SomePage selects one page of a list, or all rows.
type SomePage struct {
	Page     int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"Number of the page, from 1; requires page_size"`
	PageSize int `query:"page_size" minimum:"1" maximum:"1000" doc:"Rows per page; absent: all rows"`
}

func (p SomePage) get() (readmodels.Page, error) {
	if p.Page > 1 && p.PageSize == 0 {
		return readmodels.Page{}, fault.Wrong("page", "requires page_size")
	}
	return readmodels.Page{Number: p.Page, Size: p.PageSize}, nil
}

// shortList is the maximum number of rows that are read without a turn.
const shortList = 50

// read reads a page, or a short list, immediately. It reads a longer list again when the limiter allows it. take reads a page and returns
// the number of all rows.
func (p SomePage) read(ctx context.Context, take func(readmodels.Page) (total int64, err error)) error {
	page, err := p.get()
	if err != nil {
		return err
	}
	if p.PageSize > 0 {
		_, err = take(page)
		return err
	}
	short, err := api.At(ctx).Attempt(func() (bool, error) {
		total, err := take(readmodels.Page{Number: 1, Size: shortList})
		return err != nil || total <= shortList, err
	})
	if short {
		return err
	}
	return api.InTurn(ctx, func() error {
		_, err := take(page)
		return err
	})
}

// Selection selects a part of a ledger.
type Selection struct {
	Days
	SomePage
}

func (r *Routes) selection(ctx context.Context, in Selection) (sel ledgerview.Selection, err error) {
	page, err := in.get()
	if err != nil {
		return sel, err
	}
	sel, err = r.days(ctx, in.Days)
	sel.Page, sel.PageSize = page.Number, page.Size
	return sel, err
}

func workspace(ctx context.Context) uuid.UUID { return api.Caller(ctx).Workspace }

// accountOf returns the key of an account in the caller's workspace.
func accountOf(ctx context.Context, l *book.Ledger, id int64) ledgerview.AccountKey {
	return ledgerview.AccountKey{Workspace: workspace(ctx), Ledger: l, ID: id}
}

// Register registers all operations of the area.
func (r *Routes) Register() {
	for _, l := range ledgers {
		l.register(r)
	}
	r.Orders()
	r.takadas()
	r.orderDrafts()
	r.scannedPages()
	r.booksLock()
	r.closedPeriods()
	r.summary()
	r.Named()
	r.daybook()
	r.confirmations()
	r.transfers()
	r.booksMetal()
	r.trialBalance()
}
