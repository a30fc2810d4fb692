package ledgercmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/metal"
	"bahi/domain/unit"
)

// Transfer is a request to post two rows that move a value from one account to another.
type Transfer struct {
	book.Movement

	From int64     `json:"from" minimum:"1" doc:"ID of the account that gives"`
	To   int64     `json:"to" minimum:"1" doc:"ID of the account that takes"`
	Date unit.Date `json:"date" doc:"Date of both rows"`
}

// Paired has the rows of a pair after a command.
type Paired struct {
	Rows     []pairedRow
	Position event.Position
	Replayed bool
}

// pairedRow is a row of a pair. ID is 0 and Revision -1 in a dry run of a transfer.
type pairedRow struct {
	book.LedgerRow

	Revision int64
	Name     string // name of the account
}

// decideRow decides a command on a row.
func decideRow(ctx context.Context, tx *commands.Tx, r book.LedgerRow, c event.Command[book.Row]) (pairedRow, error) {
	l, err := commands.Decide(ctx, tx, r.Ledger.Rows, id(r.ID), c)
	r.Row = l.State
	return pairedRow{LedgerRow: r, Revision: l.Revision}, err
}

// Transfer posts the two rows of a transfer and pairs them.
func (b *Books) Transfer(ctx context.Context, req commands.Request, t Transfer) (Paired, error) {
	accounts := [...]int64{t.From, t.To}
	var ledgers [2]*book.Ledger
	var wrong []fault.Field
	for i, account := range accounts {
		l, err := b.ledgerOf(ctx, account)
		if err != nil {
			return Paired{}, err
		}
		if ledgers[i] = l; l == nil {
			wrong = append(wrong, noAccount(i))
		}
	}
	if t.From == t.To {
		wrong = append(wrong, fault.Field{Field: "to", Message: "must not be the account that gives"})
	}
	if len(wrong) > 0 {
		return Paired{}, b.AndLocked(ctx, req.Workspace, fault.Fields(append(wrong, b.checkTransfer(t, ledgers)...)...), &t.Date)
	}
	return b.pairing(ctx, req, ledgers[0], func(ctx context.Context, tx *commands.Tx) ([]pairedRow, error) {
		added, err := b.transferRows(ctx, tx, t, req.Workspace, ledgers)
		if err != nil {
			return nil, err
		}
		first, err := b.post(ctx, tx, added)
		if err != nil {
			return nil, err
		}
		rows := make([]pairedRow, len(added))
		for i, row := range added {
			rows[i] = pairedRow{LedgerRow: book.LedgerRow{Ledger: row.Ledger, Row: row.Evolve(book.Row{})}, Revision: -1}
			if first != 0 {
				rows[i].ID = first + int64(i)
			}
		}
		if first != 0 {
			err = pair(ctx, tx, rows)
		}
		return rows, err
	}, func(out commands.Outcome[book.Row]) ([]book.LedgerRow, error) {
		return []book.LedgerRow{{Ledger: ledgers[0], ID: out.Number()}, {Ledger: ledgers[1], ID: out.State.PairedWith}}, nil
	})
}

func noAccount(side int) fault.Field {
	return fault.Field{Field: [...]string{"from", "to"}[side], Message: "there is no open account with this id"}
}

// transferRows returns the rows of a transfer, or the faults.
func (b *Books) transferRows(ctx context.Context, tx *commands.Tx, t Transfer, workspace uuid.UUID,
	ledgers [2]*book.Ledger) ([]khata.Row, error) {
	wrong := b.checkTransfer(t, ledgers)
	var locked error
	for i, account := range [...]int64{t.From, t.To} {
		s, err := standingOf(ctx, tx, ledgers[i], account, workspace)
		if err != nil {
			return nil, err
		}
		if !s.AccountOpen {
			wrong = append(wrong, noAccount(i))
		}
		s.AccountOpen = true
		locked = s.CheckDates(t.Date)
	}
	if len(wrong) > 0 {
		return nil, fault.Besides(fault.Fields(wrong...), locked)
	}
	if locked != nil {
		return nil, locked
	}
	rows := make([]khata.Row, len(ledgers))
	for i, l := range ledgers {
		c := book.AddRow{Ledger: l, Account: [...]int64{t.From, t.To}[i], Today: b.Today(), RowInput: l.Transfer(t.Date, t.Movement, i == 0)}
		row, err := c.Row()
		if rows[i] = (khata.Row{Ledger: l, RowAdded: row}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// checkTransfer returns the faults of a transfer's value and date.
func (b *Books) checkTransfer(t Transfer, ledgers [2]*book.Ledger) []fault.Field {
	wrong := t.Check(ledgers[0], ledgers[1])
	if t.Date > b.Today()+1 {
		wrong = append(wrong, fault.Field{Field: "date", Message: "must not be after tomorrow"})
	}
	return wrong
}

// ledgerOf returns the ledger of an account, or nil. An account never changes its ledger.
func (b *Books) ledgerOf(ctx context.Context, account int64) (*book.Ledger, error) {
	for _, l := range ledger.All {
		a, err := commands.LoadCached(ctx, b.Commands, l.Accounts, id(account), func(a book.Account) bool { return a.Opened != 0 })
		if err != nil || a.Revision >= 0 {
			return l, err
		}
	}
	return nil, nil
}

// ledgerOfRow returns the ledger of a row, or nil.
func (b *Books) ledgerOfRow(ctx context.Context, row int64) (*book.Ledger, error) {
	for _, l := range ledger.All {
		r, err := commands.LoadCached(ctx, b.Commands, l.Rows, id(row), func(r book.Row) bool { return r.Account != 0 })
		if err != nil || r.Revision >= 0 {
			return l, err
		}
	}
	return nil, nil
}

// pairing handles a decision on the rows of a pair. The first row belongs to ledger l. A retry finds the rows again.
func (b *Books) pairing(ctx context.Context, req commands.Request, l *book.Ledger,
	decide func(context.Context, *commands.Tx) ([]pairedRow, error),
	again func(commands.Outcome[book.Row]) ([]book.LedgerRow, error)) (p Paired, err error) {
	out, err := commands.Do(ctx, b.Commands, req, l.Rows, func(ctx context.Context, tx *commands.Tx) (err error) {
		p.Rows, err = decide(ctx, tx)
		return err
	})
	if err != nil {
		return Paired{}, err
	}
	p.Position, p.Replayed = out.Position, out.Replayed
	if out.Replayed {
		rows, err := again(out)
		if err != nil {
			return p, err
		}
		p.Rows = make([]pairedRow, len(rows))
		for i, r := range rows {
			row, err := commands.LoadAt(ctx, b.Commands, r.Ledger.Rows, id(r.ID), out.Position)
			if err != nil {
				return p, err
			}
			r.Row = row.State
			p.Rows[i] = pairedRow{LedgerRow: r, Revision: row.Revision}
		}
	}
	for i, row := range p.Rows {
		a, err := commands.Load(ctx, b.Commands.Cached(), row.Ledger.Accounts, id(row.Account))
		if err != nil {
			return p, err
		}
		p.Rows[i].Name = a.State.Name
	}
	return p, nil
}

// pair records in each of two rows that it is paired with the other.
func pair(ctx context.Context, tx *commands.Tx, rows []pairedRow) error {
	for i, other := range []pairedRow{rows[1], rows[0]} {
		c := book.PairRow{RowPaired: book.RowPaired{With: other.ID, Account: other.Account}}
		row, err := decideRow(ctx, tx, rows[i].LedgerRow, c)
		if err != nil {
			return err
		}
		rows[i] = row
	}
	return nil
}

// PairRows pairs two rows. It changes nothing if they are already paired with each other.
func (b *Books) PairRows(ctx context.Context, req commands.Request, ids []int64) (Paired, error) {
	if len(ids) != 2 || ids[0] == ids[1] {
		return Paired{}, fault.Wrong("rows", "two different rows are needed")
	}
	found := make([]book.LedgerRow, len(ids))
	unknown := make([]error, len(ids))
	for i, row := range ids {
		l, err := b.ledgerOfRow(ctx, row)
		if err != nil {
			return Paired{}, err
		}
		if l == nil {
			unknown[i] = noRow(i)
		}
		found[i] = book.LedgerRow{Ledger: l, ID: row}
	}
	if err := fault.Join(unknown...); err != nil {
		return Paired{}, err
	}
	return b.pairing(ctx, req, found[0].Ledger, func(ctx context.Context, tx *commands.Tx) ([]pairedRow, error) {
		rows := make([]pairedRow, len(found))
		var metals [2]string
		for i, r := range found {
			row, account, err := loadRow(ctx, tx, r, req.Workspace)
			if err == nil && !account.Open() {
				err = noRow(i)
			}
			if err != nil {
				return nil, err
			}
			of, err := commands.Load(ctx, tx, metal.Kind, req.Workspace.String())
			if err != nil {
				return nil, err
			}
			r.Row = row.State
			rows[i] = pairedRow{LedgerRow: r, Revision: row.Revision}
			metals[i] = cmp.Or(r.Metal(), account.Metal, of.State.Of())
		}
		if rows[0].PairedWith == rows[1].ID {
			_, err := commands.Decide(ctx, tx, found[0].Ledger.Rows, id(found[0].ID), book.KeepRow{})
			return rows, err
		}
		if err := book.CheckPair(rows[0].LedgerRow, rows[1].LedgerRow, metals); err != nil {
			return nil, err
		}
		return rows, pair(ctx, tx, rows)
	}, func(commands.Outcome[book.Row]) ([]book.LedgerRow, error) { return found, nil })
}

func noRow(nth int) error {
	return fault.Wrong(fmt.Sprintf("rows[%d]", nth), "there is no row with this id")
}

// loadRow returns a row of a workspace and its account. Without such a row, the returned account is not open.
func loadRow(ctx context.Context, tx *commands.Tx, r book.LedgerRow, workspace uuid.UUID) (row commands.Loaded[book.Row], a book.Account,
	err error) {
	if row, err = commands.Load(ctx, tx, r.Ledger.Rows, id(r.ID)); err != nil || !row.State.Exists() || row.Workspace != workspace {
		return row, a, err
	}
	account, err := commands.Load(ctx, tx, r.Ledger.Accounts, id(row.State.Account))
	return row, account.State, err
}

// UnpairRow dissolves the pair of a row. It changes the other row only if that row's account is open.
func (b *Books) UnpairRow(ctx context.Context, req commands.Request, row int64) (Paired, error) {
	l, err := b.ledgerOfRow(ctx, row)
	if err == nil && l == nil {
		err = book.ErrNoRow
	}
	if err != nil {
		return Paired{}, err
	}
	first := book.LedgerRow{Ledger: l, ID: row}
	return b.pairing(ctx, req, l, func(ctx context.Context, tx *commands.Tx) ([]pairedRow, error) {
		loaded, account, err := loadRow(ctx, tx, first, req.Workspace)
		if err == nil && !account.Open() {
			err = book.ErrNoRow
		}
		if err != nil {
			return nil, err
		}
		both := []book.LedgerRow{first}
		if other, err := b.other(ctx, tx, loaded.State, req.Workspace); err != nil {
			return nil, err
		} else if other.ID != 0 {
			both = append(both, other)
		}
		rows := make([]pairedRow, len(both))
		for i, r := range both {
			if rows[i], err = decideRow(ctx, tx, r, book.UnpairRow{}); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, func(out commands.Outcome[book.Row]) ([]book.LedgerRow, error) {
		after, err := commands.LoadAt(ctx, b.Commands, l.Rows, id(row), out.Position)
		if err != nil {
			return nil, err
		}
		before, err := commands.LoadAt(ctx, b.Commands, l.Rows, id(row), after.Position-1)
		if err != nil {
			return nil, err
		}
		other, err := b.ledgerOfRow(ctx, before.State.PairedWith)
		return []book.LedgerRow{first, {Ledger: other, ID: before.State.PairedWith}}, err
	})
}

// other returns the other row of a pair. ID is 0 if there is none or its account was deleted.
func (b *Books) other(ctx context.Context, tx *commands.Tx, r book.Row, workspace uuid.UUID) (other book.LedgerRow, err error) {
	if r.PairedWith == 0 {
		return other, nil
	}
	l, err := b.ledgerOfRow(ctx, r.PairedWith)
	if err != nil || l == nil {
		return other, err
	}
	loaded, account, err := loadRow(ctx, tx, book.LedgerRow{Ledger: l, ID: r.PairedWith}, workspace)
	if err == nil && account.Open() {
		other = book.LedgerRow{Ledger: l, ID: r.PairedWith, Row: loaded.State}
	}
	return other, err
}

// follow applies a change of a row to its paired row, or refuses the change.
func (b *Books) follow(ctx context.Context, tx *commands.Tx, before, after book.Row, workspace uuid.UUID) error {
	other, err := b.other(ctx, tx, before, workspace)
	if err != nil || other.ID == 0 || before == after {
		return err
	}
	c, err := book.Follow(before, after, other, b.Today())
	if err != nil || c == nil {
		return err
	}
	changed, err := decideRow(ctx, tx, other, c)
	if err != nil {
		return &rowError{other.ID, err}
	}
	s, err := standingOf(ctx, tx, other.Ledger, other.Account, workspace)
	if err == nil {
		err = s.RefusesStep(other.Row, changed.Row)
	}
	if err != nil {
		return &rowError{other.ID, err}
	}
	return nil
}
