package history_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/prove/history"
)

// record is a history that a test writes by hand: each call follows the previous one unless the test moves its times.
type record struct {
	history.History

	now time.Duration
}

func (r *record) call(c history.Call) *history.Call {
	r.now += 10
	c.Start, c.Workspace, c.Account = r.now, "w", 1
	if c.Status != 0 {
		r.now += 10
		c.End = r.now
	}
	r.Calls = append(r.Calls, c)
	return &r.Calls[len(r.Calls)-1]
}

func (r *record) event(stream, kind, data string, revision int64) {
	r.Log = append(r.Log, history.Event{
		Position: int64(len(r.Log)) + 1, Stream: stream, Type: kind, Data: json.RawMessage(data), Revision: revision,
	})
}

func of(n int64) *int64 { return new(n) }

const date = "2025-06-01"

func oneRow(amount, revision int64) []history.Row {
	return []history.Row{{Name: "a", ID: 12, Date: date, Amount: amount, Revision: revision, Balance: amount}}
}

// good is a history in which every response is right. Below, its calls are named by their numbers.
func good() *record {
	r := &record{}
	row := func(c history.Call) history.Call { c.Row, c.ID, c.Date = "a", 12, date; return c }
	r.call(row(history.Call{Op: history.Add, Amount: 5, Key: "k", Status: 201, Position: 2, Revision: of(0)}))
	r.call(history.Call{Op: history.List, Status: 200, Position: 2, Rows: oneRow(5, 0)})
	r.call(row(history.Call{Op: history.Add, Amount: 5, Key: "k", Status: 201, Position: 2, Revision: of(0), Replayed: true}))
	r.call(history.Call{Op: history.Add, Row: "b", Date: date, Amount: 1, Key: "k", Status: 422})
	r.call(row(history.Call{Op: history.Edit, Amount: 7, Match: of(0), Status: 200, Position: 3, Revision: of(1)}))
	r.call(row(history.Call{Op: history.Edit, Amount: 8, Match: of(0), Status: 412}))
	r.call(history.Call{Op: history.List, Status: 200, Position: 3, Rows: oneRow(7, 1)})
	r.call(history.Call{Op: history.Balance, Status: 200, Position: 3, Sum: 7})
	r.call(history.Call{Op: history.List, Status: 200, Position: 3, KnownAt: 2, Rows: oneRow(5, 0)})
	r.call(history.Call{Op: history.List, Status: 200, Position: 3, AsOf: "2025-05-31"})
	r.call(history.Call{Op: history.List, Status: 200, Position: 3, Min: 3, Rows: oneRow(7, 1)})
	r.call(history.Call{Op: history.SetLock, Date: "2025-06-30", Status: 200, Position: 4})
	r.call(history.Call{Op: history.Add, Row: "c", Date: date, Amount: 1, Status: 409, Locked: true})
	r.call(history.Call{Op: history.GetLock, Date: "2025-06-30", Status: 200, Position: 4})
	r.call(history.Call{Op: history.Claim, Phone: "1", ID: 1, Status: 201, Position: 5})
	r.call(history.Call{Op: history.Claim, Phone: "1", Status: 409})
	r.call(history.Call{Op: history.Release, Phone: "1", ID: 1, Status: 200, Position: 6})
	r.call(history.Call{Op: history.Claim, Phone: "1", ID: 2, Status: 201, Position: 7})
	r.event("bankrow-12", "BankRowAdded", `{"account":1,"date":"`+date+`","in_entries":[{"description":"a","amount":5}]}`, 0)
	r.event("request-1", "RequestAccepted", `{}`, 0)
	r.event("bankrow-12", "BankRowEdited", `{"in_entries":[{"description":"a","amount":7}]}`, 1)
	for n := range 4 {
		r.event(fmt.Sprint("other-", n), "Other", `{}`, 0)
	}
	return r
}

const (
	addA = iota
	listA
	replayA
	otherB
	editA
	refusedEdit
	listEdited
	balance
	knownAt
	asOf
	minPosition
	lock
	lockedC
	getLock
	claim
	claimTaken
	release
)

func TestRightHistoriesAreAccepted(t *testing.T) {
	t.Parallel()
	require.Empty(t, good().Check(t.TempDir()).Anomalies)

	lost := good() // the edit's response is lost, whether it had an effect or not
	lost.Calls[editA].End, lost.Calls[editA].Status = 0, 0
	require.Empty(t, lost.Check(t.TempDir()).Anomalies)

	concurrent := good() // a read during the edit may show the row before it
	concurrent.Calls[listEdited].Start, concurrent.Calls[listEdited].Rows = concurrent.Calls[editA].Start, oneRow(5, 0)
	concurrent.Calls[listEdited].Position = 2
	require.Empty(t, concurrent.Check(t.TempDir()).Anomalies)

	stale := good() // a read with a Warning may always show an earlier state
	stale.Calls[listEdited].Stale, stale.Calls[listEdited].Position, stale.Calls[listEdited].Rows = true, 2, oneRow(5, 0)
	require.Empty(t, stale.Check(t.TempDir()).Anomalies)
}

// Each doctored history has one fault, which the named rule finds.
func TestDoctoredHistoriesAreRefused(t *testing.T) {
	t.Parallel()
	for name, doctored := range map[string]struct {
		rule string
		do   func(*record)
	}{
		"a lost write":                     {"row", func(r *record) { r.Calls[listA].Rows = nil }},
		"a lost write in the sum":          {"account", func(r *record) { r.Calls[balance].Sum = 5 }},
		"a stale read":                     {"row", func(r *record) { r.Calls[listEdited].Rows = oneRow(5, 0) }},
		"a row twice":                      {"row", func(r *record) { r.Calls[listA].Rows = append(oneRow(5, 0), oneRow(5, 0)...) }},
		"a running balance that is wrong":  {"account", func(r *record) { r.Calls[listA].Rows[0].Balance = 4 }},
		"an edit that overwrites another":  {"row", func(r *record) { r.Calls[refusedEdit].Status, r.Calls[refusedEdit].Revision = 200, of(2) }},
		"a revision twice":                 {"row", func(r *record) { r.Calls[editA].Revision = of(0) }},
		"a 412 of the right revision":      {"row", func(r *record) { r.Calls[editA].Status = 412 }},
		"a 404 of a row that exists":       {"row", func(r *record) { r.Calls[editA].Status = 404 }},
		"a doubled key":                    {"key", func(r *record) { r.Calls[replayA].Replayed, r.Calls[replayA].ID = false, 13 }},
		"another response to a repetition": {"key", func(r *record) { r.Calls[replayA].ID = 13 }},
		"a key that serves two requests":   {"key", func(r *record) { r.Calls[otherB].Status = 201 }},
		"a key that a refusal used up":     {"key", func(r *record) { r.Calls[addA].Status, r.Calls[addA].Locked = 409, true }},
		"a unique value twice":             {"unique", func(r *record) { r.Calls[claimTaken].Status, r.Calls[claimTaken].ID = 201, 3 }},
		"a value that stays taken": {"unique",
			func(r *record) { r.Calls[claimTaken].Start, r.Calls[claimTaken].End = r.now-15, r.now-11 }},
		"a row on a locked date":     {"lock", func(r *record) { r.Calls[lockedC].Status, r.Calls[lockedC].Locked = 201, false }},
		"a refusal on an open date":  {"lock", func(r *record) { r.Calls[lockedC].Date = "2025-07-01" }},
		"an old lock":                {"lock", func(r *record) { r.Calls[getLock].Date = "" }},
		"a missing position":         {"log", func(r *record) { r.Log[1].Position = 3 }},
		"a write that the log lacks": {"log", func(r *record) { r.Log[2].Stream = "other-9" }},
		"a write beyond the log":     {"log", func(r *record) { r.Calls[claim].Position = 8 }},
		"one request twice in the log": {"log",
			func(r *record) { r.Log[6] = r.Log[0]; r.Log[6].Position, r.Log[6].Stream = 7, "bankrow-13" }},
		"a read of another position": {"log", func(r *record) { r.Calls[listEdited].Position = 2 }},
		"a read older than requested": {"log",
			func(r *record) { r.Calls[minPosition].Position, r.Calls[minPosition].Rows = 2, oneRow(5, 0) }},
		"a known_at of another position":   {"log", func(r *record) { r.Calls[knownAt].Rows = oneRow(7, 1) }},
		"an as_of with a later row":        {"log", func(r *record) { r.Calls[asOf].Rows = oneRow(7, 1) }},
		"a release that has no effect":     {"unique", func(r *record) { r.Calls[release].ID = 9 }},
		"a failover that loses a response": {"row", func(r *record) { r.failover(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			doctored.do(r)
			found := false
			for _, a := range r.Check(t.TempDir()).Anomalies {
				if found = found || a.Rule == doctored.rule; found && a.Picture != "" {
					require.FileExists(t, a.Picture)
				}
			}
			require.True(t, found, "%s finds nothing", doctored.rule)
		})
	}
}

// failover loses the edit, and reads the state of the copy or, if wrong is set, another one.
func (r *record) failover(right bool) {
	r.call(history.Call{Op: history.Promote, Status: 200})
	copied := history.Call{Op: history.Copy, Start: r.Calls[editA].Start - 5, End: r.Calls[editA].Start - 3, Status: 200}
	r.Calls = append(r.Calls, copied)
	r.Log, r.Lost = r.Log[:2], 2
	rows := oneRow(7, 1)
	if right {
		rows = oneRow(5, 0)
	}
	r.call(history.Call{Op: history.List, Status: 200, Position: 2, Rows: rows})
}

func TestAFailoverReturnsToItsCopy(t *testing.T) {
	t.Parallel()
	r := good()
	r.failover(true)
	r.call(history.Call{Op: history.Edit, Row: "a", ID: 13, Amount: 9, Status: 404}) // the id of a lost row of the same name
	require.Empty(t, r.Check(t.TempDir()).Anomalies)
}
