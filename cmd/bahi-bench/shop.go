package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"bahi/domain/ledger/bank"
	"bahi/domain/unit"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	audittables "bahi/projections/audit"
)

const (
	shopAccounts = 1000
	shopPage     = 15
	manyClients  = 512
	trendParts   = 4 // compare the last quarter of a sustained run with the first
)

// shop measures a day in a shop: a thousand accounts with many rows, and all new rows are of today.
func (b *benchmark) shop(ctx context.Context) error {
	url, err := b.database(ctx, "shop")
	if err != nil {
		return err
	}
	if err := b.fillShop(ctx, url); err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		run  func(context.Context, *server) error
	}{{"mix", b.mix}, {"single", b.single}, {"few", b.few}, {"shop", b.sustained}} {
		if b.wanted(of.name) && err == nil {
			err = of.run(ctx, s)
		}
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// fillShop creates the earlier rows: all of today, each account in turn.
func (b *benchmark) fillShop(ctx context.Context, url string) error {
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, b.Rows)
	if err != nil {
		return err
	}
	b.sayf("making %d rows of today in %d accounts", b.Rows, shopAccounts)
	bar := screen.NewBar(os.Stderr, "making rows of today", "events")
	if err := m.open(bank.Ledger, 1, shopAccounts); err != nil {
		return err
	}
	today := unit.DateOf(time.Now())
	for i := range b.Rows {
		if i%1000 == 0 {
			bar.Show(int64(i), int64(b.Rows))
		}
		if err := m.add(bank.Ledger, int64(1+i%shopAccounts), today); err != nil {
			return err
		}
	}
	bar.End()
	if err := m.end(); err != nil {
		return err
	}
	_, err = b.fold(ctx, sys)
	return err
}

func shopAccount(random *rand.Rand) int { return 1 + random.IntN(shopAccounts) }

// todays returns requests that post one row of today each.
func (s *server) todays() [][]byte {
	random := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // the same rows in each run
	today := time.Now().Format(time.DateOnly)
	requests := make([][]byte, prebuilt)
	for i := range requests {
		body := fmt.Sprintf(`{"date":%q,"in_entries":[{"description":"%s, invoice %d","amount":%d.%02d}]}`, today,
			parties[random.IntN(len(parties))], 1000+random.IntN(9000), 100+random.IntN(500_000), random.IntN(100))
		requests[i] = bench.Request("POST", fmt.Sprintf("/bank-ledger/%d", shopAccount(random)), s.key, body)
	}
	return requests
}

// sustained measures rate and lag over a long time, and both again with readers of the audit log.
func (b *benchmark) sustained(ctx context.Context, s *server) error {
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close(ctx)
	for _, clients := range []int{postClients, manyClients} {
		b.sayf("rows of today, %d clients, for %s", clients, b.Sustain)
		before, err := b.limits.Inserts(ctx, postClients)
		if err != nil {
			return err
		}
		sample, lags, err := measureLags(ctx, w, bench.Load{Address: s.address, Clients: clients, For: b.Sustain, Requests: s.todays()})
		if err != nil {
			return err
		}
		after, err := b.limits.Inserts(ctx, postClients)
		if err != nil {
			return err
		}
		name, title := fmt.Sprintf("shop_%d", clients), fmt.Sprintf("rows of today on 1,000 accounts, %d clients, %s", clients, b.Sustain)
		rate := bench.Figure{Name: name, Title: title, Unit: "/s"}
		if clients == postClients {
			rate.Goal = bench.AtLeast(0.5)
		}
		b.conclude(rate, []float64{sample.Rate}, "pgbench INSERT, 64 clients", bench.Series{before, after}.By(bench.Rate))
		b.conclude(bench.Figure{Name: name + "_lag_p99", Title: "the same: p99 of the books' lag", Unit: "ms", Goal: bench.AtMost(250)},
			bench.Series{sample}.By(bench.Lag), "", nil)
		first, last := trend(lags)
		b.conclude(bench.Figure{Name: name + "_lag_trend", Title: "the same: p99 of the lag in the last quarter", Unit: "ms", Goal: bench.AtMost(1.5)},
			[]float64{last}, "in the first quarter", []float64{first})
	}
	return b.audited(ctx, s)
}

// trend returns the 99th percentile of the lag in the first and in the last quarter of the time, in milliseconds.
func trend(lags []late) (first, last float64) {
	slices.SortFunc(lags, func(a, b late) int { return a.at.Compare(b.at) })
	quarter := func(of []late) float64 {
		all := make([]time.Duration, len(of))
		for i, l := range of {
			all[i] = l.by
		}
		return bench.Lag(bench.Sample{Lag: bench.P99Of(all)})
	}
	n := max(1, len(lags)/trendParts)
	return quarter(lags[:n]), quarter(lags[len(lags)-n:])
}

// audited compares posting with the audit tree and a reader of the event stream, and posting without them.
func (b *benchmark) audited(ctx context.Context, s *server) error {
	load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.todays()}
	with := func(reads bool) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			if err := s.follow(ctx, audittables.Tree.Name, reads); err != nil {
				return bench.Sample{}, err
			}
			if reads {
				end, err := s.stream(ctx)
				if err != nil {
					return bench.Sample{}, err
				}
				defer end()
			}
			return load.Run(ctx)
		}
	}
	without, found, err := b.interleave(ctx, "rows of today, with audit and without", with(false), with(true))
	if err != nil {
		return err
	}
	if err := s.follow(ctx, audittables.Tree.Name, true); err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "shop_audited", Title: "rows of today, 64 clients, with the audit tree and one reader of /audit/events/stream", Unit: "/s", Goal: bench.AtLeast(0.95)},
		found[0].By(bench.Rate), "without them", without.By(bench.Rate))
	return nil
}

// stream reads the event stream of the whole log from now on, until end is called.
func (s *server) stream(ctx context.Context) (end func(), err error) {
	a, err := s.do(ctx, bench.Request("GET", "/audit/events?limit=1", operatorKey, "")) // its position is the log's head
	if err != nil || a.Status/100 != 2 {
		return nil, fmt.Errorf("the audit log returned status %d: %w", a.Status, err)
	}
	conn, in, err := s.open(ctx, bench.Request("GET", "/audit/events/stream", operatorKey, "", fmt.Sprintf("Last-Event-ID: %d", a.Position)))
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, in) //nolint:errcheck // ends with the connection
	return func() { _ = conn.Close() }, nil
}

// open sends a request for a stream, and returns the connection at the end of the answer's first line.
func (s *server) open(ctx context.Context, request []byte) (net.Conn, *bufio.Reader, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, nil, err
	}
	in, status := bufio.NewReader(conn), ""
	if _, err = conn.Write(request); err == nil {
		status, err = in.ReadString('\n')
	}
	if err == nil && !strings.Contains(status, " 200 ") {
		err = fmt.Errorf("a stream began with %q", status)
	}
	if err != nil {
		_ = conn.Close() // it is given up
	}
	return conn, in, err
}

// mix measures reads and writes of the same accounts: reads that wait for all writes against reads that do not wait.
func (b *benchmark) mix(ctx context.Context, s *server) error {
	random := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // the same reads in each run
	reads := func(headers ...string) [][]byte {
		all := make([][]byte, prebuilt)
		for i := range all {
			path := fmt.Sprintf("/bank/%d", shopAccount(random))
			if i%2 == 0 {
				path = fmt.Sprintf("/bank-ledger/%d?page_size=%d&page=%d", shopAccount(random), shopPage, 1+random.IntN(2))
			}
			all[i] = bench.Request("GET", path, s.key, "", headers...)
		}
		return all
	}
	var readP99 []float64
	load := func(reads [][]byte, noted bool) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			took := make([][]time.Duration, postClients)
			l := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.todays(), Odd: reads}
			l.Answered = func(client int, a bench.Answer) { took[client] = append(took[client], a.Took) }
			sample, err := l.Run(ctx)
			if noted {
				var all []time.Duration
				for client := 1; client < postClients; client += 2 {
					all = append(all, took[client]...)
				}
				readP99 = append(readP99, bench.P99(bench.Sample{P99: bench.P99Of(all)}))
			}
			return sample, err
		}
	}
	hasty, found, err := b.interleave(ctx, "reads and writes together", load(reads("Bahi-Min-Position: 1"), false), load(reads(), true))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "mix", Title: "64 clients, half of them reading pages and balances", Unit: "/s", Goal: bench.AtLeast(0.85)},
		found[0].By(bench.Rate), "reads that do not wait", hasty.By(bench.Rate))
	b.conclude(bench.Figure{Name: "mix_read_p99", Title: "the same: p99 of a read", Unit: "ms", Goal: bench.AtMost(60)}, readP99, "", nil)
	return nil
}

// single measures one client that posts rows.
func (b *benchmark) single(ctx context.Context, s *server) error {
	load := bench.Load{Address: s.address, Clients: 1, For: b.Round, Requests: s.todays()}
	limit, found, err := b.interleave(ctx, "POST of rows, 1 client",
		func() (bench.Sample, error) { return b.limits.Inserts(ctx, 1) }, func() (bench.Sample, error) { return load.Run(ctx) })
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "single_p50", Title: "POST of a row, 1 client: p50", Unit: "ms", Goal: bench.AtMost(2.2)},
		found[0].By(bench.P50), "pgbench INSERT, 1 client", limit.By(bench.P50))
	return nil
}

// few measures pages of a few rows.
func (b *benchmark) few(ctx context.Context, s *server) error {
	random := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // the same reads in each run
	pages := make([][]byte, prebuilt)
	for i := range pages {
		page := 1 + random.IntN(max(1, b.Rows/shopAccounts/shopPage))
		pages[i] = bench.Request("GET", fmt.Sprintf("/bank-ledger/%d?page_size=%d&page=%d", shopAccount(random), shopPage, page), s.key, "")
	}
	load := bench.Load{Address: s.address, Clients: readClients, For: b.Round, Requests: pages}
	limit, found, err := b.interleave(ctx, "pages of 15 rows",
		func() (bench.Sample, error) { return b.limits.Selects(ctx, readClients) }, func() (bench.Sample, error) { return load.Run(ctx) })
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "page_15", Title: "page of 15 rows, 16 clients", Unit: "/s", Goal: bench.AtLeast(0.2)},
		found[0].By(bench.Rate), "pgbench SELECT, 16 clients", limit.By(bench.Rate))
	return nil
}
