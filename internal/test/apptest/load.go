package apptest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/commands/lease"
	"bahi/internal/test/bench"
	"bahi/internal/test/pgtest"
)

const loadClients = 16

// Load is many clients that write, while the server fails under them. Each write has an Idempotency-Key and is repeated until it gets a
// response. At the end the books must have each write once. prove/history also has writes without a key, whose outcome may be unknown.
type Load struct {
	t        testing.TB
	servers  atomic.Pointer[[]string] // URLs, divided among the clients; they change with each start
	Clients  []*loadClient
	Answered atomic.Int64
	Away     atomic.Int64 // responses with status 503
	Lost     atomic.Int64 // requests without a response
	Accounts []int64
	pause    time.Duration // pause of each client after each write
	asking   sync.RWMutex  // held by each request
	areas    *areas        // nil: the clients write the bank ledger alone
}

// pace returns the clients' pause after each write, which leaves time for concurrent tests. With BAHI_ROUNDS there is none.
func pace() time.Duration {
	if os.Getenv("BAHI_ROUNDS") != "" {
		return 0
	}
	return 5 * time.Millisecond
}

// claim is a row that a client posted, under a unique description.
type claim struct {
	name    string
	account int64
	id      int64 // 0: it has not got its response
	amount  int64 // in paise; 0: it was deleted
}

// write is a request that changes something.
type write struct {
	method, path, key string
	body              any
	done              func(text []byte)
}

type loadClient struct {
	l      *Load
	nth    int
	random *rand.Rand
	count  int // number of writes
	claims []*claim
	open   *write  // has no response yet
	marks  []*mark // records of other areas
}

func NewLoad(t testing.TB, url string, seed uint64) *Load {
	l := &Load{t: t, pause: pace()}
	l.At(url)
	for i := range loadClients {
		l.Clients = append(l.Clients, &loadClient{l: l, nth: i, random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	for i := range 4 {
		l.Accounts = append(l.Accounts, IdOf(t, l.made("/bank", map[string]string{"name": fmt.Sprint("Bank ", i)})))
	}
	return l
}

// made writes a record, and returns the response.
func (l *Load) made(path string, body any) (text []byte) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.True(l.t, l.Clients[0].finish(ctx, &write{"POST", path, uuid.NewString(), body, func(answer []byte) { text = answer }}))
	return text
}

// At sets the current servers.
func (l *Load) At(servers ...string) { l.servers.Store(&servers) }

// Move sets the current servers when no request to a former one is open.
func (l *Load) Move(servers ...string) {
	l.asking.Lock()
	defer l.asking.Unlock()
	l.At(servers...)
}

// Fill posts rows to the first account, 1,000 in a request.
func (l *Load) Fill(count int) {
	l.t.Helper()
	for posted := 0; posted < count; posted += 1000 {
		require.True(l.t, l.Clients[0].finish(l.t.Context(), l.Clients[0].post(l.Accounts[0], min(1000, count-posted))))
	}
}

func IdOf(t testing.TB, text []byte) int64 {
	var it struct {
		ID int64 `json:"id"`
	}
	require.NoError(t, json.Unmarshal(text, &it), "%s", text)
	return it.ID
}

// ask sends one request. An error means that the response was lost.
func (c *loadClient) ask(method, path, key string, body any) (bench.Answer, error) {
	c.l.asking.RLock()
	defer c.l.asking.RUnlock()
	servers := *c.l.servers.Load()
	return send(method, servers[c.nth%len(servers)], path, key, body)
}

// send sends one request with the operator's key and an optional Idempotency-Key.
func send(method, url, path, key string, body any) (bench.Answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return bench.Answer{}, err
		}
	}
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key: " + key}
	}
	return bench.Send(context.Background(), url, bench.AnswerIn, bench.Request(method, path, OperatorKey, string(text), headers...))
}

// backPressured reports whether a response refuses a write because the books lag, as on a busy machine.
func backPressured(a bench.Answer) bool {
	return a.Status == http.StatusServiceUnavailable && strings.Contains(string(a.Body), "More is written than the books can follow")
}

// finish repeats a write until it gets a response, or the context ends. The response must be a success, or an outage of the server or its
// database; "Failed to create enquiry" is SPEC.txt's text for one.
func (c *loadClient) finish(ctx context.Context, w *write) (answered bool) {
	for c.open = w; ; rest(ctx, 20*time.Millisecond) {
		a, err := c.ask(w.method, w.path, w.key, w.body)
		switch {
		case err != nil:
			c.l.Lost.Add(1)
		case backPressured(a):
		case a.Status == http.StatusServiceUnavailable, strings.Contains(string(a.Body), "Failed to create enquiry"):
			c.l.Away.Add(1)
		case a.Status/100 == 2:
			c.l.Answered.Add(1)
			w.done(a.Body)
			c.open = nil
			return true
		default:
			c.l.t.Errorf("%s %s: %d %s", w.method, w.path, a.Status, a.Body)
			c.open = nil
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// Run lets all clients write until the context ends.
func (l *Load) Run(ctx context.Context) { l.each(func(c *loadClient) { c.run(ctx) }) }

func (l *Load) each(do func(*loadClient)) {
	var all sync.WaitGroup
	for _, c := range l.Clients {
		all.Go(func() { do(c) })
	}
	all.Wait()
}

func (c *loadClient) run(ctx context.Context) {
	for w := c.open; ctx.Err() == nil; w = nil {
		if w == nil {
			w = c.next()
		}
		c.finish(ctx, w)
		rest(ctx, c.l.pause)
	}
}

func rest(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// next returns a new write: one or several rows, an edit, a deletion, or a record of another area.
func (c *loadClient) next() *write {
	if c.l.areas != nil && c.random.IntN(3) == 0 {
		return c.mark()
	}
	account := c.l.Accounts[c.random.IntN(len(c.l.Accounts))]
	known := c.known()
	switch n := c.random.IntN(10); {
	case n < 5 || known == nil:
		return c.post(account, 1)
	case n < 6:
		return c.post(account, 2+c.random.IntN(20))
	case n < 9:
		amount := 1 + c.random.Int64N(100_000)
		return &write{"PUT", Ledger(known.account), uuid.NewString(), map[string]any{"id": known.id, "in_entries": entries(known.name, amount)},
			func([]byte) { known.amount = amount }}
	}
	return &write{"DELETE", At(known.account, known.id), uuid.NewString(), nil, func([]byte) { known.amount = 0 }}
}

// post returns a write of new rows.
func (c *loadClient) post(account int64, count int) *write {
	rows, claims := make([]any, count), make([]*claim, count)
	for i := range rows {
		c.count++
		w := &claim{name: fmt.Sprintf("%d-%d", c.nth, c.count), account: account, amount: 1 + c.random.Int64N(100_000)}
		claims[i], rows[i] = w, map[string]any{
			"date":       fmt.Sprintf("2025-%02d-%02d", 1+c.random.IntN(12), 1+c.random.IntN(28)),
			"in_entries": entries(w.name, w.amount),
		}
	}
	c.claims = append(c.claims, claims...)
	if count == 1 {
		return &write{"POST", Ledger(account), uuid.NewString(), rows[0], func(text []byte) { claims[0].id = IdOf(c.l.t, text) }}
	}
	return &write{"POST", Ledger(account, "/rows"), uuid.NewString(), map[string]any{"rows": rows}, func(text []byte) {
		var got struct{ Rows []BankRow }
		require.NoError(c.l.t, json.Unmarshal(text, &got))
		for i := range claims {
			claims[i].id = got.Rows[i].ID
		}
	}}
}

func entries(name string, amount int64) any {
	return []any{map[string]any{"description": name, "amount": json.Number(decimal.New(amount, -2).String())}}
}

// known returns a row of the client, or nil.
func (c *loadClient) known() *claim {
	for range min(10, len(c.claims)) {
		if w := c.claims[c.random.IntN(len(c.claims))]; w.id != 0 && w.amount != 0 {
			return w
		}
	}
	return nil
}

// Verify compares the clients' knowledge with the books. No client may write meanwhile.
func (l *Load) Verify() {
	t := l.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l.each(func(c *loadClient) {
		if c.open != nil {
			c.finish(ctx, c.open)
		}
	})
	var banks []BankAccount
	require.Eventually(t, func() bool { // on a busy machine the tables take longer than a read waits
		a, err := l.Clients[0].ask("GET", "/banks", "", nil)
		return err == nil && a.Status == http.StatusOK && a.Header.Get("Warning") == "" && json.Unmarshal(a.Body, &banks) == nil
	}, time.Minute, 20*time.Millisecond)
	rows := map[string]BankRow{}
	for _, account := range l.Accounts {
		a, err := l.Clients[0].ask("GET", Ledger(account), "", nil)
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		var read []BankRow
		require.NoError(t, json.Unmarshal(a.Body, &read))
		sum := decimal.Zero
		for i, r := range read {
			if i > 0 {
				before := read[i-1]
				require.True(t, before.Date < r.Date || before.Date == r.Date && before.ID < r.ID, "rows must be in order")
			}
			sum = sum.Add(decimal.RequireFromString(r.In[0].Amount.String()))
			require.Equal(t, sum.String(), r.Balance.String(), "balance after row %d", r.ID)
			_, twice := rows[r.In[0].Description]
			require.False(t, twice, "row %s occurs twice", r.In[0].Description)
			rows[r.In[0].Description] = r
		}
		at := slices.IndexFunc(banks, func(a BankAccount) bool { return a.ID == account })
		require.GreaterOrEqual(t, at, 0, "account %d is missing", account)
		require.Equal(t, sum.String(), banks[at].Balance.String(), "balance of account %d", account)
	}
	given := map[int64]string{}
	for _, c := range l.Clients {
		require.Nil(t, c.open, "a request got no response")
		for _, w := range c.claims {
			require.Empty(t, given[w.id], "the number %d was given twice: to %s and %s", w.id, given[w.id], w.name)
			given[w.id] = w.name
			if w.amount != 0 {
				require.Equal(t, w.id, rows[w.name].ID, "row %s", w.name)
				require.Equal(t, decimal.New(w.amount, -2).String(), rows[w.name].In[0].Amount.String(), "row %s", w.name)
				delete(rows, w.name)
			}
		}
	}
	require.Empty(t, rows, "no client posted these")
	if l.areas != nil {
		l.verifyAreas()
	}
}

// Rounds returns the number of rounds of a fault test: BAHI_ROUNDS, or few.
func Rounds(t *testing.T, few int) int {
	text := os.Getenv("BAHI_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// After calls do after count more acknowledged writes of the load.
func (l *Load) After(ctx context.Context, count int64, do func()) {
	until := l.Answered.Load() + count
	for l.Answered.Load() < until && ctx.Err() == nil {
		rest(ctx, time.Millisecond)
	}
	do()
}

// Healthy checks that the doctor finds no difference.
func Healthy(t *testing.T, cmd *Cmd) {
	t.Helper()
	out, wrong, status := Execute(t, cmd)
	require.Equal(t, 0, status, "%s%s", out, wrong)
}

// EndLeases ends the leases that a process took before it was killed, as if their time had passed.
func EndLeases(t *testing.T, database string, killed time.Time) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{
		`update inbox.call set due_at = now() where verdict = 'waiting' and due_at between now() and $1`,
		`update knowledge.lease set until = now() where until <= $1`,
		`update river.river_leader set expires_at = now() where expires_at <= $1`,
	} {
		pgtest.Exec(t, conn, sql, killed.Add(lease.Duration))
	}
}
