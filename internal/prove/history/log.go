package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// version is a row after an event.
type version struct {
	position, revision int64
	name, date         string
	amount             int64
	deleted            bool
}

// ledger is the state in the log: the versions of each row, by its id, and the rows of each account.
type ledger struct {
	versions map[int64][]version
	accounts map[int64][]int64
}

// side is the entries of a side in an event. The clients write one.
type side []struct {
	Description string `json:"description"`
	Amount      int64  `json:"amount"`
}

// fold folds the log's rows.
func fold(log []Event) (ledger, error) {
	l := ledger{versions: map[int64][]version{}, accounts: map[int64][]int64{}}
	for _, e := range log {
		number, ours := strings.CutPrefix(e.Stream, "bankrow-")
		if !ours {
			continue
		}
		id, err := strconv.ParseInt(number, 10, 64)
		var data struct {
			Account int64  `json:"account"`
			Date    string `json:"date"`
			In      side   `json:"in_entries"`
		}
		if err == nil {
			err = json.Unmarshal(e.Data, &data)
		}
		if err != nil {
			return l, fmt.Errorf("position %d: %w", e.Position, err)
		}
		v := version{date: data.Date}
		if known := l.versions[id]; len(known) > 0 {
			v = known[len(known)-1]
		} else {
			l.accounts[data.Account] = append(l.accounts[data.Account], id)
		}
		v.position, v.revision, v.deleted = e.Position, e.Revision, e.Type == "BankRowDeleted"
		if len(data.In) > 0 {
			v.name, v.amount = data.In[0].Description, data.In[0].Amount
		}
		l.versions[id] = append(l.versions[id], v)
	}
	return l, nil
}

// at returns the rows of an account at a position.
func (l ledger) at(account, position int64, asOf string) (live []item) {
	for _, id := range l.accounts[account] {
		if v, there := l.rowAt(id, position); there && (asOf == "" || v.date <= asOf) {
			live = append(live, item{Name: v.name, Date: v.date, Amount: v.amount})
		}
	}
	return live
}

// rowAt returns a row at a position.
func (l ledger) rowAt(id, position int64) (v version, there bool) {
	for _, next := range l.versions[id] {
		if next.position <= position {
			v, there = next, !next.deleted
		}
	}
	return v, there
}

// checkLog checks that the positions are dense, that each acknowledged write is in the log once, and that each read shows the log at its
// position.
func (h History) checkLog() (all []anomaly) {
	wrong := func(of any, format string, values ...any) {
		all = append(all, anomaly{Rule: "log", Of: fmt.Sprint(of), What: fmt.Sprintf(format, values...)})
	}
	for n, e := range h.Log {
		if e.Position != int64(n)+1 {
			wrong(e.Position, "positions are not dense: %d events are before it", n)
			break
		}
	}
	l, err := fold(h.Log)
	if err != nil {
		wrong("", "%v", err)
		return all
	}
	ids := map[string]int64{}
	for id, versions := range l.versions {
		if other, twice := ids[versions[0].name]; twice {
			wrong(versions[0].name, "the rows %d and %d come from one request", other, id)
		}
		ids[versions[0].name] = id
		for n, v := range versions {
			if v.revision != int64(n) {
				wrong(id, "revision %d is number %d of its stream", v.revision, n)
			}
		}
	}
	promoted := h.promoted()
	for _, c := range h.Calls {
		if c.Start <= promoted && c.Position > h.Lost && promoted != 0 || !c.known() || !c.ok() {
			continue // its events may be lost, and others may have their positions
		}
		what := ""
		switch {
		case c.writes():
			what = h.checkWrite(l, c)
		case c.Op == List, c.Op == Balance, c.Op == readRow:
			what = checkRead(l, c)
		}
		if what != "" {
			wrong(c.Position, "%s; %s of client %d", what, c, c.Client)
		}
	}
	return all
}

// promoted returns the end of the last Promote; 0: there is none.
func (h History) promoted() (end time.Duration) {
	for _, c := range h.Calls {
		if c.Op == Promote {
			end = max(end, c.End)
		}
	}
	return end
}

// checkWrite returns the fault of an acknowledged write, or "".
func (h History) checkWrite(l ledger, c Call) string {
	if c.Position < 1 || c.Position > int64(len(h.Log)) {
		return fmt.Sprintf("the log has %d events", len(h.Log))
	}
	if c.Op != Add && c.Op != Edit && c.Op != Delete {
		return ""
	}
	if c.Replayed && len(l.versions[c.ID]) > 0 {
		return ""
	}
	if !slices.ContainsFunc(l.versions[c.ID], func(v version) bool {
		return v.position <= c.Position && (v.name == c.Row || v.deleted) && v.deleted == (c.Op == Delete) &&
			(c.Op == Delete || v.amount == c.Amount) && (c.Revision == nil || v.revision == *c.Revision)
	}) {
		return "the log lacks the write"
	}
	return ""
}

// checkRead returns the fault of a read, or "". It must show the log at its position, which must be at least the requested one.
func checkRead(l ledger, c Call) string {
	if c.Position < c.Min {
		return fmt.Sprintf("the response is older than %d", c.Min)
	}
	at := c.Position
	if c.KnownAt != 0 {
		at = c.KnownAt
	}
	if c.Op == readRow {
		v, there := l.rowAt(c.ID, at)
		if is := c.Rows[0]; !there || v.amount != is.Amount || v.revision != is.Revision {
			return fmt.Sprintf("the log has %+v", v)
		}
		return ""
	}
	want := l.at(c.Account, at, c.AsOf)
	if c.Op == List {
		if !sameRows(want, c.Rows) {
			return fmt.Sprintf("the log has %v", want)
		}
		return ""
	}
	var sum int64
	for _, i := range want {
		sum += i.Amount
	}
	if sum != c.Sum {
		return fmt.Sprintf("the log's sum is %d", sum)
	}
	return ""
}
