package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"bahi/internal/bench"
)

// disturbed measures rows that are posted with an Idempotency-Key, beside a lock of the books that moves, and beside large bulks.
func (b *benchmark) disturbed(ctx context.Context, s *server, accounts []int64) error {
	load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.postings(accounts)}
	one, keyed, alone := load, load, load
	one.Requests, keyed.Keyed = s.postings(accounts[:1]), true
	alone.Clients, alone.Keyed = 1, true
	run := func(load bench.Load, and ...func(context.Context) error) func() (bench.Sample, error) {
		return func() (bench.Sample, error) { return during(ctx, load, and...) }
	}
	inserts := func(clients int) func() (bench.Sample, error) {
		return func() (bench.Sample, error) { return b.limits.Inserts(ctx, clients) }
	}
	limit, found, err := b.interleave(ctx, "POST of rows with a key, beside a lock, beside bulks", inserts(postClients),
		run(keyed), inserts(1), run(alone), run(one), run(one, each(time.Second, s.moveLock())),
		run(load), run(load, each(time.Second/4, s.postBulk(accounts))))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{
		Name: "post_key", Title: "POST of a row with an Idempotency-Key, 64 clients", Unit: "/s", Goal: bench.AtLeast(0.5),
	}, found[0].By(bench.Rate), "pgbench INSERT, 64 clients", limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: "single_key_p50", Title: "the same, 1 client: p50", Unit: "ms", Goal: bench.AtMost(2.8)},
		found[2].By(bench.P50), "pgbench INSERT, 1 client", found[1].By(bench.P50))
	b.conclude(bench.Figure{
		Name: "post_beside_lock", Title: "POST of a row, 64 clients on one account, beside a lock that moves once a second", Unit: "/s",
		Goal: bench.AtLeast(0.95),
	}, found[4].By(bench.Rate), "without the lock", found[3].By(bench.Rate))
	b.conclude(bench.Figure{
		Name: "post_beside_bulk_p99", Title: "POST of a row, 64 clients, beside 4,000 rows a second in bulks of 1,000: p99", Unit: "ms",
		Goal: bench.AtMost(2),
	}, found[6].By(bench.P99), "without the bulks", found[5].By(bench.P99))
	return nil
}

// during runs a load, and other work until the load ends.
func during(ctx context.Context, load bench.Load, and ...func(context.Context) error) (sample bench.Sample, err error) {
	work, stop := context.WithCancel(ctx)
	done := make(chan error, len(and))
	for _, do := range and {
		go func() { done <- do(work) }()
	}
	sample, err = load.Run(ctx)
	stop()
	for range and {
		err = errors.Join(err, <-done)
	}
	return sample, err
}

// each returns work that does something again and again, at the same intervals.
func each(interval time.Duration, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for tick := time.NewTicker(interval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return nil
			case <-tick.C:
				if err := do(context.WithoutCancel(ctx)); err != nil {
					return err
				}
			}
		}
	}
}

// moveLock returns work that moves the lock of the books by a day, long before all rows.
func (s *server) moveLock() func(context.Context) error {
	day := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	return func(ctx context.Context) error {
		day = day.AddDate(0, 0, 1)
		return s.succeeds(ctx, bench.Request("PUT", "/books/lock", s.key, fmt.Sprintf(`{"locked_through":%q}`, day.Format(time.DateOnly))))
	}
}

// postBulk returns work that posts 1,000 rows in one request.
func (s *server) postBulk(accounts []int64) func(context.Context) error {
	random := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // the same rows in each run
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = rowBody(random)
	}
	body := `{"rows":[` + strings.Join(rows, ",") + `]}`
	return func(ctx context.Context) error {
		return s.succeeds(ctx, bench.Request("POST", fmt.Sprintf("/bank-ledger/%d/rows", accounts[random.IntN(len(accounts))]), s.key, body))
	}
}

// succeeds sends a request. It returns an error if the response is not a success.
func (s *server) succeeds(ctx context.Context, request []byte) error {
	a, err := s.do(ctx, request)
	if err == nil && a.Status >= http.StatusMultipleChoices {
		err = fmt.Errorf("a request failed with status %d: %s", a.Status, a.Body)
	}
	return err
}
