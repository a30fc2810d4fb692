package ledgerproj

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"bahi/projections"
)

// maxKept is the maximum number of entries of each kind below, over all partitions of a fill: about 50 MB.
const maxKept = 1 << 19

// kept is the part of the tables that stays in memory between batches. It is current, because only this process writes the tables.
type kept struct {
	accounts map[int64]*account
	totals   map[node]*amount
	crowded  map[node]*division
	held     int // number of beginnings of parts in crowded
	batches  int

	// During a fill, totals are written only if there are too many, and at the end.
	filling bool
	written bool // some totals are in the table and may be missing here

	part projections.Part
	most int // of each kind
}

func newKept(b *projections.Batch) *kept {
	return &kept{
		accounts: map[int64]*account{}, totals: map[node]*amount{}, crowded: map[node]*division{},
		filling: b.Filling, written: !b.Filling || b.Resumed, part: b.Part, most: maxKept / max(b.Part.Of, 1),
	}
}

// bounded removes entries that exceed the limit.
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
		k.totals, k.crowded, k.held = map[node]*amount{}, map[node]*division{}, 0
	}
	return k, nil
}

// write writes all totals to the table.
func (k *kept) write(ctx context.Context, b *projections.Batch) error {
	if k.written {
		queueTotals(b, k.totals)
		return nil
	}
	k.written = true
	nodes := slices.SortedFunc(maps.Keys(k.totals), func(a, b node) int { // the order of the key fills its index from one end
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.level, b.level), cmp.Compare(a.node, b.node))
	})
	return projections.CopyInto(ctx, b.Tx, `total (account_id, level, node, row_count, cash, fine, loss, in_cash, in_fine)`, len(nodes),
		func(c *projections.Copy, row int) {
			n := nodes[row]
			c.Bigint(n.account)
			c.Smallint(n.level)
			c.Bigint(n.node)
			k.totals[n].into(c)
			if n.level == levelPeriod {
				k.totals[n].sidesInto(c)
			} else {
				c.Null()
				c.Null()
			}
		})
}

// resumeBooks restores the totals that an earlier process had in memory. It reads them from the newest postings.
// Accounts without postings have none.
func resumeBooks(ctx context.Context, b *projections.Batch) error {
	for _, statement := range []string{
		`set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on`,
		`truncate total`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select distinct on (account_id) account_id, 0, 0, account_rows, account_cash, account_fine, account_loss
		from balance_history order by account_id, position desc, ordinal desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss, in_cash, in_fine)
		select distinct on (account_id, period) account_id, 1, period, period_rows, period_cash, period_fine, period_loss, period_in_cash,
			period_in_fine
		from balance_history order by account_id, period, position desc, ordinal desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select distinct on (account_id, day) account_id, 2, day, day_rows, day_cash, day_fine, day_loss
		from balance_history order by account_id, day, position desc, ordinal desc`,
		`insert into total (account_id, level, node, row_count, cash, fine, loss)
		select id, 0, 0, 0, 0, 0, null from account a where not exists (select from total t where t.account_id = a.id and t.level = 0)`,
	} {
		if _, err := b.Tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("restore the totals: %w", err)
		}
	}
	return nil
}

// finishBooks writes the remaining totals at the end of a fill.
func finishBooks(ctx context.Context, b *projections.Batch) error {
	if k, ok := b.FoldState.(*kept); ok {
		return k.write(ctx, b)
	}
	return nil
}
