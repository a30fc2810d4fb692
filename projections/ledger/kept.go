package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"bahi/projections"
)

const (
	// mostKept bounds the memory that each of the kinds below takes: some 50 MB.
	mostKept = 1 << 19
)

// kept is what the fold knows of its tables from one batch to the next. Nobody else writes them, so
// it need not read what it has just written.
type kept struct {
	accounts map[int64]*account
	locks    map[uuid.UUID]*lock
	totals   map[node]*amount
	batches  int

	// While the tables are filled, totals are only written when they are too many, and at the end.
	filling bool
	written bool // some are in the table: what is not here may be there
}

func newKept(filling bool) *kept {
	return &kept{
		accounts: map[int64]*account{}, locks: map[uuid.UUID]*lock{}, totals: map[node]*amount{},
		filling: filling, written: !filling,
	}
}

// bounded forgets what has become too much.
func (k *kept) bounded(ctx context.Context, b *projections.Batch) (*kept, error) {
	if len(k.accounts) > mostKept {
		k.accounts = map[int64]*account{}
	}
	if len(k.locks) > mostKept {
		k.locks = map[uuid.UUID]*lock{}
	}
	if len(k.totals) > mostKept {
		if k.filling {
			if err := k.write(ctx, b); err != nil {
				return nil, err
			}
		}
		k.totals = map[node]*amount{}
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
	return projections.CopyInto(ctx, b.Tx, `total (account_id, level, node, row_count, cash, fine)`, len(nodes), func(c *projections.Copy, row int) {
		n := nodes[row]
		c.Bigint(n.account)
		c.Smallint(n.level)
		c.Bigint(n.node)
		k.totals[n].into(c)
	})
}

// finishBooks writes what a fill has kept for its end.
func finishBooks(ctx context.Context, b *projections.Batch) error {
	if k, ok := b.Kept.(*kept); ok {
		return k.write(ctx, b)
	}
	return nil
}
