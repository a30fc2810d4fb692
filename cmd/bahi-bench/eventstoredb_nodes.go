package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"bahi/eventstore/esdb"
	"bahi/internal/bench"
	"bahi/internal/cli/events"
)

const (
	secondVariable = "EVENTSTORE_COPY_URL"

	nodeClients = 16 // half of them write to one node, half read from the other
)

// nodesThere measures reads from a second node while rows are posted to the first one, beside the same reads from the first: each waits until
// its node has all rows that were answered before.
func (b *benchmark) nodesThere(ctx context.Context, url, data string, first *server, accounts []int64) error {
	second, err := b.serveBeside(ctx, first.url, data, "EVENTSTORE_URL="+url)
	if err != nil {
		return err
	}
	defer second.stop() //nolint:errcheck // a failure of its end is told by the next part
	balances := make([][]byte, len(accounts))
	for i, account := range accounts {
		balances[i] = bench.Request("GET", fmt.Sprintf("/bank/%d", account), first.key, "")
	}
	reads := func(from *server) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			var (
				mu   sync.Mutex
				took []time.Duration
			)
			load := bench.Load{Address: first.address, Others: []string{from.address}, Clients: nodeClients, For: b.Round, Requests: first.postings(accounts), Odd: balances}
			load.Answered = func(client int, a bench.Answer) {
				if client%2 == 1 {
					mu.Lock()
					took = append(took, a.Took)
					mu.Unlock()
				}
			}
			_, err := load.Run(ctx)
			return bench.SampleOf(took, b.Round), err
		}
	}
	one, found, err := b.interleave(ctx, "EventStoreDB, two nodes", reads(first), reads(second))
	if err != nil {
		return err
	}
	const title = "log in EventStoreDB: GET of a balance from a second node, beside writers to the first"
	b.conclude(bench.Figure{Name: "eventstore_nodes_p50", Title: title + ": p50", Unit: "ms"}, found[0].By(bench.P50), "from the first", one.By(bench.P50))
	b.conclude(bench.Figure{Name: "eventstore_nodes_p99", Title: "the same: p99", Unit: "ms"}, found[0].By(bench.P99), "from the first", one.By(bench.P99))
	return nil
}

// copyThere measures a copy of the log to the empty server that EVENTSTORE_COPY_URL names. Without the variable it measures nothing.
func (b *benchmark) copyThere(ctx context.Context, url string) error {
	empty := os.Getenv(secondVariable)
	if empty == "" {
		return nil
	}
	log := slog.New(slog.DiscardHandler)
	from, err := esdb.Open(ctx, url, log)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := esdb.Open(ctx, empty, log)
	if err != nil {
		return fmt.Errorf("%s: %w", secondVariable, err)
	}
	defer to.Close()
	began := time.Now()
	done, err := events.CopyLog(ctx, from, to, func(int64, int64) {})
	if err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	b.conclude(bench.Figure{Name: "eventstore_copy", Title: fmt.Sprintf("events copy of %d events to a second EventStoreDB", done.Copied), Unit: "/s", Goal: bench.AtLeast(2000)},
		[]float64{float64(done.Copied) / time.Since(began).Seconds()}, "", nil)
	return nil
}
