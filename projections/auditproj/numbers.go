package auditproj

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// nextNumber returns the number of a new checkpoint. It uses the transaction that stores the checkpoint, so that a crash leaves no gap. It
// waits for other such transactions.
func nextNumber(ctx context.Context, tx pgx.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `
		update audit.numbering set last = greatest(last, imported, (select max(number) from audit.checkpoint)) + 1 returning last`).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		err = &ErrRewritten{Found: "The number of the last checkpoint was removed from audit.numbering. " + waysOut}
	}
	if err != nil {
		return 0, fmt.Errorf("number the checkpoint: %w", err)
	}
	return n, nil
}

// Numbers reports missing checkpoints.
type Numbers struct {
	Imported int64 // checkpoints up to this number belong to an imported log, and may be missing
	Excused  int64 // checkpoints up to this number may be missing: imported, or lost in an accepted restore
	Missing  int64 // number of missing later checkpoints
	First    int64 // the first missing checkpoint
}

// Numbers counts the removed checkpoints. It detects the removal of the newest checkpoint only if audit.numbering, an outside copy or a
// running process still has its number.
func (s *Signer) Numbers(ctx context.Context) (n Numbers, err error) {
	if err := s.settle(ctx); err != nil {
		return n, err
	}
	var last *int64 // nil: it was removed
	err = s.DB.QueryRow(ctx, `select last, imported from audit.numbering`).Scan(&last, &n.Imported)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return n, fmt.Errorf("read the number of the last checkpoint: %w", err)
	}
	n.Excused = n.Imported
	if accepted := s.accepted.Load(); accepted != nil {
		for _, r := range *accepted {
			n.Excused = max(n.Excused, r.LastNumber)
		}
	}
	err = s.DB.QueryRow(ctx, `
		with there as (
			select number from audit.checkpoint where number > $1
			union select $1 union select greatest($1, coalesce($2::bigint, (select coalesce(max(number), 0) + 1 from audit.checkpoint))) + 1
		), gap as (select lag(number) over (order by number) + 1 as first, number - 1 as last from there)
		select coalesce(sum(last - first + 1), 0)::bigint, coalesce(min(first), 0) from gap where last >= first`, n.Excused,
		last).Scan(&n.Missing, &n.First)
	if err != nil {
		return n, fmt.Errorf("count the checkpoints: %w", err)
	}
	return n, nil
}
