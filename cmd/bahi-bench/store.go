package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/test/bench"
)

// appendedBytes is the size of an event's payload and metadata.
const appendedBytes = 300

// appender appends rows to the log, without the rest of Bahi.
type appender struct {
	store eventstore.Store
	rows  atomic.Int64
}

// appends measures the store.
func (b *benchmark) appends(ctx context.Context) error {
	url, err := b.database(ctx, "store")
	if err != nil {
		return err
	}
	return b.onDatabase(ctx, url, func(sys *app.System) error {
		a := &appender{store: sys.Store}
		appends := func(clients, accounts int) round {
			return func() (bench.Sample, error) { return a.run(ctx, clients, accounts, b.Round) }
		}
		return errors.Join(
			b.compare(ctx, insert1, b.inserts(ctx, 1), appends(1, bankAccounts),
				figure{name: "store_appends_1", title: "store appends, 1 client", number: bench.Rate, goal: bench.AtLeast(0.8)}),
			b.compare(ctx, insert64, b.inserts(ctx, 64), appends(64, bankAccounts),
				figure{name: "store_appends_64", title: "store appends, 64 clients", number: bench.Rate, goal: bench.AtLeast(1.6)}),
			b.compare(ctx, insert64, b.inserts(ctx, 64), appends(256, bankAccounts),
				figure{name: "store_appends_256", title: "store appends, 256 clients", number: bench.Rate, goal: bench.AtLeast(2.5)}),
			b.compare(ctx, "spread over many", appends(64, bankAccounts), appends(64, 1),
				figure{name: "store_appends_busy", title: "store appends, 64 clients on one account", number: bench.Rate, goal: bench.AtLeast(0.95)}),
		)
	})
}

// run appends events to new streams for a while.
func (a *appender) run(ctx context.Context, clients, accounts int, during time.Duration) (bench.Sample, error) {
	var (
		running sync.WaitGroup
		took    = make([][]time.Duration, clients)
		failed  = make([]error, clients)
		began   = time.Now()
		until   = began.Add(during)
	)
	for i := range clients {
		running.Go(func() {
			var last eventstore.Appended
			for at := time.Now(); at.Before(until) && failed[i] == nil; {
				row := a.rows.Add(1)
				t := eventstore.To(fmt.Sprintf("bankrow-%d", row), eventstore.NoStream, rowOf300Bytes(1+row%int64(accounts), at))
				t.AsOf = last.Position // as a command does
				last, failed[i] = a.store.Append(ctx, t)
				now := time.Now()
				took[i], at = append(took[i], now.Sub(at)), now
			}
		})
	}
	running.Wait()
	elapsed := time.Since(began)
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	return bench.SampleOf(all, elapsed), errors.Join(failed...)
}

// rowOf300Bytes returns a row as the bank ledger stores it, padded to size.
func rowOf300Bytes(account int64, at time.Time) event.Proposed {
	meta := fmt.Appendf(nil, `{"schema":1,"workspace":"6fd1f3b5-3a67-5a0c-9a7e-3f0c9f1f4a11",`+
		`"actor":"api_key:1f0c9f1f-3a67-4a0c-9a7e-6fd1f3b54a11","occurred_at":%q}`, at.UTC().Format(time.RFC3339Nano))
	const entry = `{"account":%d,"date":"2026-05-04","in_entries":[{"description":"%s","amount":1845.50}]}`
	short := fmt.Sprintf(entry, account, "")
	text := "NEFT Mehta Jewellers, inv 2231 " + strings.Repeat("x", appendedBytes)
	data := fmt.Appendf(nil, entry, account, text[:appendedBytes-len(meta)-len(short)])
	return event.Proposed{ID: uuid.Must(uuid.NewV7()), Type: "BankRowAdded", Data: data, Meta: meta}
}
