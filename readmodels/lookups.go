package readmodels

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxLookups go together in one round trip: each waits for those before it.
	maxLookups = 32

	// lookupLanes is how many groups are under way at once.
	lookupLanes = 2

	// lookupPatience bounds a group, whose callers' own deadlines differ.
	lookupPatience = 10 * time.Second
)

// lookups sends statements that find one row each together: those of many callers take one round trip,
// which costs more than finding the rows. Whoever waits for an answer takes turns at sending.
type lookups struct {
	pool    *pgxpool.Pool
	waiting chan *lookup
	lanes   chan struct{}
}

// lookup is one caller's statement.
type lookup struct {
	text    string
	args    []any
	collect func(pgx.Rows) error
	claimed atomic.Bool
	answer  chan error // takes one, never blocks
}

func newLookups(pool *pgxpool.Pool) *lookups {
	return &lookups{pool: pool, waiting: make(chan *lookup, 1024), lanes: make(chan struct{}, lookupLanes)}
}

// find runs the statement and lets collect read its rows. It answers collect's error, or the database's.
func (l *lookups) find(ctx context.Context, text string, args []any, collect func(pgx.Rows) error) error {
	k := &lookup{text: text, args: args, collect: collect, answer: make(chan error, 1)}
	select {
	case l.waiting <- k:
	case <-ctx.Done():
		return ctx.Err()
	}
	gone, lanes := ctx.Done(), l.lanes
	for {
		select {
		case err := <-k.answer:
			return err
		case lanes <- struct{}{}:
			if k.claimed.Load() { // somebody has it on its way
				lanes = nil
			} else {
				l.lead(context.WithoutCancel(ctx))
			}
			<-l.lanes
		case <-gone:
			if !k.claimed.Swap(true) {
				return ctx.Err()
			}
			gone = nil // it is on its way, and collect may run
		}
	}
}

// lead sends what waits, as one group.
func (l *lookups) lead(ctx context.Context) {
	var group []*lookup
	for len(group) < maxLookups {
		select {
		case k := <-l.waiting:
			if !k.claimed.Swap(true) {
				group = append(group, k)
			}
			continue
		default:
		}
		break
	}
	if len(group) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	if len(group) > 1 {
		group = l.together(ctx, group)
	}
	for _, k := range group {
		rows, err := l.pool.Query(ctx, k.text, k.args...)
		if err == nil {
			err = k.read(rows)
		}
		k.answer <- err
	}
}

// together sends a group in one round trip. It answers those behind a failure, the failed one included,
// for another try alone: Postgres skips what follows on an error.
func (l *lookups) together(ctx context.Context, group []*lookup) (again []*lookup) {
	batch := &pgx.Batch{}
	for _, k := range group {
		batch.Queue(k.text, k.args...)
	}
	answers := l.pool.SendBatch(ctx, batch)
	defer answers.Close() //nolint:errcheck // each answer's error was looked at
	for i, k := range group {
		rows, err := answers.Query()
		if err != nil {
			return group[i:]
		}
		result := k.read(rows)
		if rows.Err() != nil {
			return group[i:]
		}
		k.answer <- result
	}
	return nil
}

// read lets the caller's collect read the rows. It runs for another caller, whom its panic must not
// concern.
func (k *lookup) read(rows pgx.Rows) error {
	err := guarded(k.collect, rows)
	rows.Close()
	if failed := rows.Err(); failed != nil {
		return failed
	}
	return err
}

func guarded(collect func(pgx.Rows) error, rows pgx.Rows) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return collect(rows)
}
