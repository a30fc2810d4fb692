package ledger

import (
	"context"

	"github.com/google/uuid"

	"bahi/projections"
)

const (
	// mostKept bounds the memory that each of the kinds below takes: some 30 MB.
	mostKept = 1 << 17
)

// kept is what the fold knows of its tables from one batch to the next. Nobody else writes them, so
// it need not read what it has just written.
type kept struct {
	accounts map[int64]*account
	locks    map[uuid.UUID]*lock
	totals   map[node]*amount

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
func (k *kept) bounded(b *projections.Batch) *kept {
	if len(k.accounts) > mostKept {
		k.accounts = map[int64]*account{}
	}
	if len(k.locks) > mostKept {
		k.locks = map[uuid.UUID]*lock{}
	}
	if len(k.totals) > mostKept {
		if k.filling {
			k.write(b)
		}
		k.totals = map[node]*amount{}
	}
	return k
}

// write puts all totals into the table.
func (k *kept) write(b *projections.Batch) {
	if len(k.totals) > 0 {
		queueTotals(b, k.totals)
		k.written = true
	}
}

// finishBooks writes what a fill has kept for its end.
func finishBooks(_ context.Context, b *projections.Batch) error {
	if k, ok := b.Kept.(*kept); ok {
		k.write(b)
	}
	return nil
}
