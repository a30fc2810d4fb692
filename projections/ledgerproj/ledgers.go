package ledgerproj

import (
	"github.com/google/uuid"

	"bahi/domain/unit"
	"bahi/projections"
)

// Summaries of the books are read often and must not sum ten thousand accounts each time. So the tables ledger_total and ledger_day have
// the sums of all open accounts of a ledger. A batch updates the sums, and a fill computes them at its end.

// ledgerKey names a ledger of a workspace.
type ledgerKey struct {
	workspace uuid.UUID
	ledger    string
}

// ledgerDay names a day of a ledger.
type ledgerDay struct {
	ledgerKey

	day unit.Date
}

// ledgerSums are the changes of a ledger's balances in a batch. Positive and negative balances have separate sums, both positive.
type ledgerSums struct {
	accounts             int64
	cashAbove, cashBelow cash
	fineAbove, fineBelow fine
}

// count adds an account's balances, or subtracts them if sign is -1.
func (l *ledgerSums) count(a amount, sign int64) {
	l.cashAbove.count(a.cash.total, sign, &l.cashBelow.total)
	l.fineAbove.count(a.fine.total, sign, &l.fineBelow.total)
}

// count adds a positive total to t, and subtracts a negative one from below. If sign is -1, it does the opposite.
func (t *total) count(of total, sign int64, below *total) {
	if of.high < 0 {
		t, sign = below, -sign
	}
	t.plus(of, sign)
}

// daySums are the changes of a ledger's day in a batch.
type daySums struct {
	rows            int64
	inCash, outCash cash
	inFine, outFine fine
}

func (d *daySums) count(v *version, sign int64) {
	in, out := v.Counts()
	d.rows += sign
	d.inCash.add(sign * int64(in.Cash))
	d.outCash.add(sign * int64(out.Cash))
	d.inFine.add(sign * int64(in.Fine))
	d.outFine.add(sign * int64(out.Fine))
}

// ledgers has the changes of ledgers in a batch.
type ledgers struct {
	before map[int64]amount // balances of accounts before the batch
	opened map[int64]bool
	closed map[int64]bool
	days   map[ledgerDay]*daySums
}

func newLedgers() ledgers {
	return ledgers{before: map[int64]amount{}, opened: map[int64]bool{}, closed: map[int64]bool{}, days: map[ledgerDay]*daySums{}}
}

func (a *account) key() ledgerKey { return ledgerKey{a.workspace, a.ledger} }

// moveDay adds the change from one version of a row to the next to its ledger's days.
func (s *sums) moveDay(before, after *version) {
	a := s.accounts[after.Account]
	if s.filling || a == nil {
		return
	}
	for sign, v := range map[int64]*version{-1: before, 1: after} {
		if v == nil || v.Deleted {
			continue
		}
		day := ledgerDay{a.key(), v.Date}
		if s.days[day] == nil {
			s.days[day] = &daySums{}
		}
		s.days[day].count(v, sign)
	}
}

// ledgerChanges returns the changes of the ledgers' balances in the batch.
func (s *sums) ledgerChanges() map[ledgerKey]*ledgerSums {
	changes := map[ledgerKey]*ledgerSums{}
	for n, t := range s.touched {
		a := s.accounts[n.account]
		if n.level != levelAccount || a == nil {
			continue
		}
		open := a.Deleted == 0
		change := changes[a.key()]
		if change == nil {
			change = &ledgerSums{}
			changes[a.key()] = change
		}
		if !s.opened[n.account] && (open || s.closed[n.account]) {
			change.accounts--
			change.count(s.ledgers.before[n.account], -1)
		}
		if open {
			change.accounts++
			change.count(*t, 1)
		}
	}
	return changes
}

// queueLedgers queues the changes of ledgers.
func (f *books) queueLedgers(b *projections.Batch) {
	for key, c := range f.sums.ledgerChanges() {
		if *c == (ledgerSums{}) {
			continue
		}
		b.Exec(`
			insert into ledger_total as t (workspace_id, ledger, accounts, cash_above, cash_below, fine_above, fine_below)
			values ($1, $2, $3, $4::text::numeric, $5::text::numeric, $6::text::numeric, $7::text::numeric)
			on conflict (workspace_id, ledger) do update set accounts = t.accounts + excluded.accounts,
				cash_above = t.cash_above + excluded.cash_above, cash_below = t.cash_below + excluded.cash_below,
				fine_above = t.fine_above + excluded.fine_above, fine_below = t.fine_below + excluded.fine_below`,
			key.workspace, key.ledger, c.accounts, c.cashAbove.String(), c.cashBelow.String(), c.fineAbove.String(), c.fineBelow.String())
		if c.accounts < 0 {
			b.Exec(`delete from ledger_total where workspace_id = $1 and ledger = $2 and accounts = 0`, key.workspace, key.ledger)
		}
	}
	for day, c := range f.sums.days {
		if *c == (daySums{}) {
			continue
		}
		b.Exec(`
			insert into ledger_day as d (workspace_id, ledger, date, row_count, in_cash, out_cash, in_fine, out_fine)
			values ($1, $2, $3::text::date, $4, $5::text::numeric, $6::text::numeric, $7::text::numeric, $8::text::numeric)
			on conflict (workspace_id, ledger, date) do update set row_count = d.row_count + excluded.row_count,
				in_cash = d.in_cash + excluded.in_cash, out_cash = d.out_cash + excluded.out_cash,
				in_fine = d.in_fine + excluded.in_fine, out_fine = d.out_fine + excluded.out_fine`,
			day.workspace, day.ledger, day.day.String(), c.rows, c.inCash.String(), c.outCash.String(), c.inFine.String(), c.outFine.String())
		if c.rows < 0 {
			b.Exec(`delete from ledger_day where workspace_id = $1 and ledger = $2 and date = $3::text::date and row_count = 0`,
				day.workspace, day.ledger, day.day.String())
		}
	}
	for account := range f.sums.closed {
		key := f.accounts[account].key()
		b.Exec(`
			update ledger_day d set row_count = d.row_count - v.row_count, in_cash = d.in_cash - v.in_cash, out_cash = d.out_cash - v.out_cash,
				in_fine = d.in_fine - v.in_fine, out_fine = d.out_fine - v.out_fine
			from (
				select date, count(*) as row_count, sum(in_cash) as in_cash, sum(out_cash) as out_cash, sum(in_fine) as in_fine,
					sum(out_fine) as out_fine
				from row_version where account_id = $3 and not deleted and to_position = $4 group by date
			) v
			where d.workspace_id = $1 and d.ledger = $2 and d.date = v.date`, key.workspace, key.ledger, account, int64(stillCurrent))
		b.Exec(`delete from ledger_day where workspace_id = $1 and ledger = $2 and row_count = 0`, key.workspace, key.ledger)
	}
}
