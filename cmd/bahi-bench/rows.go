package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/test/bench"
)

const (
	bankAccounts = 1000
	prebuilt     = 8192 // requests
	seed         = 20260504
)

var (
	parties = []string{"Mehta Jewellers", "Soni & Sons", "Kalyan Bullion", "Rajesh Karigar", "Anand Traders", "Patel Refinery"}
	ways    = []string{"NEFT", "UPI", "RTGS", "IMPS", "Cheque", "Cash deposit"}
)

// rowBody returns a row of a bank account, dated today.
func rowBody(random *rand.Rand) string {
	side := "in_entries"
	if random.IntN(3) == 0 {
		side = "out_entries"
	}
	return fmt.Sprintf(`{"date":%q,%q:[{"description":"%s %s, invoice %d","amount":%d.%02d}]}`, time.Now().Format(time.DateOnly), side,
		ways[random.IntN(len(ways))], parties[random.IntN(len(parties))], 1000+random.IntN(9000), 100+random.IntN(500_000), random.IntN(100))
}

// bulkBody returns rows of a bank account.
func bulkBody(random *rand.Rand, count int) string {
	rows := make([]string, count)
	for i := range rows {
		rows[i] = rowBody(random)
	}
	return `{"rows":[` + strings.Join(rows, ",") + `]}`
}

// largeBulk returns rows of about 4 MB together, as many bytes as a transaction may have.
func largeBulk(random *rand.Rand) string {
	rows := make([]string, 100)
	for i := range rows {
		entries := make([]string, 420)
		for j := range entries {
			party := strings.Repeat(parties[random.IntN(len(parties))]+" ", 3)
			entries[j] = fmt.Sprintf(`{"description":"%s, invoice %d","amount":%d}`, party, j, 100+j)
		}
		rows[i] = fmt.Sprintf(`{"date":%q,"in_entries":[%s]}`, time.Now().Format(time.DateOnly), strings.Join(entries, ","))
	}
	return `{"rows":[` + strings.Join(rows, ",") + `]}`
}

// requests returns requests that are made one after the other, the same in each run.
func requests(count int, request func(i int, random *rand.Rand) []byte) [][]byte {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: they are the same in each run
	all := make([][]byte, count)
	for i := range all {
		all[i] = request(i, random)
	}
	return all
}

// postings returns requests that post one row each.
func (s *server) postings(accounts []int64) [][]byte {
	return requests(prebuilt, func(_ int, random *rand.Rand) []byte {
		return bench.Request("POST", fmt.Sprintf("/bank-ledger/%d", accounts[random.IntN(len(accounts))]), s.key, rowBody(random))
	})
}

// load returns clients that send requests for a round.
func (b *benchmark) load(s *server, clients int, requests [][]byte) bench.Load {
	return bench.Load{Address: s.address, Clients: clients, For: b.Round, Requests: requests}
}

// rounds returns rounds of a load.
func rounds(ctx context.Context, load bench.Load) round {
	return func() (bench.Sample, error) { return load.Run(ctx) }
}

// warm runs a round that does not count: a server is slower after its start.
func warm(all ...round) error {
	for _, one := range all {
		if _, err := one(); err != nil {
			return err
		}
	}
	return nil
}

// posts measures rows, one a request.
func (b *benchmark) posts(ctx context.Context, s *server) error {
	one, many := b.load(s, 1, s.postings(s.accounts)), b.load(s, 64, s.postings(s.accounts))
	if err := warm(rounds(ctx, many)); err != nil {
		return err
	}
	return errors.Join(
		b.compare(ctx, insert1, b.inserts(ctx, 1), rounds(ctx, one),
			figure{name: "single_p50", title: "POST of a row, 1 client: p50", number: bench.P50, goal: bench.AtMost(2.2)}),
		b.compare(ctx, insert64, b.inserts(ctx, 64), rounds(ctx, many),
			figure{name: "post", title: "POST of a row, 64 clients", number: bench.Rate, goal: bench.AtLeast(0.6)},
			figure{name: "post_p99", title: "the same: p99", number: bench.P99}),
	)
}

// bulks measures bulk posts of rows, alternately with single posts. A round ends when the rows are folded.
func (b *benchmark) bulks(ctx context.Context, s *server) error {
	const rows = 100
	alone := b.load(s, 64, s.postings(s.accounts))
	bulk := b.load(s, 16, requests(prebuilt/rows, func(_ int, random *rand.Rand) []byte {
		account := s.accounts[random.IntN(len(s.accounts))]
		return bench.Request("POST", fmt.Sprintf("/bank-ledger/%d/rows", account), s.key, bulkBody(random, rows))
	}))
	bulk.Each, bulk.After = rows, s.after(foldingBooks)
	if err := warm(rounds(ctx, alone)); err != nil {
		return err
	}
	return b.compare(ctx, "rows posted alone", rounds(ctx, alone), rounds(ctx, bulk), figure{
		name: "bulk", title: "rows in bulk, 100 a request, until they are folded", number: bench.Rate, unit: "rows/s", goal: bench.AtLeast(2.5),
	})
}

// disturbed measures posts of rows with an Idempotency-Key, during changes of the books lock, and during large bulks.
func (b *benchmark) disturbed(ctx context.Context, s *server) error {
	load, one := b.load(s, 64, s.postings(s.accounts)), b.load(s, 64, s.postings(s.accounts[:1]))
	keyed, alone := load, load
	keyed.Keyed, alone.Keyed, alone.Clients = true, true, 1
	if err := warm(rounds(ctx, load)); err != nil {
		return err
	}
	day, random := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // G404: as above
	moveLock := func(ctx context.Context) error {
		day = day.AddDate(0, 0, 1)
		return s.json(ctx, "PUT", "/books/lock", s.key, fmt.Sprintf(`{"locked_through":%q}`, day.Format(time.DateOnly)), new(any))
	}
	large := largeBulk(random)
	postBulk := func(ctx context.Context) error {
		return s.json(ctx, "POST", fmt.Sprintf("/bank-ledger/%d/rows", s.accounts[random.IntN(len(s.accounts))]), s.key, large, new(any))
	}
	return errors.Join(
		b.compare(ctx, insert64, b.inserts(ctx, 64), rounds(ctx, keyed), figure{
			name: "post_key", title: "POST of a row with an Idempotency-Key, 64 clients", number: bench.Rate, goal: bench.AtLeast(0.5),
		}),
		b.compare(ctx, insert1, b.inserts(ctx, 1), rounds(ctx, alone), figure{
			name: "single_key_p50", title: "the same, 1 client: p50", number: bench.P50, goal: bench.AtMost(2.8),
		}),
		b.compare(ctx, "without the lock", rounds(ctx, one), during(ctx, one, each(time.Second, moveLock)), figure{
			name: "post_beside_lock", title: "POST of a row, 64 clients on one account, beside a lock that moves once a second",
			number: bench.Rate, goal: bench.AtLeast(0.95),
		}),
		b.compare(ctx, "without the bulks", rounds(ctx, load), during(ctx, load, each(time.Second, postBulk)), figure{
			name: "post_beside_bulk_p99", title: "POST of a row, 64 clients, beside a bulk of 4 MB a second: p99",
			number: bench.P99, goal: bench.AtMost(2),
		}),
	)
}

// during returns rounds of a load, with other work beside it.
func during(ctx context.Context, load bench.Load, work func(context.Context) error) round {
	return func() (bench.Sample, error) {
		until, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- work(until) }()
		sample, err := load.Run(ctx)
		stop()
		return sample, errors.Join(err, <-done)
	}
}

// each returns work that is done at the same intervals.
func each(interval time.Duration, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				if err := do(context.WithoutCancel(ctx)); err != nil {
					return err
				}
			}
		}
	}
}

// lag measures the lag of the books beside many clients: the time from a row's response until a poll every few milliseconds finds it in the
// projection.
func (b *benchmark) lag(ctx context.Context, s *server) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	type step struct {
		at       time.Time
		position uint64
	}
	load := b.load(s, 512, s.postings(s.accounts))
	load.For = b.Sustain
	answered := make([][]step, load.Clients)
	load.Answered = func(client int, a bench.Answer) { answered[client] = append(answered[client], step{a.At, a.Position}) }
	b.sayf("rows by 512 clients for %s", b.Sustain)
	var sample bench.Sample
	ended := make(chan error, 1)
	go func() {
		var err error
		sample, err = load.Run(ctx)
		ended <- err
	}()
	var steps []step
	last := uint64(math.MaxUint64) // head of the log; known after the load's end
	for len(steps) == 0 || steps[len(steps)-1].position < last {
		var position int64
		if err := conn.QueryRow(ctx, booksAt).Scan(&position); err != nil {
			return err
		}
		steps = append(steps, step{time.Now(), uint64(position)})
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			last = 0
			for _, a := range slices.Concat(answered...) {
				last = max(last, a.position)
			}
			if last == 0 {
				return errors.New("the server's responses have no position")
			}
		case <-time.After(lookInterval):
		}
	}
	var lags []time.Duration
	for _, a := range slices.Concat(answered...) {
		seen := steps[sort.Search(len(steps), func(k int) bool { return steps[k].position >= a.position })]
		lags = append(lags, max(0, seen.at.Sub(a.at)))
	}
	b.value("lag_512", "rows by 512 clients: p99 of the books' lag", "ms", bench.AtMost(150),
		float64(bench.P99Of(lags))/float64(time.Millisecond))
	b.value("post_512", "the same: rows", "/s", nil, sample.Rate)
	return nil
}

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
