package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"bahi/internal/test/bench"
	"bahi/internal/test/starter"
)

// load is the clients with their shared state.
type load struct {
	sys   *system
	began time.Time

	mu    sync.Mutex
	calls []Call
	set   *set
}

// set has the records on which the clients work for a few seconds. Small parts are checked fast, and have few calls of unknown outcome.
type set struct {
	number    int
	workspace string
	key       string
	accounts  []int64

	mu        sync.Mutex
	rows      []Call           // acknowledged additions
	revisions map[string]int64 // newest acknowledged ones
	keys      []Call           // additions with a key, acknowledged or not
	contacts  []Call           // acknowledged claims
	positions []int64
}

const (
	requestTimeout = 6 * time.Second
	setLifetime    = 3 * time.Second
	pause          = 15 * time.Millisecond
	phonesOfSet    = 3
)

func newLoad(sys *system) *load {
	return &load{sys: sys, began: time.Now()}
}

// note appends to the history.
func (l *load) note(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

func (l *load) current() *set {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set
}

// renew gives the clients a new set every few seconds.
func (l *load) renew(ctx context.Context, seed uint64) {
	for number := 0; ctx.Err() == nil; number++ {
		if s, err := l.newSet(ctx, seed, number); err == nil {
			l.mu.Lock()
			l.set = s
			l.mu.Unlock()
			sleep(ctx, setLifetime)
		} else {
			sleep(ctx, 100*time.Millisecond)
		}
	}
}

func (l *load) newSet(ctx context.Context, seed uint64, number int) (*set, error) {
	s := &set{number: number, workspace: fmt.Sprintf("%08x-%04x-4000-8000-000000000000", uint32(seed), number), revisions: map[string]int64{}}
	create := func(key, path, body string) (made struct {
		ID  json.RawMessage
		Key string
	}, err error) {
		var a bench.Answer
		if a, err = l.send(ctx, number, request{method: "POST", path: path, key: key, body: body}); err == nil && a.Status != http.StatusCreated {
			err = fmt.Errorf("POST %s: %d %s", path, a.Status, a.Body)
		}
		if err == nil {
			err = json.Unmarshal(a.Body, &made)
		}
		return made, err
	}
	key, err := create(starter.OperatorKey, "/api/v1/api-keys",
		`{"name":"history","workspace_id":"`+s.workspace+`","permissions":{"ledger":"write","messaging":"write"}}`)
	if err != nil {
		return nil, err
	}
	s.key = key.Key
	for range 2 {
		account, err := create(s.key, "/bank", `{"name":"History"}`)
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseInt(string(account.ID), 10, 64)
		if err != nil {
			return nil, err
		}
		s.accounts = append(s.accounts, id)
	}
	return s, nil
}

type request struct {
	method, path, key, body string
	header                  []string
}

// send sends a request to a node.
func (l *load) send(ctx context.Context, node int, r request) (bench.Answer, error) {
	return bench.Send(ctx, l.sys.url(node), requestTimeout, bench.Request(r.method, r.path, r.key, r.body, r.header...))
}

// client is one of the clients. It sends one request at a time.
type client struct {
	*load

	number int
	random *rand.Rand
	count  int
	away   bool // it only reads after an unknown outcome, until the server is back
}

func (l *load) client(number int, seed uint64) *client {
	return &client{load: l, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
}

func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		if s := c.current(); s != nil {
			c.step(ctx, s)
		}
		sleep(ctx, pause)
	}
}

// step does one random call.
func (c *client) step(ctx context.Context, s *set) {
	call := Call{Client: c.number, Node: c.random.IntN(len(c.sys.nodes)), Workspace: s.workspace, Account: pick(c, s.accounts)}
	s.mu.Lock()
	rows, keyed, contacts, positions := s.rows, s.keys, s.contacts, s.positions
	s.mu.Unlock()
	n := c.random.IntN(100)
	if c.away {
		n = 60 + c.random.IntN(22)
	}
	switch {
	case n < 24 || len(rows) == 0 && n < 60:
		c.count++
		call.Op, call.Row = Add, fmt.Sprintf("s%d-c%d-%d", s.number, c.number, c.count)
		call.Date, call.Amount = c.date(), 1+c.random.Int64N(100_000)
		if c.random.IntN(2) == 0 {
			call.Key = call.Row
		}
	case n < 32 && len(keyed) > 0: // a repetition, or now and then another request with its key
		first := pick(c, keyed)
		call.Op, call.Account, call.Row, call.Date, call.Amount, call.Key = Add, first.Account, first.Row, first.Date, first.Amount, first.Key
		if c.random.IntN(8) == 0 {
			c.count++
			call.Row = fmt.Sprintf("s%d-c%d-%d", s.number, c.number, c.count)
		}
	case n < 50:
		row := newest(c, rows)
		call.Op, call.Account, call.Row, call.ID, call.Date, call.Amount = Edit, row.Account, row.Row, row.ID, row.Date,
			1+c.random.Int64N(100_000)
		if c.random.IntN(5) == 0 {
			call.Op, call.Amount = Delete, 0
		}
		if c.random.IntN(2) == 0 {
			s.mu.Lock()
			revision := s.revisions[row.Row]
			s.mu.Unlock()
			if c.random.IntN(4) == 0 {
				revision = max(0, revision-1)
			}
			call.Match = &revision
		}
	case n < 57:
		call.Op, call.Phone = Claim, fmt.Sprintf("+9198%04d%04d", s.number%10_000, c.random.IntN(phonesOfSet))
		call.Account = 0
	case n < 60:
		if len(contacts) == 0 {
			return
		}
		of := newest(c, contacts)
		call.Op, call.Account, call.ID, call.Phone = Release, 0, of.ID, of.Phone
	case n < 68 && len(rows) > 0:
		row := newest(c, rows)
		call.Op, call.Account, call.Row, call.ID = readRow, row.Account, row.Row, row.ID
	case n < 82:
		call.Op = List
	case n < 86:
		call.Op = Balance
	case n < 96:
		call.Op = List
		if len(positions) == 0 {
			return
		}
		switch c.random.IntN(3) {
		case 0:
			call.Min = positions[len(positions)-1]
		case 1:
			call.KnownAt = pick(c, positions)
		default:
			call.AsOf = c.date()
		}
	case n < 98:
		call.Op = GetLock
	default:
		call.Op, call.Date = SetLock, fmt.Sprintf("2025-%02d-31", []int{1, 3, 5}[c.random.IntN(3)])
	}
	c.do(ctx, s, call)
}

// date returns a date, possibly one that a lock covers.
func (c *client) date() string {
	return fmt.Sprintf("2025-%02d-%02d", 1+c.random.IntN(12), 1+c.random.IntN(28))
}

func pick[T any](c *client, of []T) T { return of[c.random.IntN(len(of))] }

// newest mostly picks one of the last, so that clients collide.
func newest[T any](c *client, of []T) T {
	if c.random.IntN(4) > 0 {
		of = of[max(0, len(of)-6):]
	}
	return pick(c, of)
}

// request returns the request of a call.
func (c Call) request() (r request) {
	ledger := fmt.Sprintf("/bank-ledger/%d", c.Account)
	entries := fmt.Sprintf(`"in_entries":[{"description":%q,"amount":%d}]`, c.Row, c.Amount)
	switch c.Op {
	case Add:
		r.method, r.path, r.body = "POST", ledger, fmt.Sprintf(`{"date":%q,%s}`, c.Date, entries)
	case Edit:
		r.method, r.path, r.body = "PUT", ledger, fmt.Sprintf(`{"id":%d,%s}`, c.ID, entries)
	case Delete:
		r.method, r.path = "DELETE", fmt.Sprintf("%s/row/%d", ledger, c.ID)
	case readRow:
		r.method, r.path = "GET", fmt.Sprintf("%s/row/%d", ledger, c.ID)
	case List:
		r.method, r.path = "GET", ledger
	case Balance:
		r.method, r.path = "GET", fmt.Sprintf("/bank/%d", c.Account)
	case SetLock:
		r.method, r.path, r.body = "PUT", "/books/lock", fmt.Sprintf(`{"locked_through":%q}`, c.Date)
		r.header = append(r.header, "Bahi-Reason: history")
	case GetLock:
		r.method, r.path = "GET", "/books/lock"
	case Claim:
		r.method, r.path, r.body = "POST", "/api/contacts", fmt.Sprintf(`{"name":"History","phone":%q}`, c.Phone)
	case Release:
		r.method, r.path, r.body = "PATCH", fmt.Sprintf("/api/contacts/%d", c.ID), `{"phone":null}`
	}
	if c.Key != "" {
		r.header = append(r.header, "Idempotency-Key: "+c.Key)
	}
	if c.Match != nil {
		r.header = append(r.header, fmt.Sprintf(`If-Match: "%d"`, *c.Match))
	}
	if c.Min != 0 {
		r.header = append(r.header, fmt.Sprint("Bahi-Min-Position: ", c.Min))
	}
	if c.KnownAt != 0 {
		r.path += fmt.Sprintf("?known_at=%d", c.KnownAt)
	}
	if c.AsOf != "" {
		r.path += "?as_of=" + c.AsOf
	}
	return r
}

// do sends a call and records it with its response.
func (c *client) do(ctx context.Context, s *set, call Call) {
	r := call.request()
	r.key = s.key
	if call.Op == Add && call.Key != "" {
		s.mu.Lock()
		s.keys = append(s.keys, call)
		s.mu.Unlock()
	}
	call.Start = time.Since(c.began)
	a, err := c.send(context.WithoutCancel(ctx), call.Node, r)
	end := time.Since(c.began)
	if errors.Is(err, bench.ErrNotSent) {
		c.away = true
		return
	}
	c.away = err != nil || a.Status >= 500
	if c.away {
		if call.writes() {
			call.Status, call.Problem = a.Status, string(a.Body)
			if call.Op == Claim {
				call.ID = 0
			}
			c.note(call)
		}
		sleep(ctx, 50*time.Millisecond)
		return
	}
	call.End, call.Status = end, a.Status
	if err := call.decode(a); err != nil {
		call.Problem = err.Error()
	}
	if !call.writes() && !call.ok() && (call.Op != readRow || call.Status != http.StatusNotFound) {
		return
	}
	c.note(call)
	s.learn(call)
}

// learn stores the revisions, positions, rows and contacts to which later calls of all clients refer.
func (s *set) learn(call Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.Revision != nil && call.Row != "" {
		s.revisions[call.Row] = max(s.revisions[call.Row], *call.Revision)
	}
	if !call.ok() || !call.writes() {
		return
	}
	s.positions = append(s.positions, call.Position)
	switch call.Op {
	case Add:
		s.rows = append(s.rows, call)
	case Claim:
		s.contacts = append(s.contacts, call)
	}
}

// decode fills the response's part of a call.
func (c *Call) decode(a bench.Answer) error {
	c.Position, _ = strconv.ParseInt(a.Header.Get("Bahi-Position"), 10, 64)
	c.Replayed = a.Header.Get("Idempotency-Replayed") == "true"
	c.Stale = a.Header.Get("Warning") != ""
	if !c.ok() {
		c.Locked = a.Status == http.StatusConflict && bytes.Contains(a.Body, []byte("Books are locked"))
		c.Problem = string(a.Body)
		return nil
	}
	if revision, err := strconv.ParseInt(strings.Trim(a.Header.Get("ETag"), `"`), 10, 64); err == nil {
		c.Revision = &revision
	}
	switch c.Op {
	case Add, Claim:
		var made struct{ ID int64 }
		err := json.Unmarshal(a.Body, &made)
		c.ID = made.ID
		return err
	case readRow, List:
		var read []bankRow
		var one bankRow
		if c.Op == List {
			if err := json.Unmarshal(a.Body, &read); err != nil {
				return err
			}
		} else if err := json.Unmarshal(a.Body, &one); err != nil {
			return err
		} else {
			read = append(read, one)
		}
		for _, r := range read {
			c.Rows = append(c.Rows, r.row())
		}
	case Balance:
		var account struct{ Balance int64 }
		err := json.Unmarshal(a.Body, &account)
		c.Sum = account.Balance
		return err
	case GetLock:
		var lock struct {
			Through string `json:"locked_through"`
		}
		err := json.Unmarshal(a.Body, &lock)
		c.Date = lock.Through
		return err
	}
	return nil
}

// bankRow is a row in a response.
type bankRow struct {
	ID       int64  `json:"id"`
	Date     string `json:"date"`
	In       side   `json:"in_entries"`
	Balance  int64  `json:"balance"`
	Revision int64  `json:"revision"`
}

func (b bankRow) row() Row {
	r := Row{ID: b.ID, Date: b.Date, Revision: b.Revision, Balance: b.Balance}
	if len(b.In) > 0 {
		r.Name, r.Amount = b.In[0].Description, b.In[0].Amount
	}
	return r
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
