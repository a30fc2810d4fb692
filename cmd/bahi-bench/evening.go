package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"bahi/domain/unit"
	"bahi/internal/bench"
	"bahi/internal/cli/demo"
	"bahi/internal/cli/screen"
	"bahi/internal/pgcluster"
)

const (
	eveningClients  = 64
	eveningSustain  = 10 // times --sustain
	eveningFlat     = 1.1
	eveningRecords  = 1000 // of a kind, at most, that are asked for
	eveningContacts = 50   // at least, of those who may be written to
)

// evening is a workspace of the demo, as its clients know it.
type evening struct {
	key      string
	accounts map[string][]int64 // of each ledger
	contacts []int64            // who may be written to
	channel  int64
	company  string
	words    []string // of products
	began    int64    // so that a second evening has other messages
}

// errand is an operation with its part of a hundred requests.
type errand struct {
	name    string
	part    int
	request func(e *evening, random *rand.Rand, n int) []byte
}

func (e *evening) of(random *rand.Rand, ledger string) int64 {
	return e.accounts[ledger][random.IntN(len(e.accounts[ledger]))]
}

func (e *evening) get(format string, values ...any) []byte {
	return bench.Request("GET", fmt.Sprintf(format, values...), e.key, "")
}

func (e *evening) post(path, format string, values ...any) []byte {
	return bench.Request("POST", path, e.key, fmt.Sprintf(format, values...))
}

// row posts a row of today.
func row(ledger, entries string) func(*evening, *rand.Rand, int) []byte {
	return func(e *evening, random *rand.Rand, _ int) []byte {
		return e.post(fmt.Sprintf("/%s-ledger/%d", ledger, e.of(random, ledger)), `{"date":%q,%s}`, time.Now().Format(time.DateOnly), fmt.Sprintf(entries, 100+random.IntN(400)))
	}
}

// busyEvening is 60 % reads over all areas, 30 % rows, 5 % webhooks, 5 % messages and enquiries.
var busyEvening = []errand{
	{"page of a bank ledger", 12, func(e *evening, r *rand.Rand, _ int) []byte {
		return e.get("/bank-ledger/%d?page_size=%d&page=%d", e.of(r, "bank"), shopPage, 1+r.IntN(4))
	}},
	{"page of a client ledger", 12, func(e *evening, r *rand.Rand, _ int) []byte {
		return e.get("/client-ledger/%d?page_size=%d&page=%d", e.of(r, "client"), shopPage, 1+r.IntN(4))
	}},
	{"balance of a karigar", 8, func(e *evening, r *rand.Rand, _ int) []byte { return e.get("/karigar/%d", e.of(r, "karigar")) }},
	{"orders of a client", 4, func(e *evening, r *rand.Rand, _ int) []byte {
		return e.get("/client-orders?page_size=%d&client_id=%d", shopPage, e.of(r, "client"))
	}},
	{"catalog search", 8, func(e *evening, r *rand.Rand, _ int) []byte {
		return e.get("/api/v1/catalog?limit=20&search=%s", e.words[r.IntN(len(e.words))])
	}},
	{"company", 4, func(e *evening, _ *rand.Rand, _ int) []byte { return e.get("/api/v1/companies/%s", e.company) }},
	{"enquiries", 4, func(e *evening, _ *rand.Rand, _ int) []byte { return e.get("/api/v1/enquiries?limit=20") }},
	{"contacts", 4, func(e *evening, _ *rand.Rand, _ int) []byte { return e.get("/api/contacts?limit=20&sort=recent") }},
	{"conversation", 4, func(e *evening, r *rand.Rand, _ int) []byte {
		return e.get("/api/contacts/%d/messages?limit=20", e.contacts[r.IntN(len(e.contacts))])
	}},
	{"POST of a bank row", 10, row("bank", `"in_entries":[{"description":"UPI","amount":%d}]`)},
	{"POST of a client row", 8, row("client", `"out_entries":[{"item_name":"payal","weight":%d,"touch":92.5,"rate":96.5}]`)},
	{"POST of a karigar row", 6, row("karigar", `"in_entries":[{"item_name":"payal","pure_weight":%d,"fine_percent":92,"wastage_percent":2}]`)},
	{"POST of a bullion row", 3, row("bullion", `"in_entries":[{"kind":"metal","weight":%d,"touch":99.9}]`)},
	{"POST of a polisher row", 3, row("polisher", `"out_entries":[{"item_name":"ring","weight":%d}]`)},
	{"webhook of the gateway", 5, func(e *evening, r *rand.Rand, n int) []byte {
		from := strangers
		if n%8 == 0 {
			from = chatPhone
		}
		return orderByChat(fmt.Sprintf("evening-%d-%d", e.began, n), from, r)
	}},
	{"message to a contact", 3, func(e *evening, r *rand.Rand, n int) []byte {
		return e.post(fmt.Sprintf("/api/contacts/%d/messages", e.contacts[r.IntN(len(e.contacts))]), `{"channelId":%d,"text":"It is ready, no. %d"}`, e.channel, n)
	}},
	{"enquiry", 2, func(e *evening, _ *rand.Rand, n int) []byte {
		return e.post("/api/v1/enquiries", `{"to_company_id":%q,"user_name":"Ravi Shah","user_email":"ravi%d@example.com","message":"How much?","quantity":3}`, e.company, n%eveningRecords)
	}},
}

// evening measures a busy evening over the demo, with a rebuild of the books in the middle. Whatever is answered with an error of ours, differs from the log or breaks the audit
// log is an error.
func (b *benchmark) evening(ctx context.Context) (err error) {
	url, filled, err := b.openDemo(ctx)
	if err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url, "GATEWAY_WEBHOOK_TOKEN="+chatToken, "GATEWAY_ALLOWED_PHONES="+chatPhone, "GATEWAY_WORKSPACE="+filled.Workspace.String()))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	e, err := s.enter(ctx, filled.Key)
	if err != nil {
		return err
	}
	if err := b.spend(ctx, s, e); err != nil {
		return err
	}
	for _, args := range [][]string{{"doctor"}, {"audit", "verify", "--store"}} {
		b.sayf("bahi %s", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, b.Bahi, args...) //nolint:gosec // the operator chooses it
		cmd.Env = append(os.Environ(), "BAHI_DATA="+b.data(), "DATABASE_URL="+url)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("bahi %s: %w: %s", args[0], err, said)
		}
	}
	return nil
}

// demoEmail is the default address of bahi demo.
const demoEmail = "demo@example.org"

// openDemo returns the database of the demo that --filled names, or of a new one.
func (b *benchmark) openDemo(ctx context.Context) (url string, filled demo.Filled, err error) {
	if b.Filled == "" {
		if url, err = b.database(ctx, "evening"); err == nil {
			filled, err = b.fillDemo(ctx, url)
		}
		return url, filled, err
	}
	if b.filled, err = pgcluster.Start(ctx, pgcluster.Options{Dir: b.Filled}); err != nil {
		return "", filled, err
	}
	url = b.filled.URL()
	sys, err := b.system(ctx, url)
	if err != nil {
		return url, filled, err
	}
	defer sys.Close()
	filled, err = demo.Find(ctx, sys, demoEmail)
	return url, filled, err
}

// fillDemo fills a database with the demo, and reports how fast that was.
func (b *benchmark) fillDemo(ctx context.Context, url string) (filled demo.Filled, err error) {
	sys, err := b.system(ctx, url)
	if err != nil {
		return filled, err
	}
	defer sys.Close()
	b.sayf("filling a workspace with about %d events of the demo", b.Rows)
	bar := screen.NewBar(os.Stderr, "demo", "records")
	defer bar.End()
	began := time.Now()
	err = sys.Working(ctx, func(ctx context.Context) (err error) {
		filled, err = demo.Fill(ctx, sys, demo.Plan{Events: b.Rows, Seed: seed, Until: unit.DateOf(time.Now()), Email: demoEmail, Password: operatorKey}, bar.Show)
		return err
	})
	if err != nil {
		return filled, err
	}
	took := time.Since(began).Seconds()
	head, err := sys.Store.Head(ctx)
	b.conclude(bench.Figure{Name: "demo", Title: fmt.Sprintf("bahi demo of %d events, until all tables have them", head), Unit: "events/s"}, []float64{float64(head) / took}, "", nil)
	return filled, err
}

// enter reads what the clients of an evening know.
func (s *server) enter(ctx context.Context, key string) (*evening, error) {
	e := &evening{key: key, accounts: map[string][]int64{}, words: []string{"payal", "bangle", "ring", "chain", "kada", "meena", "kundan"}, began: time.Now().Unix()}
	var errs []error
	read := func(path string, into any) {
		a, err := s.do(ctx, e.get("%s", path))
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("GET %s was answered with %d: %s", path, a.Status, a.Body)
		}
		errs = append(errs, cmp.Or(err, json.Unmarshal(a.Body, into)))
	}
	type record struct{ ID int64 }
	ids := func(of []record) (all []int64) {
		for _, r := range of[:min(len(of), eveningRecords)] {
			all = append(all, r.ID)
		}
		return all
	}
	for _, ledger := range []string{"bank", "bullion", "client", "karigar", "polisher"} {
		var all []record
		read("/"+ledger+"s", &all)
		e.accounts[ledger] = ids(all)
	}
	var channels []struct {
		ID   int64
		Name string
	}
	read("/api/channels", &channels)
	for _, c := range channels {
		if c.Name == "Sales" {
			e.channel = c.ID
		}
	}
	var catalog struct {
		Data []struct {
			Company string `json:"company_id"`
		}
	}
	read("/api/v1/catalog?limit=1", &catalog)
	if len(catalog.Data) > 0 {
		e.company = catalog.Data[0].Company
	}
	type message struct {
		Direction string
		Channel   int64 `json:"channelId"`
	}
	for page, more := 1, true; more && len(e.contacts) < eveningContacts; page++ { // the first are those whom an earlier evening wrote to
		var contacts []record
		read(fmt.Sprintf("/api/contacts?limit=100&sort=recent&page=%d", page), &contacts)
		more = len(contacts) > 0
		for _, c := range contacts {
			var messages []message
			read(fmt.Sprintf("/api/contacts/%d/messages", c.ID), &messages)
			if slices.ContainsFunc(messages, func(m message) bool { return m.Direction == "in" && m.Channel == e.channel }) { // others are written to by templates only
				e.contacts = append(e.contacts, c.ID)
			}
		}
	}
	if len(e.contacts) == 0 || e.company == "" || e.channel == 0 {
		errs = append(errs, errors.New("the demo has no contacts, company or channel"))
	}
	return e, errors.Join(errs...)
}

// spent is what one client saw.
type spent struct {
	took   [][]time.Duration // by operation
	writes []step
	failed []string // answers of 5xx
	err    error
}

// spend puts the load on the server.
func (b *benchmark) spend(ctx context.Context, s *server, e *evening) error {
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close(ctx)
	lasts := eveningSustain * b.Sustain
	before, err := b.limits.Mixed(ctx, eveningClients)
	if err != nil {
		return err
	}
	b.sayf("an evening of %s with %d clients", lasts, eveningClients)
	var running, beside sync.WaitGroup
	began := time.Now()
	all := make([]spent, eveningClients)
	for i := range all {
		running.Go(func() { all[i] = e.client(ctx, s, i, began.Add(lasts)) })
	}
	var rebuild, memory error
	var rss []float64
	during, end := context.WithCancel(ctx)
	beside.Go(func() {
		select {
		case <-time.After(lasts / 2):
			if rebuild = s.operate(ctx, "rebuild", `{"keep_seconds":0}`); rebuild == nil {
				rebuild = s.rebuilt(ctx)
			}
		case <-during.Done():
		}
	})
	beside.Go(func() {
		for during.Err() == nil && memory == nil {
			var now float64
			if now, memory = memoryNow(s.pid); now > 0 {
				rss = append(rss, now)
			}
			time.Sleep(min(time.Second, lasts/100))
		}
	})
	running.Wait()
	elapsed := time.Since(began)
	end()
	beside.Wait()
	var writes []step
	var failures []string
	took := make([][]time.Duration, len(busyEvening))
	errs := []error{rebuild, memory}
	for _, one := range all {
		errs = append(errs, one.err)
		writes, failures = append(writes, one.writes...), append(failures, one.failed...)
		for i := range one.took {
			took[i] = append(took[i], one.took[i]...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	lags, _, err := lagsOf(ctx, w, writes)
	if err != nil {
		return err
	}
	after, err := b.limits.Mixed(ctx, eveningClients)
	if err != nil {
		return err
	}
	answered := slices.Concat(took...)
	b.conclude(bench.Figure{Name: "evening", Title: fmt.Sprintf("busy evening, 64 clients, %s, a rebuild in the middle", lasts), Unit: "/s"},
		[]float64{float64(len(answered)) / elapsed.Seconds()}, "pgbench, 60 % SELECT and 40 % INSERT", bench.Series{before, after}.By(bench.Rate))
	for i, of := range busyEvening {
		b.conclude(bench.Figure{Name: "evening_p99_" + strings.ReplaceAll(of.name, " ", "_"), Title: "the same: p99 of: " + of.name, Unit: "ms"},
			[]float64{bench.P99(bench.Sample{P99: bench.P99Of(took[i])})}, "", nil)
	}
	b.conclude(bench.Figure{Name: "evening_lag_p99", Title: "the same: p99 of the books' lag", Unit: "ms"}, []float64{bench.Lag(bench.Sample{Lag: bench.P99Of(lags)})}, "", nil)
	late := rss[len(rss)/2:]
	part := max(1, len(late)/5)
	b.conclude(bench.Figure{Name: "evening_memory", Title: "the same: memory at most in the last fifth of the last half", Unit: "MB", Goal: bench.AtMost(eveningFlat)},
		[]float64{slices.Max(late[len(late)-part:])}, "in the first fifth", []float64{slices.Max(late[:part])})
	b.conclude(bench.Figure{Name: "evening_memory_most", Title: "the same: memory at most", Unit: "MB"}, []float64{slices.Max(rss)}, "", nil)
	b.conclude(bench.Figure{Name: "evening_errors", Title: "the same: answers of 500 and above", Unit: "", Goal: bench.AtMost(0)}, []float64{float64(len(failures))}, "", nil)
	if len(failures) > 0 {
		b.sayf("one of them: %s", failures[0])
	}
	return nil
}

// client sends one request after the other until the time is over.
func (e *evening) client(ctx context.Context, s *server, number int, until time.Time) (out spent) {
	out.took = make([][]time.Duration, len(busyEvening))
	c, err := bench.Dial(ctx, s.address)
	if err != nil {
		out.err = err
		return out
	}
	defer c.Close()                                           //nolint:errcheck // the connection is discarded
	random := rand.New(rand.NewPCG(seed, uint64(100+number))) //nolint:gosec // the same requests in each run
	for n := number; time.Now().Before(until) && ctx.Err() == nil; n += eveningClients {
		i, at := 0, random.IntN(100)
		for at >= busyEvening[i].part {
			at -= busyEvening[i].part
			i++
		}
		a, err := c.Do(busyEvening[i].request(e, random, n))
		switch {
		case err != nil:
			out.err = fmt.Errorf("%s: %w", busyEvening[i].name, err)
			return out
		case a.Status >= 500:
			out.failed = append(out.failed, fmt.Sprintf("%s: %d %s", busyEvening[i].name, a.Status, bytes.TrimSpace(a.Body)))
		case a.Status/100 != 2:
			out.err = fmt.Errorf("%s was answered with %d: %s", busyEvening[i].name, a.Status, a.Body)
			return out
		default:
			out.took[i] = append(out.took[i], a.Took)
			if strings.HasSuffix(busyEvening[i].name, " row") {
				out.writes = append(out.writes, step{a.At, a.Position})
			}
		}
	}
	return out
}

// memoryNow returns what memory a process has, in MB.
func memoryNow(pid int) (mb float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident float64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * float64(os.Getpagesize()) / kilobytesPerMB / kilobytesPerMB, err
}
