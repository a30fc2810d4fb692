package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/bench"
)

const (
	postClients  = 64
	bulkClients  = 16
	bulkRows     = 100
	bankAccounts = 100
	prebuilt     = 8192 // requests
	seed         = 20260504
)

// requests measures posts over HTTP.
func (b *benchmark) requests(ctx context.Context, s *server, accounts []int64) error {
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close(ctx)
	post := func(accounts []int64) func() (bench.Sample, error) {
		load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.postings(accounts)}
		return func() (bench.Sample, error) { return measureLag(ctx, w, load) }
	}
	if _, err := post(accounts)(); err != nil { // warm up: a server that has just started is slower
		return err
	}
	inserts := func() (bench.Sample, error) { return b.limits.Inserts(ctx, postClients) }
	limit, found, err := b.interleave(ctx, "POST of rows, alone and in bulk", inserts, post(accounts), post(accounts[:1]), b.bulk(ctx, s, w, accounts))
	if err != nil {
		return err
	}
	for i, of := range []struct{ name, title string }{{"post", "POST of a row, 64 clients"}, {"post_one", "the same, on one account"}} {
		if !b.wanted("post") {
			break
		}
		b.posted(of.name, of.title, &bench.Goal{Bound: 0.4, Aim: 0.6}, found[i], limit)
	}
	if b.wanted("bulk") {
		b.conclude(bench.Figure{Name: "bulk", Title: "rows in bulk, 100 a request, until the books have them", Unit: "rows/s", Goal: &bench.Goal{Bound: 1.5, Aim: 2}},
			found[2].By(bench.Rate), "rows posted alone", found[0].By(bench.Rate))
		b.conclude(bench.Figure{Name: "bulk_p99", Title: "rows in bulk: p99 of a request", Unit: "ms"}, found[2].By(bench.P99), "", nil)
	}
	return nil
}

// posted concludes the figures of posts by 64 clients.
func (b *benchmark) posted(name, title string, goal *bench.Goal, found, limit bench.Series) {
	const insert64 = "pgbench INSERT, 64 clients"
	b.conclude(bench.Figure{Name: name, Title: title, Unit: "/s", Goal: goal}, found.By(bench.Rate), insert64, limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: name + "_p99", Title: title + ": p99", Unit: "ms", Goal: bench.AtMost(2.5)}, found.By(bench.P99), insert64, limit.By(bench.P99))
	b.conclude(bench.Figure{Name: name + "_lag_p99", Title: title + ": p99 of the books' lag", Unit: "ms", Goal: bench.AtMost(100)}, found.By(bench.Lag), "", nil)
}

func (s *server) openAccounts(ctx context.Context) (accounts []int64, err error) {
	return s.openOf(ctx, "bank")
}

// openOf opens accounts of a ledger.
func (s *server) openOf(ctx context.Context, ledger string) (accounts []int64, err error) {
	for i := range bankAccounts {
		id, err := s.post(ctx, "/"+ledger, fmt.Sprintf(`{"name":"HDFC Current %d"}`, 1+i))
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, id)
	}
	return accounts, nil
}

// postings returns requests that post one row each.
func (s *server) postings(accounts []int64) [][]byte { return s.postingsOf("bank", accounts, rowBody) }

// postingsOf returns requests that post one row of a ledger each.
func (s *server) postingsOf(ledger string, accounts []int64, body func(*rand.Rand) string) [][]byte {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same rows in each run
	requests := make([][]byte, prebuilt)
	for i := range requests {
		requests[i] = bench.Request("POST", fmt.Sprintf("/%s-ledger/%d", ledger, accounts[random.IntN(len(accounts))]), s.key, body(random))
	}
	return requests
}

var (
	parties = []string{"Mehta Jewellers", "Soni & Sons", "Kalyan Bullion", "Rajesh Karigar", "Anand Traders", "Shree Ganesh Gold", "Patel Refinery", "Zaveri Bazaar Branch"}
	ways    = []string{"NEFT", "UPI", "RTGS", "IMPS", "Cheque", "Cash deposit"}
)

// dayOf returns a row's day as an accountant would post it: mostly today, some days ago.
func dayOf(random *rand.Rand) string {
	return time.Now().AddDate(0, 0, -min(random.IntN(40), random.IntN(40))).Format(time.DateOnly)
}

// rowBody returns a row of a bank account.
func rowBody(random *rand.Rand) string {
	day, side := dayOf(random), "in_entries"
	if random.IntN(3) == 0 {
		side = "out_entries"
	}
	return fmt.Sprintf(`{"date":%q,%q:[{"description":"%s %s, invoice %d","amount":%d.%02d}]}`, day, side,
		ways[random.IntN(len(ways))], parties[random.IntN(len(parties))], 1000+random.IntN(9000), 100+random.IntN(500_000), random.IntN(100))
}

// measureLag puts the load on the server and waits until the books have all rows. The lag of a row is the time from its response until
// a poll every few milliseconds finds it in the projection.
func measureLag(ctx context.Context, w *watch, load bench.Load) (bench.Sample, error) {
	s, _, err := measureLags(ctx, w, load)
	return s, err
}

// late is the lag of a row, with the time of its response.
type late struct {
	at time.Time
	by time.Duration
}

// measureLags is [measureLag] with the lag of each row.
func measureLags(ctx context.Context, w *watch, load bench.Load) (bench.Sample, []late, error) {
	answered := make([][]step, load.Clients)
	load.Answered = func(client int, a bench.Answer) {
		answered[client] = append(answered[client], step{a.At, a.Position})
	}
	w.mu.Lock()
	w.steps = w.steps[max(0, len(w.steps)-1):]
	w.mu.Unlock()
	s, err := load.Run(ctx)
	if err != nil {
		return s, nil, err
	}
	lags, each, err := lagsOf(ctx, w, slices.Concat(answered...))
	s.Lag = bench.P99Of(lags)
	return s, each, err
}

// lagsOf returns the lag of each write, which were answered at these times with these positions. It waits for the last.
func lagsOf(ctx context.Context, w *watch, all []step) ([]time.Duration, []late, error) {
	last := uint64(0)
	for _, a := range all {
		last = max(last, a.position)
	}
	if last == 0 {
		return nil, nil, errors.New("the server's responses have no position")
	}
	if err := w.reach(ctx, last); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lags, each := make([]time.Duration, len(all)), make([]late, len(all))
	for i, a := range all {
		seen := w.steps[sort.Search(len(w.steps), func(k int) bool { return w.steps[k].position >= a.position })]
		lags[i] = max(0, seen.at.Sub(a.at))
		each[i] = late{a.at, lags[i]}
	}
	return lags, each, nil
}

// bulk measures rows posted in bulk. A round ends when the rows are folded, because a server that responds
// before has not done the work.
func (b *benchmark) bulk(ctx context.Context, s *server, w *watch, accounts []int64) func() (bench.Sample, error) {
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same rows in each run
	requests := make([][]byte, prebuilt/bulkRows)
	for i := range requests {
		rows := make([]string, bulkRows)
		for k := range rows {
			rows[k] = rowBody(random)
		}
		requests[i] = bench.Request("POST", fmt.Sprintf("/bank-ledger/%d/rows", accounts[random.IntN(len(accounts))]), s.key, `{"rows":[`+strings.Join(rows, ",")+`]}`)
	}
	load := bench.Load{Address: s.address, Clients: bulkClients, For: b.Round, Requests: requests, Each: bulkRows}
	load.After = func(ctx context.Context) error { return s.caughtUp(ctx) }
	return func() (bench.Sample, error) { return measureLag(ctx, w, load) }
}

// caughtUp waits until the books have the whole log.
func (s *server) caughtUp(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	for {
		var done bool
		if err := conn.QueryRow(ctx, `select position >= log.head() from projection.generation where live and name = 'books'`).Scan(&done); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
