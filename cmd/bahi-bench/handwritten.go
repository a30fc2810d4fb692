package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"bahi/internal/pgcluster"
	"bahi/internal/test/bench"
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

// handWrittenPage is a page of an account's rows.
const handWrittenPage = `
	select id, account, date::text, kind, amount::text, note, created_at from row where account = $1::bigint
	order by date, id limit $2 offset $3`

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
	mux.HandleFunc("GET /bank-ledger/{account}", handWritten{pool}.page)
	mux.HandleFunc("GET /bank/{account}", handWritten{pool}.balance)
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
	Balance   json.Number `json:"balance,omitempty"` // the account's balance after the row
}

const (
	longestNote = 500
	longestBody = 64 << 10
)

var highestAmount = decimal.New(1, 13) // the first amount that exceeds the column

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
	respond(w, http.StatusCreated, row, err)
}

// balance responds with an account's balance.
func (l handWritten) balance(w http.ResponseWriter, r *http.Request) {
	out := struct {
		ID      int64       `json:"id"`
		Balance json.Number `json:"balance"`
	}{}
	err := l.pool.QueryRow(r.Context(), `select id, balance::text from account where id = $1::bigint`, r.PathValue("account")).
		Scan(&out.ID, (*string)(&out.Balance))
	respond(w, http.StatusOK, out, err)
}

// page responds with a page of an account's rows.
func (l handWritten) page(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("page_size")) // an invalid size gives an empty page
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	rows, _ := l.pool.Query(r.Context(), handWrittenPage, r.PathValue("account"), size, max(0, page-1)*size) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (one writtenRow, err error) {
		err = row.Scan(&one.ID, &one.Account, &one.Date, &one.Kind, (*string)(&one.Amount), &one.Note, &one.CreatedAt)
		return one, err
	})
	respond(w, http.StatusOK, all, err)
}

// respond writes a body, or an error.
func respond(w http.ResponseWriter, status int, out any, err error) {
	if errors.Is(err, pgx.ErrNoRows) {
		http.Error(w, "account not found", http.StatusNotFound)
		return
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(out)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client sees it
}

// handWritten measures posts of rows, balances and pages, alternately with the hand-written ledger. Each of the two has its own Postgres
// with the same settings, so that the processor time of each is known.
func (b *benchmark) handWritten(ctx context.Context, s *server) error {
	return b.besideHandWritten(ctx, func(anchor *server, cluster *pgcluster.Cluster) error {
		postTheirs := func(clients int) round {
			load := b.load(anchor, clients, anchor.postings(anchor.accounts))
			return withProcessorTime(ctx, load, anchor.pid, cluster.PID(), nil)
		}
		postOurs := func(clients int) round { // a row's time includes that of the projections
			load := b.load(s, clients, s.postings(s.accounts))
			return withProcessorTime(ctx, load, s.pid, b.cluster.PID(), s.after(folding))
		}
		if err := warm(postTheirs(64), postOurs(64)); err != nil {
			return err
		}
		for _, of := range []struct {
			clients         int
			rate, processor float64 // goals
		}{{1, 1, 600}, {16, 1.2, 220}, {64, 1.7, 150}, {256, 2, 0}} {
			if err := execute(ctx, anchor.url, `checkpoint`); err != nil {
				return err
			}
			what := fmt.Sprintf("POST of a row, %d clients", of.clients)
			limit, found, err := b.interleave(ctx, what+", beside a hand-written ledger", postTheirs(of.clients), postOurs(of.clients))
			if err != nil {
				return err
			}
			name, of64 := fmt.Sprintf("handwritten_%d", of.clients), bench.AtMost(of.processor)
			if of.processor == 0 {
				of64 = nil
			}
			b.conclude(figure{name: name, title: what, number: bench.Rate, goal: bench.AtLeast(of.rate)}, found, "hand-written ledger", limit)
			if hasProcessorTime {
				what += ": processor time, with Postgres"
				b.conclude(figure{name: name + "_processor", title: what, number: bench.Processor, goal: of64}, found, "", nil)
				b.conclude(figure{name: name + "_processor_of_anchor", title: what + ", hand-written", number: bench.Processor}, limit, "", nil)
			}
		}
		return b.readsBesideHandWritten(ctx, s, anchor)
	})
}

// readsBesideHandWritten measures reads of balances and pages, alternately with the hand-written ledger: first without writes, then during
// posts of rows.
func (b *benchmark) readsBesideHandWritten(ctx context.Context, s, anchor *server) error {
	get := func(s *server, path string) [][]byte {
		return requests(prebuilt, func(_ int, random *rand.Rand) []byte {
			return bench.Request("GET", fmt.Sprintf(path, s.accounts[random.IntN(len(s.accounts))]), s.key, "")
		})
	}
	const balance, page, hand = "/bank/%d", "/bank-ledger/%d?page_size=15&page=1", "hand-written ledger"
	mix := func(s *server) round {
		load := b.load(s, 64, s.postings(s.accounts))
		pages := get(s, page)
		load.Odd = get(s, balance)
		for i := range load.Odd {
			if i%2 == 0 {
				load.Odd[i] = pages[i]
			}
		}
		return rounds(ctx, load)
	}
	read := func(s *server, path string) round {
		return rounds(ctx, b.load(s, 16, get(s, path)))
	}
	if err := warm(read(s, balance), read(s, page)); err != nil {
		return err
	}
	return errors.Join(
		b.compare(ctx, hand, read(anchor, balance), read(s, balance),
			figure{name: "balance", title: "GET of a balance, 16 clients", number: bench.Rate, goal: bench.AtLeast(1.2)}),
		b.compare(ctx, hand, read(anchor, page), read(s, page),
			figure{name: "page_15", title: "page of 15 rows, 16 clients", number: bench.Rate, goal: bench.AtLeast(3)}),
		b.compare(ctx, hand, mix(anchor), mix(s),
			figure{name: "mix", title: "64 clients, half of them reading pages and balances", number: bench.Rate, goal: bench.AtLeast(1.2)},
			figure{name: "mix_read_p99", title: "the same: p99 of a read", number: bench.OddP99}),
	)
}

// besideHandWritten starts a hand-written ledger with its own Postgres.
func (b *benchmark) besideHandWritten(ctx context.Context, measure func(*server, *pgcluster.Cluster) error) (err error) {
	b.sayf("starting a hand-written ledger with its own Postgres")
	b.servers++
	cluster, err := b.startCluster(ctx, fmt.Sprintf("hand_written_%d", b.servers))
	if err != nil {
		return fmt.Errorf("start the hand-written ledger's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
	anchor, err := b.launch(ctx, &server{url: cluster.URL()}, func(ctx context.Context, s *server) (func() error, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, program, "--hand-written="+s.address) //nolint:gosec // this program
		cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url)
		return b.start(ctx, s, cmd)
	})
	if err != nil {
		return fmt.Errorf("start the hand-written ledger: %w", err)
	}
	for i := range bankAccounts {
		anchor.accounts = append(anchor.accounts, int64(1+i))
	}
	return errors.Join(measure(anchor, cluster), anchor.stop())
}

const hasProcessorTime = runtime.GOOS == "linux"

// withProcessorTime returns a round that measures the processor time per request, of the server and its Postgres, until the
// function after returns.
func withProcessorTime(ctx context.Context, load bench.Load, server, postmaster int, after func(context.Context) error) round {
	return func() (bench.Sample, error) {
		before, err := processorTime(server, postmaster)
		if err != nil {
			return bench.Sample{}, err
		}
		s, err := load.Run(ctx)
		if err == nil && after != nil {
			err = after(ctx)
		}
		if err != nil {
			return s, err
		}
		until, err := processorTime(server, postmaster)
		s.Processor = (until - before) / time.Duration(max(s.Requests, 1))
		return s, err
	}
}

// processorTime returns the processor time so far of a server and of all processes of its Postgres; 0 if the system does not report it.
func processorTime(server, postmaster int) (sum time.Duration, err error) {
	if !hasProcessorTime {
		return 0, nil
	}
	backends := bench.ChildrenOf(postmaster)
	if len(backends) == 0 {
		return 0, errors.New("the system does not list the processes of Postgres")
	}
	for _, pid := range append(backends, postmaster, server) {
		taken, err := bench.ProcessorTime(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // the process has ended, and its time counts for the postmaster
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += taken
	}
	return sum, nil
}
