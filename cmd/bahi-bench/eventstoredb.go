package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"bahi/internal/app"
	"bahi/internal/bench"
)

const (
	serverVariable = "EVENTSTORE_TEST_URL"

	wholeRequests = 60   // posted one after the other
	rowsOfRequest = 1000 // of each
)

// eventStoreDB measures Bahi with its log in the server that EVENTSTORE_TEST_URL names, beside appends by the server's own client and
// beside Bahi with its log in Postgres. Without the variable it measures nothing.
func (b *benchmark) eventStoreDB(ctx context.Context) error {
	url := os.Getenv(serverVariable)
	if url == "" {
		return nil
	}
	config, err := esdb.ParseConnectionString(url)
	if err != nil {
		return fmt.Errorf("%s: %w", serverVariable, err)
	}
	config.Logger = esdb.NoopLogging()
	client, err := esdb.NewClient(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", serverVariable, err)
	}
	defer client.Close() //nolint:errcheck // the connection is discarded
	there, err := b.database(ctx, "books_of_eventstore")
	if err != nil {
		return err
	}
	data := filepath.Join(b.dir, "data_of_eventstore") // two servers do not share a folder
	s, err := b.serve(ctx, there, b.process(there, "EVENTSTORE_URL="+url, "BAHI_DATA="+data))
	if err != nil {
		return err
	}
	defer s.stop() //nolint:errcheck // a failure of its end is told by the next part
	accounts, err := s.openAccounts(ctx)
	if err != nil {
		return err
	}
	err = b.onServer(ctx, "books_beside_eventstore", func(ctx context.Context, here *server, beside []int64) error {
		if err := b.postsThere(ctx, client, s, here, accounts, beside); err != nil {
			return err
		}
		if err := b.nodesThere(ctx, url, data, s, accounts); err != nil {
			return err
		}
		return b.wholeThere(ctx, url, data, s, here, accounts, beside)
	})
	if err != nil {
		return err
	}
	return b.copyThere(ctx, url)
}

// postsThere measures rows posted alone, and a balance.
func (b *benchmark) postsThere(ctx context.Context, client *esdb.Client, s, here *server, accounts, beside []int64) error {
	post := func(s *server, accounts []int64, clients int) func() (bench.Sample, error) {
		load := bench.Load{Address: s.address, Clients: clients, For: b.Round, Requests: s.postings(accounts)}
		return func() (bench.Sample, error) { return load.Run(ctx) }
	}
	raw := func() (bench.Sample, error) { return appendsByClient(ctx, client, 1, b.Round) }
	limit, found, err := b.interleave(ctx, "EventStoreDB, 1 client", raw, post(s, accounts, 1))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "eventstore_post_1", Title: "log in EventStoreDB: POST of a row, 1 client: p50", Unit: "ms", Goal: bench.AtMost(1.6)},
		found[0].By(bench.P50), "append by its client", limit.By(bench.P50))
	for _, of := range []struct {
		clients int
		goal    float64
	}{{8, 0.6}, {64, 0.55}, {256, 0.5}} {
		onPostgres, found, err := b.interleave(ctx, fmt.Sprintf("EventStoreDB, %d clients", of.clients), post(here, beside, of.clients), post(s, accounts, of.clients))
		if err != nil {
			return err
		}
		title := fmt.Sprintf("log in EventStoreDB: POST of rows, %d clients", of.clients)
		b.conclude(bench.Figure{Name: fmt.Sprintf("eventstore_post_%d", of.clients), Title: title, Unit: "/s", Goal: bench.AtLeast(of.goal)},
			found[0].By(bench.Rate), "log in Postgres", onPostgres.By(bench.Rate))
		b.conclude(bench.Figure{Name: fmt.Sprintf("eventstore_post_%d_p99", of.clients), Title: title + ": p99", Unit: "ms"}, found[0].By(bench.P99), "", nil)
	}
	balance := func(s *server, account int64) func() (bench.Sample, error) {
		load := bench.Load{Address: s.address, Clients: 1, For: b.Round, Requests: [][]byte{bench.Request("GET", fmt.Sprintf("/bank/%d", account), s.key, "")}}
		return func() (bench.Sample, error) { return load.Run(ctx) }
	}
	onPostgres, found, err := b.interleave(ctx, "EventStoreDB, balances", balance(here, beside[0]), balance(s, accounts[0]))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "eventstore_balance", Title: "log in EventStoreDB: GET of a balance, 1 client: p50", Unit: "ms"},
		found[0].By(bench.P50), "log in Postgres", onPostgres.By(bench.P50))
	return nil
}

// wholeThere measures rows in large requests, and a rebuild of the books.
func (b *benchmark) wholeThere(ctx context.Context, url, data string, s, here *server, accounts, beside []int64) error {
	var bulks, rebuilds [2]bench.Sample
	for i, of := range []struct {
		s       *server
		account int64
		log     string
	}{{here, beside[0], ""}, {s, accounts[0], url}} {
		took, err := of.s.postWhole(ctx, of.account)
		if err != nil {
			return err
		}
		bulks[i] = bench.SampleOf([]time.Duration{took}, took)
		if err := of.s.stop(); err != nil { // it would fold the same tables
			return err
		}
		settings := b.settings(of.s.url)
		if settings.EventStore = of.log; of.log != "" {
			settings.Data = data
		}
		if rebuilds[i], err = b.foldOnce(ctx, settings); err != nil {
			return err
		}
	}
	b.conclude(bench.Figure{Name: "eventstore_bulk", Title: "log in EventStoreDB: 60,000 rows in 60 requests", Unit: "ms", Goal: bench.AtMost(3)},
		bench.Series{bulks[1]}.By(bench.P50), "log in Postgres", bench.Series{bulks[0]}.By(bench.P50))
	b.conclude(bench.Figure{Name: "eventstore_rebuild", Title: "log in EventStoreDB: rebuild of the books", Unit: "ms", Goal: bench.AtMost(1.75)},
		bench.Series{rebuilds[1]}.By(bench.P50), "log in Postgres", bench.Series{rebuilds[0]}.By(bench.P50))
	return nil
}

// foldOnce folds the books of a log beside the server that has it.
func (b *benchmark) foldOnce(ctx context.Context, settings app.Settings) (bench.Sample, error) {
	sys, err := settings.Open(ctx, false)
	if err != nil {
		return bench.Sample{}, err
	}
	defer sys.Close()
	began := time.Now()
	if _, err := b.fold(ctx, sys); err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began)
	return bench.SampleOf([]time.Duration{took}, took), nil
}

// postWhole posts many rows in large requests and waits until the books have them.
func (s *server) postWhole(ctx context.Context, account int64) (time.Duration, error) {
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same rows in each run
	rows := make([]string, rowsOfRequest)
	began, last := time.Now(), uint64(0)
	for range wholeRequests {
		for i := range rows {
			rows[i] = rowBody(random)
		}
		a, err := s.do(ctx, bench.Request("POST", fmt.Sprintf("/bank-ledger/%d/rows", account), s.key, `{"rows":[`+strings.Join(rows, ",")+`]}`))
		if err != nil {
			return 0, err
		}
		if a.Status != 201 {
			return 0, fmt.Errorf("a bulk failed with status %d: %.300s", a.Status, a.Body)
		}
		last = a.Position
	}
	read := bench.Request("GET", fmt.Sprintf("/bank/%d", account), s.key, "", fmt.Sprintf("Bahi-Min-Position: %d", last))
	for {
		a, err := s.do(ctx, read)
		if err != nil || a.Status == 200 {
			return time.Since(began), err
		}
		if a.Status != 503 { // the books do not have the rows yet
			return 0, fmt.Errorf("a read failed with status %d: %.300s", a.Status, a.Body)
		}
	}
}

// appendsByClient appends events to new streams by the server's own client. Their type is none of ours, so that Bahi passes over them.
func appendsByClient(ctx context.Context, client *esdb.Client, clients int, during time.Duration) (bench.Sample, error) {
	var (
		running sync.WaitGroup
		took    = make([][]time.Duration, clients)
		failed  = make([]error, clients)
		began   = time.Now()
		all     []time.Duration
	)
	for i := range clients {
		running.Go(func() {
			for at := began; at.Before(began.Add(during)) && failed[i] == nil; {
				e := rowOf300Bytes(1, at)
				_, failed[i] = client.AppendToStream(ctx, "raw-"+uuid.NewString(), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
					esdb.EventData{EventID: e.ID, EventType: "RawAppended", ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: e.Meta})
				now := time.Now()
				took[i], at = append(took[i], now.Sub(at)), now
			}
		})
	}
	running.Wait()
	elapsed := time.Since(began)
	for _, t := range took {
		all = append(all, t...)
	}
	return bench.SampleOf(all, elapsed), errors.Join(failed...)
}
