package ledgerproj

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"bahi/projections"
)

// maxKept bounds the memory that each of the kinds below takes over all parts of a fill: some 50 MB.
const maxKept = 1 << 19

// kept is what the fold knows of its tables from one batch to the next. Nobody else writes them, so
// it need not read what it has just written.
type kept struct {
	accounts map[int64]*account
	totals   map[node]*amount
	starts   map[node][]int64 // where the short parts of a crowded day begin, in order
	held     int              // how many of these
	batches  int

	// While the tables are filled, totals are only written when they are too many, and at the end.
	filling bool
	written bool // some are in the table: what is not here may be there

	part projections.Part
	most int // of each kind
}

func newKept(b *projections.Batch) *kept {
	return &kept{
		accounts: map[int64]*account{}, totals: map[node]*amount{}, starts: map[node][]int64{},
		filling: b.Filling, written: !b.Filling || b.Resumed, part: b.Part, most: maxKept / max(b.Part.Of, 1),
	}
}

// bounded forgets what has become too much.
func (k *kept) bounded(ctx context.Context, b *projections.Batch) (*kept, error) {
	if len(k.accounts) > k.most {
		k.accounts = map[int64]*account{}
	}
	if len(k.totals)+k.held > k.most {
		if k.filling {
			if err := k.write(ctx, b); err != nil {
				return nil, err
			}
		}
		k.totals, k.starts, k.held = map[node]*amount{}, map[node][]int64{}, 0
	}
	return k, nil
}

// write puts all totals into the table.
func (k *kept) write(ctx context.Context, b *projections.Batch) error {
	if k.written {
		queueTotals(b, k.totals)
		return nil
	}
	k.written = true
	nodes := slices.SortedFunc(maps.Keys(k.totals), func(a, b node) int { // the key's order fills its index from one end
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.level, b.level), cmp.Compare(a.node, b.node))
	})
	return projections.CopyInto(ctx, b.Tx, `total (account_id, level, node, row_count, cash, fine, loss)`, len(nodes),
		func(c *projections.Copy, row int) {
			n := nodes[row]
			c.Bigint(n.account)
			c.Smallint(n.level)
			c.Bigint(n.node)
			k.totals[n].into(c)
		})
}

// resumeBooks makes the totals again that an earlier process had in memory: those that are in the newest
// postings, and nothing for accounts that have none.
func resumeBooks(ctx context.Context, b *projections.Batch) error {
	for _, statement := range []string{
		`set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on`,
		`truncate total`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select distinct on (account_id) account_id, 0, 0, account_rows, account_cash, account_fine, account_loss
		from posting order by account_id, position desc, nth desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select distinct on (account_id, period) account_id, 1, period, period_rows, period_cash, period_fine, period_loss
		from posting order by account_id, period, position desc, nth desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select distinct on (account_id, day) account_id, 2, day, day_rows, day_cash, day_fine, day_loss
		from posting order by account_id, day, position desc, nth desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select id, 0, 0, 0, 0, 0, 0 from account a where not exists (select from total t where t.account_id = a.id and t.level = 0)`,
	} {
		if _, err := b.Tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("make the totals again: %w", err)
		}
	}
	return nil
}

// finishBooks writes what a fill has kept for its end.
func finishBooks(ctx context.Context, b *projections.Batch) error {
	if k, ok := b.FoldState.(*kept); ok {
		return k.write(ctx, b)
	}
	return nil
}
