package ledgerproj

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"bahi/projections"
)

// A day with many rows is divided into parts with their own totals. So a page in the middle of the day requires only a few totals and the
// rows of one part. A part begins at id 0, and at each row of that day for which [begins] returns true, even if the row was moved or
// deleted later. So the parts depend only on the rows, not on batches, and have similar sizes for any ids. If a thousand accounts shared
// the ids, fixed ranges of ids would contain one row each.

const (
	levelRun   = 3 // parts of some 4096 rows
	levelShort = 4 // parts of some 32 rows

	dayShift = 40 // bits for a row's id, below the day
	lastID   = 1<<dayShift - 1
)

// partings are the levels of parts, with the average number of rows of a part, and the minimum number of rows of a day with such parts.
// Both are powers of 2.
var partings = [...]struct {
	level int16
	rows  int64
}{{levelRun, 1 << 12}, {levelShort, 1 << 5}}

// begins reports whether a part begins at a row. rows is the average number of rows of a part. The function begins of books.sql has the
// same result.
func begins(row, rows int64) bool {
	const odd, low = 0x45d9f3b, 1<<32 - 1
	x := (row ^ row>>32) & low
	x = (x ^ x>>16) * odd & low
	x = (x ^ x>>16) * odd & low
	return (x^x>>16)&(rows-1) == 0
}

// part is one or several adjacent parts of a day: the rows with ids from low to before high.
type part struct {
	account   int64
	level     int16
	day       int64
	low, high int64
	rows      int64 // of parts of its level
}

func (p part) node() node { return node{p.account, p.level, p.day<<dayShift | p.low} }

// division is the division of a crowded day into parts.
type division struct {
	starts []int64 // beginnings of the short parts, in order
	last   int64   // the greatest id of a row that was ever on the day
}

// crowding has the changes of parts in a batch, besides their totals.
type crowding struct {
	emptied []part // days that no longer have such parts
	made    []part // parts with rows to divide and sum again
}

// crowd applies the batch's moves to the parts of days that were crowded before and after the batch.
func (s *sums) crowd(ctx context.Context, tx pgx.Tx) error {
	if s.filling { // a fill creates all parts at its end
		return nil
	}
	var days []node
	for day, t := range s.touched {
		if day.level != levelDay {
			continue
		}
		for _, p := range partings {
			whole := part{day.account, p.level, day.node, 0, lastID + 1, p.rows}
			switch was, is := s.rowsOf[day] > p.rows, t.rows > p.rows; {
			case was && is && p.level == levelShort:
				days = append(days, day)
			case was && !is:
				s.emptied = append(s.emptied, whole)
				s.forget(whole)
			case is && !was:
				s.made = append(s.made, whole)
			}
		}
	}
	if err := s.loadStarts(ctx, tx, days); err != nil {
		return err
	}
	return s.count(ctx, tx)
}

// forget removes a day's parts of a level from memory.
func (s *sums) forget(p part) {
	day := node{p.account, levelDay, p.day}
	if d := s.crowded[day]; d != nil {
		for _, p.low = range d.starts {
			delete(s.totals, p.node())
		}
	}
	if p.level == levelShort {
		delete(s.crowded, day)
	}
}

// loadStarts reads the beginnings of the days' parts unless they are in memory.
func (s *sums) loadStarts(ctx context.Context, tx pgx.Tx, days []node) error {
	var accounts, unknown []int64
	for _, day := range days {
		if s.crowded[day] == nil {
			accounts, unknown = append(accounts, day.account), append(unknown, day.node)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, `
		select d.account_id, d.day, array_agg(t.node & $4 order by t.node), (
			select v.row_id from row_version v
			where v.account_id = d.account_id and v.date = date '1970-01-01' + d.day::int and not v.deleted
			order by v.row_id desc limit 1)
		from unnest($1::bigint[], $2::bigint[]) d (account_id, day)
		join total t on t.account_id = d.account_id and t.level = $3 and t.node between d.day << 40 and (d.day << 40) + $4
		group by d.account_id, d.day`, accounts, unknown, int16(levelShort), int64(lastID))
	var (
		day  = node{level: levelDay}
		read division
	)
	_, err := pgx.ForEachRow(rows, []any{&day.account, &day.node, &read.starts, &read.last}, func() error {
		s.crowded[day] = &division{read.starts, read.last}
		s.held += len(read.starts)
		read.starts = nil
		return nil
	})
	return err
}

// partsOf returns the parts to which a move applies: none, or one of each level of its day.
func (s *sums) partsOf(m move) (parts []part) {
	day := m.nodes()[2]
	d := s.crowded[day]
	if d == nil {
		return nil
	}
	starts := d.starts
	for _, p := range partings {
		if s.rowsOf[day] <= p.rows || s.touched[day].rows <= p.rows {
			continue
		}
		i, exact := slices.BinarySearch(starts, m.row)
		if !exact {
			i-- // the first is 0
		}
		next := i + 1
		for ; i > 0 && !begins(starts[i], p.rows); i-- {
		}
		for ; next < len(starts) && !begins(starts[next], p.rows); next++ {
		}
		high := int64(lastID + 1)
		if next < len(starts) {
			high = starts[next]
		}
		parts = append(parts, part{m.account, p.level, day.node, starts[i], high, p.rows})
	}
	return parts
}

// follow adds a part for a row that comes after all rows of its day, if a part begins there. No row moves to it from another part.
func (s *sums) follow(m move) {
	d := s.crowded[m.nodes()[2]]
	if d == nil || m.rows <= 0 || m.row <= d.last {
		return
	}
	d.last = m.row
	if begins(m.row, partings[1].rows) {
		d.starts = append(d.starts, m.row)
		s.held++
	}
}

// count applies the moves to the parts. A row between others that begins a part splits an existing part.
func (s *sums) count(ctx context.Context, tx pgx.Tx) error {
	var (
		moved = make([][]part, len(s.moves))
		split = map[node]bool{}
		begun = map[node][]int64{} // new starts by day
	)
	for i, m := range s.moves {
		s.follow(m)
		moved[i] = s.partsOf(m)
		for _, p := range moved[i] {
			if m.rows <= 0 || m.row == p.low || !begins(m.row, p.rows) {
				continue
			}
			if p.level == levelShort {
				day := m.nodes()[2]
				begun[day] = append(begun[day], m.row)
			}
			if !split[p.node()] {
				split[p.node()] = true
				delete(s.totals, p.node())
				s.made = append(s.made, p)
			}
		}
	}
	type change struct {
		*amount
		by *move
	}
	var changes []change
	for i := range s.moves {
		for _, p := range moved[i] {
			if !split[p.node()] {
				changes = append(changes, change{s.total(p.node()), &s.moves[i]})
			}
		}
	}
	if err := s.load(ctx, tx); err != nil {
		return err
	}
	for _, c := range changes {
		c.add(c.by.rows, counted{sum: c.by.sum}) // parts have no loss
	}
	for day, rows := range begun {
		d := s.crowded[day]
		d.starts = distinct(append(d.starts, rows...))
		slices.Sort(d.starts)
		s.held += len(rows)
	}
	return nil
}

// queueCrowded queues the changes of parts.
func (f *books) queueCrowded(b *projections.Batch) {
	for _, p := range f.sums.emptied {
		b.Exec(`delete from total where account_id = $1 and level = $2 and node between $3 and $4`,
			p.account, p.level, p.node().node, p.node().node+lastID)
	}
	if len(f.sums.made) == 0 {
		return
	}
	var (
		accounts, days, lows, highs, rows []int64
		levels                            []int16
	)
	for _, p := range f.sums.made {
		accounts, levels, days = append(accounts, p.account), append(levels, p.level), append(days, p.day)
		lows, highs, rows = append(lows, p.low), append(highs, p.high), append(rows, p.rows)
	}
	b.Exec(`select make_parts($1, $2, $3, $4, $5, $6)`, accounts, levels, days, lows, highs, rows)
}
