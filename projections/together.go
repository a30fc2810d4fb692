package projections

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
)

// passingTimeout bounds the statement that moves checkpoints together.
const passingTimeout = 10 * time.Second

// checkpointBatcher moves checkpoints over events that their projections do not fold. Those that ask at the same time share a transaction:
// most projections pass over most events, and a transaction for each would cost more than folding the events.
type checkpointBatcher struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	waiting []*passing
	running bool
}

// passing is one generation's move.
type passing struct {
	g     generation
	owner uuid.UUID
	to    event.Position
	id    *uuid.UUID
	done  chan error
}

// pass moves a generation's checkpoint as [checkpoint] does.
func (t *checkpointBatcher) pass(ctx context.Context, g generation, owner uuid.UUID, to event.Position, id *uuid.UUID) error {
	p := &passing{g, owner, to, id, make(chan error, 1)}
	t.mu.Lock()
	t.waiting = append(t.waiting, p)
	if !t.running {
		t.running = true
		go t.run(context.WithoutCancel(ctx))
	}
	t.mu.Unlock()
	return <-p.done // not ctx: the statement may be on its way
}

func (t *checkpointBatcher) run(ctx context.Context) {
	for {
		runtime.Gosched() // those that asked at the same time come first
		t.mu.Lock()
		group := t.waiting
		t.waiting, t.running = nil, len(group) > 0
		t.mu.Unlock()
		if len(group) == 0 {
			return
		}
		moved, err := t.move(ctx, group)
		for _, p := range group {
			switch {
			case err != nil:
				p.done <- err
			case !moved[p.g.schema()]:
				p.done <- ErrFenced
			default:
				p.done <- nil
			}
		}
	}
}

// move returns the schemas of the generations that it has moved.
func (t *checkpointBatcher) move(ctx context.Context, group []*passing) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, passingTimeout)
	defer cancel()
	var (
		names               []string
		numbers, from, upTo []int64
		rates               []int64
		owners              []uuid.UUID
		ids                 []*uuid.UUID
	)
	for _, p := range group {
		names, numbers, rates = append(names, p.g.Name), append(numbers, int64(p.g.Generation)), append(rates, p.g.Rate)
		from, upTo = append(from, int64(p.g.Position)), append(upTo, int64(p.to))
		owners, ids = append(owners, p.owner), append(ids, p.id)
	}
	rows, _ := t.pool.Query(ctx, `
		update projection.generation g set position = m.upto, event_id = m.event_id, rate = m.rate, error = null, error_at = null,
			error_position = null
		from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::uuid[], $7::uuid[])
				m (name, generation, position, upto, rate, owner, event_id),
			(select set_config('synchronous_commit', 'off', true)) unsafe -- as of all projections: the log is the source of truth
		where g.name = m.name and g.generation = m.generation and g.position = m.position and g.owner = m.owner and not (g.live and g.paused)
		returning g.name, g.generation`, names, numbers, from, upTo, rates, owners, ids)
	moved := map[string]bool{}
	var (
		name string
		nth  int
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &nth}, func() error {
		moved[SchemaName(name, nth)] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("move checkpoints: %w", err)
	}
	return moved, nil
}
