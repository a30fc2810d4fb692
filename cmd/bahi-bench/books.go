package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	"bahi/projections"
	ledgertables "bahi/projections/ledger"
)

const (
	shortRows   = 100
	pageSize    = 50
	readClients = 16

	// The approximate durations of one client's pair of reads and of edits, which decide how many fit into a round.
	pairOfReads = 2500 * time.Microsecond
	pairOfEdits = 7 * time.Millisecond
	fewestPairs = 20
)

// pairs returns the number of pairs in a round.
func (b *benchmark) pairs(each time.Duration) int { return max(fewestPairs, int(b.Round/each)) }

// books measures what depends on the length of the log and the ledgers.
func (b *benchmark) books(ctx context.Context) error {
	url, err := b.database(ctx, "books")
	if err != nil {
		return err
	}
	l, err := b.makeBooks(ctx, url)
	if err != nil {
		return err
	}
	if !b.wanted("page") && !b.wanted("edit") && !b.wanted("balance") {
		return nil
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	err = b.reads(ctx, s, l)
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

func (b *benchmark) reads(ctx context.Context, s *server, l ledgers) error {
	if b.wanted("page") {
		if err := b.pages(ctx, s, l); err != nil {
			return err
		}
	}
	if b.wanted("balance") {
		if err := b.balances(ctx, s); err != nil {
			return err
		}
	}
	if b.wanted("edit") {
		return b.editing(ctx, s, l)
	}
	return nil
}

// ledgers are the accounts to read.
type ledgers struct {
	of                        *book.Ledger
	named                     string // what their figures' names begin with
	line                      string // an entry with an amount in rupees and paise
	head                      event.Position
	long, longDay             int64 // accounts
	short, shortDay           int64
	rows                      int   // of the long ledgers
	oldestOfLong, oldestShort int64 // rows
}

// makeBooks creates the log and folds it while the server is stopped.
func (b *benchmark) makeBooks(ctx context.Context, url string) (l ledgers, err error) {
	sys, err := b.system(ctx, url)
	if err != nil {
		return l, err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, b.Rows)
	if err != nil {
		return l, err
	}
	show, end := b.making(fmt.Sprintf("a log of %d events", b.Rows))
	err = m.mixed(ctx, 1, b.Rows, show, bank.Ledger)
	end()
	if err != nil {
		return l, err
	}
	reading := b.wanted("page") || b.wanted("edit") || b.wanted("balance")
	if b.wanted("rebuild") {
		if err := m.pause(); err != nil {
			return l, err
		}
		if err := b.rebuild(ctx, sys, bench.Figure{Name: "rebuild", Title: "offline rebuild of the books", Goal: &bench.Goal{Bound: 0.4, Aim: 0.6}}); err != nil {
			return l, err
		}
	}
	if b.wanted("rebuild") || b.wanted("doctor") {
		if err := m.pause(); err != nil {
			return l, err
		}
		if err := b.rebuilds(ctx, url, sys); err != nil {
			return l, err
		}
	}
	if !reading {
		return l, m.end()
	}
	l = ledgers{of: bank.Ledger, line: `{"description":"corrected","amount":%d.%02d}`, long: 1001, longDay: 1002, short: 1003, shortDay: 1004, rows: b.Rows}
	if err := b.makeLedgers(ctx, m, &l); err != nil {
		return l, err
	}
	if _, err := b.fold(ctx, sys); err != nil {
		return l, err
	}
	l.head, err = sys.Store.Head(ctx)
	return l, err
}

// making shows the progress of a log that is made.
func (b *benchmark) making(what string) (show func(done, total int64), end func()) {
	b.sayf("making %s", what)
	bar := screen.NewBar(os.Stderr, "making "+what, "events")
	return bar.Show, bar.End
}

// makeLedgers makes short and long ledgers and ends the log.
func (b *benchmark) makeLedgers(ctx context.Context, m *logMaker, l *ledgers) (err error) {
	for _, of := range []struct {
		account int64
		rows    int
		oneDay  bool
		first   *int64
	}{{l.short, shortRows, false, &l.oldestShort}, {l.shortDay, shortRows, true, new(int64)}, {l.long, l.rows, false, &l.oldestOfLong}, {l.longDay, l.rows, true, new(int64)}} {
		if of.account == 0 {
			continue
		}
		what := fmt.Sprintf("a ledger of %d rows", of.rows)
		if of.oneDay {
			what += " on one day"
		}
		show, end := b.making(what)
		*of.first, err = m.ledger(ctx, l.of, of.account, of.rows, of.oneDay, show)
		end()
		if err != nil {
			return err
		}
	}
	return m.end()
}

// fold rebuilds the books.
func (b *benchmark) fold(ctx context.Context, sys *app.System) (bench.Sample, error) {
	return b.foldOne(ctx, sys, ledgertables.Books)
}

// foldOne rebuilds a projection.
func (b *benchmark) foldOne(ctx context.Context, sys *app.System, p *projections.Projection) (bench.Sample, error) {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return bench.Sample{}, err
	}
	if err := dropLive(ctx, sys, p); err != nil {
		return bench.Sample{}, err
	}
	b.sayf("folding %d events into %s", head, p.Name)
	bar := screen.NewBar(os.Stderr, "folding", "events")
	defer bar.End()
	build := sys.Build(p)
	build.Progress = func(now projections.Progress) { bar.Show(int64(now.Done), int64(now.Total)) }
	began := time.Now()
	err = build.Run(ctx)
	return bench.Sample{Rate: float64(head) / time.Since(began).Seconds()}, err
}

// read reads and decodes the whole log: the least work of any fold.
func (b *benchmark) read(ctx context.Context, store eventstore.Store) (bench.Sample, error) {
	began, n := time.Now(), 0
	for e, err := range store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err == nil {
			_, err = domain.Catalogue.Decode(e)
		}
		if err != nil {
			return bench.Sample{}, err
		}
		n++
	}
	return bench.Sample{Rate: float64(n) / time.Since(began).Seconds()}, nil
}

// mostRebuilds keeps a run short: a rebuild takes many times a round.
const mostRebuilds = 2

// besideReading measures an operation on the log a few times, and reads and decodes the log before and after each.
func (b *benchmark) besideReading(ctx context.Context, store eventstore.Store, do func() (bench.Sample, error)) (found, limits bench.Series, err error) {
	for i := 0; ; i++ {
		b.sayf("reading and decoding the log")
		limit, err := b.read(ctx, store)
		if err != nil {
			return nil, nil, err
		}
		if limits = append(limits, limit); i == min(b.Rounds, mostRebuilds) {
			return found, limits, nil
		}
		s, err := do()
		if err != nil {
			return nil, nil, err
		}
		found = append(found, s)
	}
}

func (b *benchmark) rebuild(ctx context.Context, sys *app.System, of bench.Figure) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	found, limits, err := b.besideReading(ctx, sys.Store, func() (bench.Sample, error) { return b.fold(ctx, sys) })
	if err != nil {
		return err
	}
	of.Unit = "events/s"
	b.conclude(of, found.By(bench.Rate), "reading and decoding the log", limits.By(bench.Rate))
	return nil
}

// ask measures one client that alternates between a small and a large request.
func (s *server) ask(ctx context.Context, times int, small, large func(*bench.Conn) (time.Duration, error)) (a, z bench.Sample, err error) {
	c, err := bench.Dial(ctx, s.address)
	if err != nil {
		return a, z, err
	}
	defer c.Close() //nolint:errcheck // the connection is discarded
	var tookSmall, tookLarge []time.Duration
	began := time.Now()
	for i := range times + times/10 {
		one, err := small(c)
		if err != nil {
			return a, z, err
		}
		other, err := large(c)
		if err != nil {
			return a, z, err
		}
		if i >= times/10 { // the first ones fill caches
			tookSmall, tookLarge = append(tookSmall, one), append(tookLarge, other)
		}
	}
	return bench.SampleOf(tookSmall, time.Since(began)), bench.SampleOf(tookLarge, time.Since(began)), nil
}

// asked sends a request and requires success.
func asked(request []byte) func(*bench.Conn) (time.Duration, error) {
	return func(c *bench.Conn) (time.Duration, error) {
		a, err := c.Do(request)
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("a read failed with status %d: %s", a.Status, a.Body)
		}
		return a.Took, err
	}
}

func (b *benchmark) pages(ctx context.Context, s *server, l ledgers) error {
	page := func(account int64, page int) func(*bench.Conn) (time.Duration, error) {
		return asked(bench.Request("GET", fmt.Sprintf("/%s-ledger/%d?page_size=%d&page=%d", l.of.Name, account, pageSize, page), s.key, ""))
	}
	middle := max(1, l.rows/pageSize/2)
	for _, of := range []struct {
		name, title string
		short, long int64
	}{
		{"page", "page of 50 rows, middle of a " + l.of.Name + " ledger of %d", l.short, l.long},
		{"page_one_day", "the same, all %d rows on one day", l.shortDay, l.longDay},
	} {
		if of.long == 0 {
			continue
		}
		b.sayf("pages of 50 rows")
		small, large, err := s.ask(ctx, b.pairs(pairOfReads), page(of.short, 2), page(of.long, middle))
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: l.named + of.name, Title: fmt.Sprintf(of.title, l.rows), Unit: "ms", Goal: bench.AtMost(1.5)},
			bench.Series{large}.By(bench.P50), "of 100 rows", bench.Series{small}.By(bench.P50))
	}
	return nil
}

// editing measures the time from an edit until a read shows it: on the row itself, and on the newest page, where it changes every
// balance.
func (b *benchmark) editing(ctx context.Context, s *server, l ledgers) error {
	short, long := fmt.Sprintf("/%s-ledger/%d", l.of.Name, l.short), fmt.Sprintf("/%s-ledger/%d", l.of.Name, l.long)
	for _, of := range []struct {
		name, title        string
		goal               *bench.Goal
		atLong, atTheOther string
	}{
		{
			"edit", "edit of the oldest row of %d in a " + l.of.Name + " ledger, until it is read", bench.AtMost(1.2),
			fmt.Sprintf("/row/%d", l.oldestOfLong), fmt.Sprintf("/row/%d", l.oldestShort),
		}, {
			"edit_newest_page", "the same, until the newest page of %d shows it", nil,
			fmt.Sprintf("?page_size=%d&page=%d", pageSize, l.rows/pageSize), fmt.Sprintf("?page_size=%d&page=2", pageSize),
		},
	} {
		b.sayf("edits of the oldest row")
		small, large, err := s.ask(ctx, b.pairs(pairOfEdits), s.edit(l.line, short, l.oldestShort, of.atTheOther), s.edit(l.line, long, l.oldestOfLong, of.atLong))
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: l.named + of.name, Title: fmt.Sprintf(of.title, l.rows), Unit: "ms", Goal: of.goal},
			bench.Series{large}.By(bench.P50), "of 100", bench.Series{small}.By(bench.P50))
	}
	return nil
}

// edit changes the amount of a ledger's row and reads, at a path below the ledger's, until the balance changes.
func (s *server) edit(line, ledger string, row int64, path string) func(*bench.Conn) (time.Duration, error) {
	random := rand.New(rand.NewPCG(seed, uint64(row))) //nolint:gosec // the same edits in each run
	read := bench.Request("GET", ledger+path, s.key, "")
	last := ""
	return func(c *bench.Conn) (time.Duration, error) {
		body := fmt.Sprintf(`{"row_id":%d,"in_entries":[`+line+`],"out_entries":[]}`, row, 1+random.IntN(1_000_000), random.IntN(100))
		a, err := c.Do(bench.Request("PUT", ledger, s.key, body))
		if err != nil {
			return 0, err
		}
		if a.Status != 200 {
			return 0, fmt.Errorf("an edit failed with status %d: %s", a.Status, a.Body)
		}
		began := a.At.Add(-a.Took)
		for {
			shown, err := c.Do(read)
			if err != nil {
				return 0, err
			}
			balance, err := newestBalance(shown)
			if err != nil {
				return 0, err
			}
			if balance != last {
				last = balance
				return shown.At.Sub(began), nil
			}
		}
	}
}

// newestBalance returns the balance in the response with a row or a page of rows.
func newestBalance(a bench.Answer) (string, error) {
	type row struct {
		Balance json.Number
		Cash    json.Number `json:"cash_balance"`
	}
	var (
		one  row
		many []row
	)
	err := json.Unmarshal(a.Body, &one)
	if err != nil {
		if err = json.Unmarshal(a.Body, &many); err == nil && len(many) > 0 {
			one = many[len(many)-1]
		}
	}
	balance := cmp.Or(one.Balance, one.Cash)
	if err != nil || a.Status != 200 || balance == "" {
		return "", fmt.Errorf("a read returned status %d and no balance: %.200s", a.Status, a.Body)
	}
	return balance.String(), nil
}

func (b *benchmark) balances(ctx context.Context, s *server) error {
	requests := func(query string) [][]byte {
		all := make([][]byte, bankAccounts)
		for i := range all {
			all[i] = bench.Request("GET", fmt.Sprintf("/bank/%d%s", 1+i, query), s.key, "")
		}
		return all
	}
	load := func(query string) func() (bench.Sample, error) {
		l := bench.Load{Address: s.address, Clients: readClients, For: b.Round, Requests: requests(query)}
		return func() (bench.Sample, error) { return l.Run(ctx) }
	}
	// The accounts are in the log's first part, so its middle is theirs.
	then := fmt.Sprintf("?known_at=%d", b.Rows/2)
	selects := func() (bench.Sample, error) { return b.limits.Selects(ctx, readClients) }
	limit, found, err := b.interleave(ctx, "balances", selects, load(""), load(then))
	if err != nil {
		return err
	}
	for i, of := range []struct{ name, title string }{
		{"balance", "GET of a balance, 16 clients"}, {"balance_known_at", "the same, as known in the middle of the log"},
	} {
		b.conclude(bench.Figure{Name: of.name, Title: of.title, Unit: "/s", Goal: bench.AtLeast(0.4)},
			found[i].By(bench.Rate), "pgbench SELECT, 16 clients", limit.By(bench.Rate))
	}
	return nil
}
