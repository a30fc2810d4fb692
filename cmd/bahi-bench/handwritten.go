package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"bahi/internal/bench"
	"bahi/internal/pgcluster"
)

// handWrittenTables are the tables of the hand-written ledger: accounts with their balances, and rows.
const handWrittenTables = `
	create table account (id bigint primary key, balance numeric(18,2) not null default 0);
	create table row (
		id bigserial primary key, account bigint not null references account, date date not null,
		kind text not null check (kind in ('in', 'out')), amount numeric(15,2) not null check (amount > 0), note text not null,
		created_at timestamptz not null default now()
	);
	create index on row (account, date, id);
	insert into account (id) select generate_series(1, %d)`

// handWrittenInsert inserts a row and adds it to its account's balance.
const handWrittenInsert = `
	with changed as (
		update account set balance = balance + case when $3 = 'in' then $4::numeric else -$4::numeric end where id = $1 returning id, balance
	), inserted as (
		insert into row (account, date, kind, amount, note) select id, $2, $3, $4, $5 from changed returning id, created_at
	)
	select inserted.id, inserted.created_at, changed.balance::text from inserted, changed`

// handWritten is the hand-written ledger: what an engineer would write instead of using Bahi.
type handWritten struct {
	pool *pgxpool.Pool
}

// serveHandWritten creates the hand-written ledger's tables and serves it until the context ends.
func serveHandWritten(ctx context.Context, address, database string) error {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return fmt.Errorf("read the address of the hand-written ledger's database: %w", err)
	}
	config.MaxConns = defaultConnections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open the hand-written ledger's database: %w", err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, fmt.Sprintf(handWrittenTables, bankAccounts)); err != nil {
		return fmt.Errorf("create the hand-written ledger's tables: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /bank-ledger/{account}", handWritten{pool}.post)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // ListenAndServe reports it
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the hand-written ledger: %w", err)
	}
	return nil
}

// givenRow is the body of a request, in the form of Bahi's bank rows.
type givenRow struct {
	Date string       `json:"date"`
	In   []givenEntry `json:"in_entries"`
	Out  []givenEntry `json:"out_entries"`
}

type givenEntry struct {
	Description string          `json:"description"`
	Amount      decimal.Decimal `json:"amount"`
}

// writtenRow is the body of a response.
type writtenRow struct {
	ID        int64       `json:"id"`
	Account   int64       `json:"account"`
	Date      string      `json:"date"`
	Kind      string      `json:"kind"`
	Amount    json.Number `json:"amount"`
	Note      string      `json:"note"`
	CreatedAt time.Time   `json:"created_at"`
	Balance   json.Number `json:"balance"` // of the account after the row
}

const (
	longestNote = 500
	longestBody = 64 << 10
)

var highestAmount = decimal.New(1, 13) // the first that the column does not hold

// check checks the fields and returns the row to write.
func (g givenRow) check() (row writtenRow, err error) {
	if _, err := time.Parse(time.DateOnly, g.Date); err != nil {
		return row, errors.New("date: must be a day such as 2026-05-04")
	}
	if len(g.In)+len(g.Out) != 1 {
		return row, errors.New("in_entries: exactly one entry is needed, on either side")
	}
	kind, entries := "in", g.In
	if len(g.Out) == 1 {
		kind, entries = "out", g.Out
	}
	e := entries[0]
	if places := e.Amount.Exponent(); places > 0 || places < -2 || !e.Amount.IsPositive() || e.Amount.Cmp(highestAmount) >= 0 {
		return row, errors.New("amount: must be more than 0, with at most 13 digits and two decimals")
	}
	if utf8.RuneCountInString(e.Description) > longestNote {
		return row, fmt.Errorf("description: at most %d characters", longestNote)
	}
	return writtenRow{Date: g.Date, Kind: kind, Amount: json.Number(e.Amount.String()), Note: e.Description}, nil
}

// post writes a row and responds with it and with the balance.
func (l handWritten) post(w http.ResponseWriter, r *http.Request) {
	account, err := strconv.ParseInt(r.PathValue("account"), 10, 64)
	if err != nil {
		http.Error(w, "the account's id must be a number", http.StatusBadRequest)
		return
	}
	var given givenRow
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody)).Decode(&given); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	row, err := given.check()
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	row.Account = account
	err = l.pool.QueryRow(r.Context(), handWrittenInsert, account, row.Date, row.Kind, row.Amount.String(), row.Note).
		Scan(&row.ID, &row.CreatedAt, (*string)(&row.Balance))
	if errors.Is(err, pgx.ErrNoRows) {
		http.Error(w, "account not found", http.StatusNotFound)
		return
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(row)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body) // the client sees it
}

// handWritten measures posts of rows beside those to the hand-written ledger. Each of the two has a Postgres of its own with the same
// settings, so that the processor time of each is known.
func (b *benchmark) handWritten(ctx context.Context) error {
	return b.onServer(ctx, "beside_hand_written", func(ctx context.Context, s *server, accounts []int64) (err error) {
		b.sayf("starting a hand-written ledger with its own Postgres")
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		cluster, err := pgcluster.Start(ctx, pgcluster.Options{Dir: filepath.Join(b.dir, "hand_written"), Log: log})
		if err != nil {
			return fmt.Errorf("start the hand-written ledger's Postgres: %w", err)
		}
		defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
		anchor, err := b.launch(ctx, cluster.URL(), b.handWrittenProcess)
		if err != nil {
			return fmt.Errorf("start the hand-written ledger: %w", err)
		}
		defer func() { err = errors.Join(err, anchor.stop()) }()
		return b.besideHandWritten(ctx, s, accounts, anchor, cluster)
	})
}

// handWrittenProcess runs the hand-written ledger.
func (b *benchmark) handWrittenProcess(ctx context.Context, s *server) (func() error, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--hand-written="+s.address) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url)
	return b.start(ctx, s, cmd)
}

func (b *benchmark) besideHandWritten(ctx context.Context, s *server, accounts []int64, anchor *server, cluster *pgcluster.Cluster) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	anchorAccounts := make([]int64, bankAccounts)
	for i := range anchorAccounts {
		anchorAccounts[i] = int64(1 + i)
	}
	toAnchor := bench.Load{Address: anchor.address, For: b.Round, Requests: anchor.postings(anchorAccounts)}
	toBahi := bench.Load{Address: s.address, For: b.Round, Requests: s.postings(accounts)}
	postAnchor := func(clients int) func() (bench.Sample, error) {
		return withProcessorTime(ctx, toAnchor, clients, anchor.pid, cluster.PID(), func() error { return nil })
	}
	postBahi := func(clients int) func() (bench.Sample, error) { // a row's time includes that of the projections
		return withProcessorTime(ctx, toBahi, clients, s.pid, b.cluster.PID(), func() error { return allCaughtUp(ctx, conn) })
	}
	for _, post := range []func() (bench.Sample, error){postAnchor(postClients), postBahi(postClients)} {
		if _, err := post(); err != nil { // warm up: a server that has just started is slower
			return err
		}
	}
	if !hasProcessorTime {
		b.sayf("processor times are left out: they are read from Linux's /proc")
	}
	for _, of := range []struct {
		clients         int
		rate, processor float64 // goals
	}{{1, 0.8, 1000}, {16, 0.85, 340}, {64, 1.2, 220}} {
		if err := checkpoint(ctx, cluster); err != nil {
			return err
		}
		clients := fmt.Sprintf("%d clients", of.clients)
		if of.clients == 1 {
			clients = "1 client"
		}
		what := "POST of rows beside a hand-written ledger, " + clients
		limit, found, err := b.interleave(ctx, what, postAnchor(of.clients), postBahi(of.clients))
		if err != nil {
			return err
		}
		name, title, theirs := fmt.Sprintf("handwritten_%d", of.clients), "POST of a row, "+clients, "hand-written ledger, "+clients
		const processor = ": processor time, with Postgres"
		b.conclude(bench.Figure{Name: name, Title: title, Unit: "/s", Goal: bench.AtLeast(of.rate)},
			found[0].By(bench.Rate), theirs, limit.By(bench.Rate))
		if !hasProcessorTime {
			continue
		}
		b.conclude(bench.Figure{Name: name + "_processor", Title: title + processor, Unit: "us", Goal: bench.AtMost(of.processor)},
			found[0].By(bench.Processor), "", nil)
		b.conclude(bench.Figure{Name: name + "_processor_of_anchor", Title: theirs + processor, Unit: "us"}, limit.By(bench.Processor), "", nil)
	}
	return nil
}

const hasProcessorTime = runtime.GOOS == "linux"

// withProcessorTime returns a round that measures the processor time of a request, of the server and its Postgres, until followed returns.
func withProcessorTime(
	ctx context.Context, load bench.Load, clients, server, postmaster int, followed func() error,
) func() (bench.Sample, error) {
	load.Clients = clients
	return func() (bench.Sample, error) {
		before, err := processorTime(server, postmaster)
		if err != nil {
			return bench.Sample{}, err
		}
		s, err := load.Run(ctx)
		if err == nil {
			err = followed()
		}
		if err != nil {
			return s, err
		}
		after, err := processorTime(server, postmaster)
		s.Processor = (after - before) / time.Duration(max(s.Requests, 1))
		return s, err
	}
}

// processorTime returns the processor time so far of a server and of all processes of its Postgres; 0 where the system does not say.
func processorTime(server, postmaster int) (sum time.Duration, err error) {
	if !hasProcessorTime {
		return 0, nil
	}
	backends := childrenOf(postmaster)
	if len(backends) == 0 {
		return 0, errors.New("the system does not list the processes of Postgres")
	}
	for _, pid := range append(backends, postmaster, server) {
		taken, err := bench.ProcessorTime(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // it has ended, and the postmaster has its time
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += taken
	}
	return sum, nil
}
