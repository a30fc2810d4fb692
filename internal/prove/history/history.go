// Package history records what clients of bahi serve see while processes and connections fail, and checks the record. Porcupine looks for
// an order of all calls that explains every response. Each response is also compared with the log at its position.
package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation names the effect of a call.
type operation string

// The operations. Copy and Promote are not calls of a client: the database is copied, and the copy replaces it.
const (
	Add     operation = "add"     // posts a row
	Edit    operation = "edit"    // changes its amount
	Delete  operation = "delete"  // deletes it
	readRow operation = "read"    // reads a row
	List    operation = "list"    // reads the rows of an account
	Balance operation = "balance" // reads the balance of an account
	SetLock operation = "lock"    // locks the books through a date
	GetLock operation = "locked"  // reads the lock
	Claim   operation = "claim"   // creates a contact with a phone
	Release operation = "release" // takes the phone from the contact
	Copy    operation = "copy"
	Promote operation = "promote"
)

// Call is one request and its response. Times are nanoseconds since the history began.
type Call struct {
	Client    int           `json:"client"`
	Node      int           `json:"node"`
	Op        operation     `json:"op"`
	Start     time.Duration `json:"start"`
	End       time.Duration `json:"end,omitempty"` // 0: the outcome is unknown
	Workspace string        `json:"workspace,omitempty"`

	Account int64  `json:"account,omitempty"`
	Row     string `json:"row,omitempty"` // its description, which is unique
	ID      int64  `json:"id,omitempty"`  // ID of the row or contact: an argument, or, for Add and Claim, from the response
	Date    string `json:"date,omitempty"`
	Amount  int64  `json:"amount,omitempty"`
	Match   *int64 `json:"match,omitempty"` // the revision of If-Match
	Key     string `json:"key,omitempty"`   // Idempotency-Key
	Phone   string `json:"phone,omitempty"`
	Min     int64  `json:"min,omitempty"`      // Bahi-Min-Position
	KnownAt int64  `json:"known_at,omitempty"` // a position
	AsOf    string `json:"as_of,omitempty"`    // a date

	Status   int    `json:"status,omitempty"`
	Position int64  `json:"position,omitempty"` // Bahi-Position
	Revision *int64 `json:"revision,omitempty"`
	Replayed bool   `json:"replayed,omitempty"`
	Locked   bool   `json:"locked_out,omitempty"` // refused by the lock of the books
	Stale    bool   `json:"stale,omitempty"`      // the response has a Warning
	Rows     []Row  `json:"rows,omitempty"`
	Sum      int64  `json:"sum,omitempty"` // sum that Balance returned
	Problem  string `json:"problem,omitempty"`
}

// Row is a row of a response.
type Row struct {
	Name     string `json:"name"`
	ID       int64  `json:"id"`
	Date     string `json:"date"`
	Amount   int64  `json:"amount"`
	Revision int64  `json:"revision"`
	Balance  int64  `json:"balance"`
}

// Event is an event of the log after the calls.
type Event struct {
	Position int64           `json:"position"`
	Stream   string          `json:"stream"`
	Revision int64           `json:"revision"`
	Type     string          `json:"type"`
	Data     json.RawMessage `json:"data"`
}

// History is a run: its settings, all calls in the order of their ends, and the log.
type History struct {
	Settings Settings
	Calls    []Call
	Log      []Event
	Lost     int64 // events after this position were lost by the first Promote
	Findings []string
}

// writes reports whether the call changes something if it succeeds.
func (c Call) writes() bool {
	switch c.Op {
	case Add, Edit, Delete, SetLock, Claim, Release:
		return true
	}
	return false
}

func (c Call) known() bool { return c.End != 0 }

func (c Call) ok() bool { return c.Status >= 200 && c.Status < 300 }

// line is a line of a file. Exactly one field is set.
type line struct {
	Settings *Settings `json:"settings,omitempty"`
	Call     *Call     `json:"call,omitempty"`
	Event    *Event    `json:"event,omitempty"`
	Lost     int64     `json:"lost,omitempty"`
	Finding  string    `json:"finding,omitempty"`
}

// Save writes a history to a file, as JSON lines.
func (h History) Save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(f)
	out := json.NewEncoder(buffered)
	err = out.Encode(line{Settings: &h.Settings, Lost: h.Lost})
	for _, c := range h.Calls {
		err = errors.Join(err, out.Encode(line{Call: &c}))
	}
	for _, e := range h.Log {
		err = errors.Join(err, out.Encode(line{Event: &e}))
	}
	for _, f := range h.Findings {
		err = errors.Join(err, out.Encode(line{Finding: f}))
	}
	return errors.Join(err, buffered.Flush(), f.Close())
}

// anomaly is a part of a history that no order of the calls explains.
type anomaly struct {
	Rule, Of string // the rule, and the row, account, key, value or position
	What     string
	Picture  string // path of porcupine's picture, if there is one
}

func (a anomaly) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", a.Rule, a.Of, a.What, a.Picture))
}

// Checked is the result of a check.
type Checked struct {
	Parts     int // number of rows, accounts, keys … that were checked separately
	Calls     int
	Unknown   int // calls of unknown outcome
	Undecided int // number of parts for which porcupine ran out of time
	Anomalies []anomaly
}

// patience limits the check of one part.
const patience = 30 * time.Second

// Check checks a history. It writes pictures of parts that porcupine refuses into the folder.
func (h History) Check(folder string) Checked {
	result := Checked{Calls: len(h.Calls)}
	for _, c := range h.Calls {
		if !c.known() {
			result.Unknown++
		}
	}
	for _, f := range h.Findings {
		result.Anomalies = append(result.Anomalies, anomaly{Rule: "run", What: f})
	}
	byRow, byAccount := map[string][]Call{}, map[string][]Call{}
	byKey, byPhone, byWorkspace := map[string][]Call{}, map[string][]Call{}, map[string][]Call{}
	put := func(parts map[string][]Call, of string, c Call) { parts[of] = append(parts[of], c) }
	names := h.names()
	for _, c := range h.Calls {
		if c.Key != "" {
			put(byKey, c.Key, c)
		}
		if c.Op == Claim || c.Op == Release {
			put(byPhone, c.Workspace+" "+c.Phone, c)
		}
		switch c.Op {
		case Add, Edit, Delete, SetLock:
			put(byWorkspace, c.Workspace, c)
		}
		if !fresh(c) {
			continue
		}
		switch c.Op {
		case GetLock:
			put(byWorkspace, c.Workspace, c)
		case Add, Edit, Delete:
			put(byRow, c.Row, c)
			put(byAccount, strconv.FormatInt(c.Account, 10), c)
		case readRow:
			put(byRow, c.Row, c)
		case Balance:
			put(byAccount, strconv.FormatInt(c.Account, 10), c)
		case List:
			put(byAccount, strconv.FormatInt(c.Account, 10), c)
			for _, part := range divided(c, names[c.Account]) {
				put(byRow, part.Row, part)
			}
		}
	}
	check(h, &result, folder, rows, byRow)
	check(h, &result, folder, accounts, byAccount)
	check(h, &result, folder, keys, byKey)
	check(h, &result, folder, phones, byPhone)
	check(h, &result, folder, locks, byWorkspace)
	result.Anomalies = append(result.Anomalies, h.checkLog()...)
	return result
}

// fresh reports whether the models apply to a call: a write, or a read of the present without a Warning.
func fresh(c Call) bool {
	return c.writes() || !c.Stale && c.Min == 0 && c.KnownAt == 0 && c.AsOf == ""
}

// names returns the rows that clients tried to add, by account.
func (h History) names() map[int64][]string {
	all, seen := map[int64][]string{}, map[string]bool{}
	for _, c := range h.Calls {
		if c.Op == Add && !seen[c.Row] {
			seen[c.Row] = true
			all[c.Account] = append(all[c.Account], c.Row)
		}
	}
	return all
}

// divided splits a read of several rows into a read of each.
func divided(c Call, names []string) (parts []Call) {
	by := map[string][]Row{}
	for _, r := range c.Rows {
		by[r.Name] = append(by[r.Name], r)
	}
	for _, name := range names {
		part := c
		part.Row, part.Rows = name, by[name]
		parts = append(parts, part)
	}
	return parts
}

// check checks all parts with a rule.
func check[S any](h History, result *Checked, folder string, r rule[S], parts map[string][]Call) {
	model := r.model()
	var failovers []Call
	for _, c := range h.Calls {
		if c.Op == Copy || c.Op == Promote {
			failovers = append(failovers, c)
		}
	}
	for of, calls := range parts {
		result.Parts++
		operations := make([]porcupine.Operation, 0, len(calls)+len(failovers))
		for _, c := range slices.Concat(failovers, calls) {
			end := int64(c.End)
			if !c.known() {
				end = math.MaxInt64
			}
			operations = append(operations, porcupine.Operation{ClientId: c.Client, Input: c, Call: int64(c.Start), Output: c, Return: end})
		}
		switch found := porcupine.CheckOperationsTimeout(model, operations, patience); found {
		case porcupine.Ok:
		case porcupine.Unknown:
			result.Undecided++
		default:
			a := anomaly{Rule: r.name, Of: of, What: "no order of the calls explains the responses"}
			name := strings.Map(func(r rune) rune {
				if r == '/' || r == ' ' {
					return '-'
				}
				return r
			}, fmt.Sprintf("%d-%s-%s.html", h.Settings.Seed, r.name, of))
			path := filepath.Join(folder, name)
			_, info := porcupine.CheckOperationsVerbose(model, operations, patience)
			if err := porcupine.VisualizePath(model, info, path); err == nil {
				a.Picture = path
			}
			result.Anomalies = append(result.Anomalies, a)
		}
	}
}
