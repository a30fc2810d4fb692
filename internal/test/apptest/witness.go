package apptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

// FreshnessCheckers write, and immediately check that the write is in the page and in the balance. Whatever happens to the tables, they
// must see no error, no missing row in a response that is not marked as stale, and no response from an earlier position than the one
// before.
type FreshnessCheckers struct {
	t   testing.TB
	All []*witness

	mu      sync.RWMutex
	servers []string // URLs; they write to the first and read from each

	MayBeAway atomic.Bool // the server is being killed, so requests may fail
	Reads     atomic.Int64
	Stale     atomic.Int64
}

type witness struct {
	w       *FreshnessCheckers
	Account int64
	nth     int
	open    string            // the key of a row without a response
	sums    []decimal.Decimal // the balance after each of its rows
	wrote   uint64            // the position of its last write
	seen    map[string]uint64 // the newest position by server
}

const (
	witnessPage  = 10
	staleWarning = `110 - "Response is Stale"`
)

func NewWitnesses(t testing.TB, n int, servers ...string) *FreshnessCheckers {
	w := &FreshnessCheckers{t: t, servers: servers}
	for i := range n {
		one := &witness{w: w, nth: i, seen: map[string]uint64{}}
		w.All = append(w.All, one)
		a, err := send("POST", servers[0], "/bank", "", map[string]string{"name": fmt.Sprint("Witness ", i)})
		require.NoError(t, err)
		require.Equal(t, 201, a.Status, "%s", a.Body)
		one.Account = IdOf(t, a.Body)
	}
	return w
}

// At sets the current servers. After it returns, no checker calls a former server.
func (w *FreshnessCheckers) At(servers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = servers
}

// Run makes them write and read until the context ends.
func (w *FreshnessCheckers) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range w.All {
		all.Go(func() {
			for one.step(ctx) {
				rest(ctx, pace())
			}
		})
	}
	all.Wait()
}

// step adds a row and reads, unless the context ends.
func (one *witness) step(ctx context.Context) bool {
	one.w.mu.RLock()
	defer one.w.mu.RUnlock()
	if !one.post(ctx) {
		return ctx.Err() == nil
	}
	for range 3 {
		for _, server := range one.w.servers {
			one.readPage(server)
			one.readBalance(server)
		}
	}
	return true
}

// After returns after a number of further reads.
func (w *FreshnessCheckers) After(ctx context.Context, reads int64) {
	for until := w.Reads.Load() + reads; w.Reads.Load() < until && ctx.Err() == nil; {
		rest(ctx, time.Millisecond)
	}
}

// failsf reports a failure. While the server may be unavailable, a request without a response is not a failure.
func (one *witness) failsf(err error, format string, args ...any) {
	if err == nil || !one.w.MayBeAway.Load() {
		one.w.t.Errorf(format+": %v", append(args, err)...)
	}
}

// post adds a row, and repeats the request with its key until it gets a response, or the context ends. In each step it sends
// one request to a server that may be unavailable, because the server may have another address in the next step.
func (one *witness) post(ctx context.Context) (answered bool) {
	one.open = cmp.Or(one.open, fmt.Sprintf("witness-%d-%d", one.nth, len(one.sums)))
	amount := decimal.New(int64(len(one.sums)%97+1), -2)
	date := time.Date(1990, 1, 1+len(one.sums), 0, 0, 0, 0, time.UTC) // the numbers of two servers need not be in order
	body := map[string]any{"date": date.Format(time.DateOnly), "in_entries": []any{map[string]any{"amount": json.Number(amount.String())}}}
	for ctx.Err() == nil {
		a, err := send("POST", one.w.servers[0], Ledger(one.Account), one.open, body)
		if err == nil && a.Status == http.StatusCreated {
			sum := amount
			if n := len(one.sums); n > 0 {
				sum = sum.Add(one.sums[n-1])
			}
			one.sums, one.open = append(one.sums, sum), ""
			one.wrote = a.Position
			return true
		}
		if err != nil || !backPressured(a) {
			one.failsf(err, "post a row: %d %s", a.Status, a.Body)
		}
		rest(ctx, 5*time.Millisecond)
		if one.w.MayBeAway.Load() {
			return false
		}
	}
	return false
}

func (one *witness) readPage(server string) {
	rows := len(one.sums)
	page := max(1, (rows+witnessPage-1)/witnessPage)
	var got []BankRow
	header, ok := one.read(server, Ledger(one.Account, "?page_size=", witnessPage, "&page=", page), &got)
	if !ok {
		return
	}
	total, err := strconv.Atoi(header.Get("X-Total-Count"))
	if err != nil {
		one.w.t.Errorf("X-Total-Count: %v", err)
		return
	}
	if header.Get("Warning") == "" && total != rows {
		one.w.t.Errorf("%d rows were written and %d are read at position %s, which is not marked as stale", rows, total,
			header.Get("Bahi-Position"))
	}
	for i, row := range got {
		if nth := (page-1)*witnessPage + i; nth >= rows || row.Balance.String() != one.sums[nth].String() {
			one.w.t.Errorf("row %d of %d has the balance %s", nth, rows, row.Balance)
			return
		}
	}
}

func (one *witness) readBalance(server string) {
	var got BankAccount
	header, ok := one.read(server, fmt.Sprintf("/bank/%d", one.Account), &got)
	if !ok || len(one.sums) == 0 || header.Get("Warning") != "" {
		return
	}
	if sum := one.sums[len(one.sums)-1]; got.Balance.String() != sum.String() {
		one.w.t.Errorf("the balance is %s and read as %s, which is not marked as stale", sum, got.Balance)
	}
}

// read sends a GET, and checks the invariants of every response.
func (one *witness) read(server, path string, into any) (http.Header, bool) {
	a, err := send("GET", server, path, "", nil)
	if err != nil || a.Status != http.StatusOK {
		one.failsf(err, "GET %s: %d %s", path, a.Status, a.Body)
		return nil, false
	}
	one.w.Reads.Add(1)
	position, warning := a.Position, a.Header.Get("Warning")
	switch err := json.Unmarshal(a.Body, into); {
	case err != nil:
		one.w.t.Errorf("GET %s: %v: %s", path, err, a.Body)
		return nil, false
	case position < one.seen[server]:
		one.w.t.Errorf("GET %s: position %d after %d", path, position, one.seen[server])
	case warning != "" && warning != staleWarning:
		one.w.t.Errorf("GET %s: %s", path, warning)
	case warning == "" && position < one.wrote:
		one.w.t.Errorf("GET %s: position %d is before %d, which was written, and not marked as stale", path, position, one.wrote)
	case warning != "":
		one.w.Stale.Add(1)
	}
	one.seen[server] = position
	return a.Header, true
}
