package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/reactors/messagingreact"
	"bahi/readmodels"
)

// tally counts the events of each stream, and sums their amounts.
var tally = projections.Define("tally", 1, "create table tally (stream text primary key, events bigint not null, total bigint not null)",
	projections.Raw(func(ctx context.Context, b *projections.Batch, events []event.Stored) error {
		all := &pgx.Batch{}
		for _, e := range events {
			all.Queue(`insert into tally (stream, events, total) values ($1, 1, $2)
				on conflict (stream) do update set events = tally.events + 1, total = tally.total + excluded.total`,
				e.Stream, int64(logged{e, false}.added().By))
		}
		return b.Tx.SendBatch(ctx, all).Close()
	}))

// project runs the projection and its generations in a process.
func (n *node) project(store eventstore.Store, pool *pgxpool.Pool, quiet *slog.Logger) {
	r := projections.NewRunner(store, pool, quiet)
	n.mu.Lock()
	n.reader = readmodels.NewReader(&readmodels.Pool{Pool: pool}, map[string]int{tally.Name: tally.Version}, r.Follow)
	n.mu.Unlock()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { _ = r.Run(as(n.life, "runner"), tally) })
	both.Go(func() { _ = r.MaintainGenerations(as(n.life, "tend"), tally) })
}

// operate builds the next generation, rolls back to the previous one, or works under a lease.
func (o *operation) operate(n *node) error {
	n.mu.Lock()
	store, pool := n.store, n.pool
	n.mu.Unlock()
	if store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(as(n.life, fmt.Sprint("operation", o.nth)), 2*time.Minute)
	defer cancel()
	b := projections.Build{
		Store: store, Config: pool.Config().ConnConfig, Projection: tally, Log: slog.New(slog.DiscardHandler),
		How: projections.BuildOptions{Keep: time.Duration(o.by+2) * 10 * time.Second},
	}
	switch o.kind {
	case "lease":
		_, err := messagingreact.WithLease(ctx, pool, 1, n.w.owns)
		return err
	case "rollback":
		return b.Rollback(ctx, 30*time.Second)
	}
	return b.Run(ctx)
}

// owns is the work under a lease. If no clock has jumped, one job at a time does it.
func (w *world) owns(ctx context.Context) error {
	w.mu.Lock()
	if w.owners++; w.owners > 1 && w.db.skew == 0 {
		w.wrong("%d jobs have the lease", w.owners)
	}
	length := time.Duration(w.rng.IntN(40_000)) * time.Millisecond
	w.mu.Unlock()
	pause(ctx, length)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners--
	return ctx.Err()
}

// lateTables returns which live tables lag.
func (w *world) lateTables() []string {
	for key, g := range w.db.rows {
		if strings.HasPrefix(key, "projection.generation|") && g["status"] == "live" {
			if at := g["position"].(int64); at != int64(len(w.db.events)) {
				return []string{fmt.Sprintf("generation %v is at %d of %d", g["generation"], at, len(w.db.events))}
			}
			return nil
		}
	}
	return []string{"no generation is live"}
}
