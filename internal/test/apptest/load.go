package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

const loadClients = 16

// Load is many clients that write and remember the responses, while the server fails under them. At the end the books must have each
// acknowledged write once, and each write without a response once and complete, or not at all.
type Load struct {
	t        testing.TB
	servers  atomic.Pointer[[]string] // URLs, divided among the clients; they change with each start
	Clients  []*loadClient
	Answered atomic.Int64
	Away     atomic.Int64 // responses with status 503
	Lost     atomic.Int64 // requests without a response
	Accounts []int64
	pause    time.Duration // of each client after each write
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
	name     string
	account  int64
	Id       int64  // 0: the response was lost
	possible []what // its possible states
}

// what is a state of a row: its amount in paise, 0 for no row.
type what int64

// retry is a request with a key whose response was lost.
type retry struct {
	method, path, key string
	body              any
	done              func(status int, text []byte)
}

type loadClient struct {
	l       *Load
	nth     int
	random  *rand.Rand
	http    *http.Client
	count   int // of claims
	keys    int
	Claims  []*claim
	bulks   [][]*claim // those whose response was lost: all rows or none
	retries []retry
	marks   []*mark // records of other areas
}

func NewLoad(t testing.TB, url string, seed uint64) *Load {
	l := &Load{t: t, pause: pace()}
	l.At(url)
	for i := range loadClients {
		l.Clients = append(l.Clients, &loadClient{
			l: l, nth: i, random: rand.New(rand.NewPCG(seed, uint64(i))),
			http: &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		})
	}
	for i := range 4 {
		key := uuid.NewString()
		status, text := 0, []byte(nil)
		for status == 0 || status == http.StatusServiceUnavailable { // a server is slow after its start on a busy machine
			var err error
			status, text, err = l.Clients[0].Ask("POST", "/bank", key, map[string]string{"name": fmt.Sprint("Bank ", i)})
			require.NoError(t, err)
		}
		require.Equal(t, 201, status, "%s", text)
		l.Accounts = append(l.Accounts, IdOf(t, text))
	}
	return l
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
	c, account := l.Clients[0], l.Accounts[0]
	for posted := 0; posted < count; {
		rows := make([]any, min(1000, count-posted))
		for i := range rows {
			_, rows[i] = c.Claim(account)
		}
		status, text, err := c.Ask("POST", Ledger(account, "/rows"), "", map[string]any{"rows": rows})
		require.NoError(l.t, err)
		if BackPressured(status, text) {
			c.Claims = c.Claims[:len(c.Claims)-len(rows)]
			continue
		}
		require.Equal(l.t, 201, status, "%s", text)
		var got struct{ Rows []BankRow }
		require.NoError(l.t, json.Unmarshal(text, &got))
		for i, row := range got.Rows {
			c.Claims[len(c.Claims)-len(rows)+i].Id = row.ID
		}
		posted += len(rows)
	}
}

// server returns the URL of the client's server.
func (c *loadClient) server() string {
	servers := *c.l.servers.Load()
	return servers[c.nth%len(servers)]
}

func IdOf(t testing.TB, text []byte) int64 {
	var it struct {
		ID int64 `json:"id"`
	}
	require.NoError(t, json.Unmarshal(text, &it), "%s", text)
	return it.ID
}

// Ask sends one request. An error means that the response was lost.
func (c *loadClient) Ask(method, path, key string, body any) (status int, text []byte, err error) {
	c.l.asking.RLock()
	defer c.l.asking.RUnlock()
	status, text, _, err = send(c.http, method, c.server()+path, key, body)
	switch {
	case err != nil:
		c.l.Lost.Add(1)
	case status < 300:
		c.l.Answered.Add(1)
	}
	return status, text, err
}

// send sends one request with the operator's key and an optional Idempotency-Key.
func send(client *http.Client, method, url, key string, body any) (status int, text []byte, header http.Header, err error) {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return 0, nil, nil, err
		}
	}
	r, err := http.NewRequestWithContext(context.Background(), method, url, &sent)
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+OperatorKey)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, answer.Header, err
}

// BackPressured reports whether a response refuses a write because the books lag, as on a busy machine.
func BackPressured(status int, text []byte) bool {
	return status == http.StatusServiceUnavailable && bytes.Contains(text, []byte("More is written than the books can follow"))
}

// write repeats a write until it gets a response, or the context ends; without a key it sends it once. The response must be a success, or
// an outage of the server or its database.
func (c *loadClient) write(ctx context.Context, r retry) (answered bool) {
	for {
		status, text, err := c.Ask(r.method, r.path, r.key, r.body)
		switch {
		case err == nil && BackPressured(status, text):
		case err == nil && (status == 503 || bytes.Contains(text, []byte("Failed to create enquiry"))): // SPEC.txt has this text for an outage
			c.l.Away.Add(1)
		case err == nil && (status == 200 || status == 201 || status == 204):
			r.done(status, text)
			return true
		case err == nil:
			c.l.t.Errorf("%s %s: %d %s", r.method, r.path, status, text)
			return true
		}
		if r.key == "" || ctx.Err() != nil {
			return false
		}
		rest(ctx, 20*time.Millisecond)
	}
}

// Run lets all clients write until the context ends.
func (l *Load) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, c := range l.Clients {
		all.Go(func() {
			c.settle(ctx)
			for ctx.Err() == nil {
				c.step(ctx)
				rest(ctx, l.pause)
			}
		})
	}
	all.Wait()
}

func rest(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// settle repeats the requests with a key that got no response.
func (c *loadClient) settle(ctx context.Context) {
	open := c.retries
	c.retries = nil
	for _, r := range open {
		if !c.write(ctx, r) {
			c.retries = append(c.retries, r)
		}
	}
}

// Claim creates a new row, and returns its body.
func (c *loadClient) Claim(account int64) (*claim, map[string]any) {
	c.count++
	amount := what(1 + c.random.Int64N(100_000))
	w := &claim{name: fmt.Sprintf("%d-%d", c.nth, c.count), account: account, possible: []what{amount}}
	c.Claims = append(c.Claims, w)
	return w, map[string]any{
		"date":       fmt.Sprintf("2025-%02d-%02d", 1+c.random.IntN(12), 1+c.random.IntN(28)),
		"in_entries": []any{map[string]any{"description": w.name, "amount": amount.json()}},
	}
}

func (w what) json() json.Number { return json.Number(decimal.New(int64(w), -2).String()) }

// step does one write: it posts one or several rows, edits one or deletes one, with or without a key.
func (c *loadClient) step(ctx context.Context) {
	if c.l.areas != nil && c.random.IntN(3) == 0 {
		c.stepElsewhere(ctx)
		return
	}
	key := ""
	if c.random.IntN(2) == 0 {
		c.keys++
		key = fmt.Sprintf("key-%d-%d", c.nth, c.keys)
	}
	account := c.l.Accounts[c.random.IntN(len(c.l.Accounts))]
	switch n := c.random.IntN(10); {
	case n < 5:
		w, body := c.Claim(account)
		r := retry{"POST", Ledger(account), key, body, func(_ int, text []byte) { w.Id = IdOf(c.l.t, text) }}
		if !c.write(ctx, r) {
			c.lost(r, func() { w.possible = append(w.possible, 0) })
		}
	case n < 6:
		c.postMany(ctx, account, key)
	default:
		w := c.known()
		if w == nil {
			return
		}
		r := retry{method: "DELETE", path: At(w.account, w.Id), key: key}
		after := what(0)
		if n < 9 {
			after = what(1 + c.random.Int64N(100_000))
			r.method, r.path = "PUT", Ledger(w.account)
			r.body = map[string]any{"id": w.Id, "in_entries": []any{map[string]any{"description": w.name, "amount": after.json()}}}
		}
		before := w.possible[0]
		w.possible = []what{before, after} // until the response
		r.done = func(int, []byte) { w.possible = []what{after} }
		if !c.write(ctx, r) {
			c.lost(r, func() {})
		}
	}
}

// lost records a write whose response was lost.
func (c *loadClient) lost(r retry, otherwise func()) {
	if r.key != "" {
		c.retries = append(c.retries, r)
	} else {
		otherwise()
	}
}

func (c *loadClient) postMany(ctx context.Context, account int64, key string) {
	var rows []*claim
	var bodies []any
	for range 2 + c.random.IntN(20) {
		w, body := c.Claim(account)
		rows, bodies = append(rows, w), append(bodies, body)
	}
	r := retry{"POST", Ledger(account, "/rows"), key, map[string]any{"rows": bodies}, func(_ int, text []byte) {
		var got struct{ Rows []BankRow }
		require.NoError(c.l.t, json.Unmarshal(text, &got))
		for i := range rows {
			rows[i].Id = got.Rows[i].ID
		}
	}}
	if !c.write(ctx, r) {
		c.lost(r, func() {
			c.bulks = append(c.bulks, rows)
			for _, w := range rows {
				w.possible = append(w.possible, 0)
			}
		})
	}
}

// known returns a row whose id and state the client knows for certain, or nil.
func (c *loadClient) known() *claim {
	for range 10 {
		if len(c.Claims) == 0 {
			return nil
		}
		if w := c.Claims[c.random.IntN(len(c.Claims))]; w.Id != 0 && len(w.possible) == 1 && w.possible[0] != 0 {
			return w
		}
	}
	return nil
}

// folded waits until the live tables have all writes: on a busy machine that takes longer than a read waits.
func (l *Load) folded(reader *loadClient) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		status, _, header, err := send(reader.http, "GET", reader.server()+"/banks", "", nil)
		return err == nil && status == http.StatusOK && header.Get("Warning") == ""
	}, time.Minute, 20*time.Millisecond)
}

// Verify compares the clients' knowledge with the books. No client may write meanwhile.
func (l *Load) Verify() {
	t := l.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range l.Clients {
		all.Go(func() { c.settle(ctx) })
	}
	all.Wait()
	rows, ids := map[string][]BankRow{}, map[int64]bool{}
	reader := l.Clients[0]
	l.folded(reader)
	var banks []BankAccount
	status, text, err := reader.Ask("GET", "/banks", "", nil)
	require.NoError(t, err)
	require.Equal(t, 200, status, "%s", text)
	require.NoError(t, json.Unmarshal(text, &banks))
	for _, account := range l.Accounts {
		status, text, err := reader.Ask("GET", Ledger(account), "", nil)
		require.NoError(t, err)
		require.Equal(t, 200, status, "%s", text)
		var read []BankRow
		require.NoError(t, json.Unmarshal(text, &read))
		sum := decimal.Zero
		for i, r := range read {
			require.False(t, ids[r.ID], "row %d occurs twice", r.ID)
			ids[r.ID] = true
			if i > 0 {
				before := read[i-1]
				require.True(t, before.Date < r.Date || before.Date == r.Date && before.ID < r.ID, "rows must be in order")
			}
			sum = sum.Add(decimal.RequireFromString(r.In[0].Amount.String()))
			require.Equal(t, sum.String(), r.Balance.String(), "balance after row %d", r.ID)
			rows[r.In[0].Description] = append(rows[r.In[0].Description], r)
		}
		at := slices.IndexFunc(banks, func(a BankAccount) bool { return a.ID == account })
		require.GreaterOrEqual(t, at, 0, "account %d is missing", account)
		require.Equal(t, sum.String(), banks[at].Balance.String(), "balance of account %d", account)
	}
	given, present := map[int64]string{}, map[string]bool{}
	for _, c := range l.Clients {
		require.Empty(t, c.retries, "a request with a key got no response")
		for _, w := range c.Claims {
			is := what(0)
			switch there := rows[w.name]; {
			case len(there) > 1:
				require.Fail(t, "a row occurs twice", "%s: %v", w.name, there)
			case len(there) == 1:
				is = what(decimal.RequireFromString(there[0].In[0].Amount.String()).Shift(2).IntPart())
				if w.Id != 0 {
					require.Equal(t, w.Id, there[0].ID, w.name)
				}
			}
			require.Contains(t, w.possible, is, "row %s (%d)", w.name, w.Id)
			if w.Id != 0 {
				require.Empty(t, given[w.Id], "the number %d was given twice: to %s and %s", w.Id, given[w.Id], w.name)
				given[w.Id] = w.name
			}
			present[w.name] = is != 0
			delete(rows, w.name)
		}
		for _, b := range c.bulks { // no client could edit or delete these: it never learned their ids
			for _, w := range b {
				require.Equal(t, present[b[0].name], present[w.name], "a bulk is complete or missing")
			}
		}
	}
	require.Empty(t, rows, "no client posted these")
	if l.areas != nil {
		l.verifyAreas()
	}
}
