package ledgerproj

import (
	"context"

	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/projections"
)

// The levels of table total.
const (
	levelAccount = 0
	levelPeriod  = 1
	levelDay     = 2

	periodShift = 6 // a period has 64 days; ten years have 57 periods
)

// node identifies a row of table total.
type node struct {
	account int64
	level   int16
	node    int64
}

// amount is the sum of rows.
type amount struct {
	rows int64
	cash cash
	fine fine
	loss fine

	inCash cash // of the IN sides; stored for periods only
	inFine fine

	batch int // number of the last batch that changed the amount
}

func (a *amount) add(rows int64, c counted) {
	a.rows += rows
	a.loss.add(int64(c.loss))
	a.cash.add(int64(c.sum.Cash))
	a.fine.add(int64(c.sum.Fine))
	a.inCash.add(int64(c.in.Cash))
	a.inFine.add(int64(c.in.Fine))
}

// into adds the columns row_count, cash, fine and loss, which is null for none.
func (a *amount) into(c *projections.Copy) {
	c.Bigint(a.rows)
	a.cash.copy(c, unit.MoneyPlaces)
	a.fine.copy(c, unit.GramsPlaces)
	if n, ok := a.loss.small(); ok && n == 0 {
		c.Null()
	} else {
		a.loss.copy(c, unit.GramsPlaces)
	}
}

// sidesInto adds the columns in_cash and in_fine.
func (a *amount) sidesInto(c *projections.Copy) {
	a.inCash.copy(c, unit.MoneyPlaces)
	a.inFine.copy(c, unit.GramsPlaces)
}

// counted is what a row adds to its account.
type counted struct {
	sum  book.Effect
	in   book.Effect // of its IN side
	loss unit.Grams
}

func (c counted) minus(other counted) counted {
	return counted{c.sum.Minus(other.sum), c.in.Minus(other.in), c.loss - other.loss}
}

// move is a change of a day's sum.
type move struct {
	account  int64
	position int64
	row      int64
	day      unit.Date
	rows     int64
	counted
}

// posted is a row of table balance_history.
type posted struct {
	account, position int64
	ordinal           int
	day               unit.Date
	sums              [3]amount // account, period, day
}

// sums has the sums of accounts while a batch is folded.
type sums struct {
	*kept
	crowding
	ledgers

	moves    []move
	touched  map[node]*amount // the amounts of kept.totals that this batch changes
	unknown  []node           // the nodes of touched that must be read
	rowsOf   map[node]int64   // number of rows on a day before the batch
	postings []posted
}

func newSums(k *kept) *sums {
	return &sums{kept: k, ledgers: newLedgers(), touched: map[node]*amount{}, rowsOf: map[node]int64{}}
}

// change moves a row from its old version's day to the day of its new version.
func (s *sums) change(before, after *version) {
	s.moveDay(before, after)
	m := move{account: after.Account, position: after.from, row: after.row, day: after.Date}
	switch {
	case before == nil:
		m.rows, m.counted = 1, after.counted()
	case after.Deleted:
		m.rows, m.counted = -1, counted{}.minus(before.counted())
	case before.Date == after.Date:
		m.counted = after.counted().minus(before.counted())
	default:
		leave := m
		leave.day, leave.rows, leave.counted = before.Date, -1, counted{}.minus(before.counted())
		s.moves = append(s.moves, leave)
		m.rows, m.counted = 1, after.counted()
	}
	s.moves = append(s.moves, m)
}

func (m move) nodes() [3]node {
	return [3]node{
		{m.account, levelAccount, 0},
		{m.account, levelPeriod, int64(m.day >> periodShift)},
		{m.account, levelDay, int64(m.day)},
	}
}

// total returns a total that the batch changes. If it is not in memory, [sums.load] reads it.
func (s *sums) total(n node) *amount {
	t := s.totals[n]
	if t == nil {
		t = &amount{}
		s.totals[n] = t
		if s.written {
			s.unknown = append(s.unknown, n)
		}
	}
	if t.batch != s.batches {
		t.batch = s.batches
		s.touched[n] = t
	}
	return t
}

// settle computes the changed totals and the postings.
func (s *sums) settle(ctx context.Context, tx pgx.Tx) error {
	s.batches++
	moved := make([][3]*amount, len(s.moves))
	for i, m := range s.moves {
		for level, n := range m.nodes() {
			moved[i][level] = s.total(n)
		}
	}
	for _, concerned := range []map[int64]bool{s.opened, s.closed} {
		for a := range concerned {
			s.total(node{a, levelAccount, 0}) // even if the account has no rows
		}
	}
	if err := s.load(ctx, tx); err != nil {
		return err
	}
	for n, t := range s.touched {
		switch n.level {
		case levelAccount:
			s.ledgers.before[n.account] = *t
		case levelDay:
			s.rowsOf[n] = t.rows
		}
	}
	s.postings = make([]posted, 0, len(s.moves))
	for i, m := range s.moves {
		p := posted{account: m.account, position: m.position, day: m.day}
		for level, t := range moved[i] {
			t.add(m.rows, m.counted)
			p.sums[level] = *t
		}
		if n := len(s.postings); n > 0 && s.postings[n-1].position == m.position {
			if last := &s.postings[n-1]; last.day == m.day && last.account == m.account {
				p.ordinal = last.ordinal
				*last = p // only the state after an event is stored
				continue
			}
			p.ordinal = s.postings[n-1].ordinal + 1
		}
		s.postings = append(s.postings, p)
	}
	return s.crowd(ctx, tx)
}

// load reads the totals that are not in memory.
func (s *sums) load(ctx context.Context, tx pgx.Tx) error {
	if len(s.unknown) == 0 {
		return nil
	}
	unknown := s.unknown
	s.unknown = nil
	var (
		accounts, nodes []int64
		levels          []int16
	)
	for _, n := range unknown {
		accounts, levels, nodes = append(accounts, n.account), append(levels, n.level), append(nodes, n.node)
	}
	rows, _ := tx.Query(ctx, `
		select t.account_id, t.level, t.node, t.row_count, t.cash, t.fine, coalesce(t.loss, 0), coalesce(t.in_cash, 0),
			coalesce(t.in_fine, 0)
		from unnest($1::bigint[], $2::smallint[], $3::bigint[]) n (account_id, level, node)
		join total t using (account_id, level, node)`, accounts, levels, nodes)
	var (
		n node
		a amount
	)
	into := []any{&n.account, &n.level, &n.node, &a.rows, &a.cash, &a.fine, &a.loss, &a.inCash, &a.inFine}
	_, err := pgx.ForEachRow(rows, into, func() error {
		a.batch = s.batches
		*s.totals[n] = a
		return nil
	})
	return err
}
