package history

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Anomaly is a part of a history that no order of the calls explains.
type Anomaly struct {
	Rule, Of string // the rule, and the row, account, key, value or position
	What     string
	Picture  string // path of porcupine's picture, if there is one
}

func (a Anomaly) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", a.Rule, a.Of, a.What, a.Picture))
}

// Checked is the result of a check.
type Checked struct {
	Parts     int // number of rows, accounts, keys … that were checked separately
	Calls     int
	Unknown   int // calls of unknown outcome
	Undecided int // number of parts for which porcupine ran out of time
	Anomalies []Anomaly
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
		result.Anomalies = append(result.Anomalies, Anomaly{Rule: "run", What: f})
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
		case ReadRow:
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
			a := Anomaly{Rule: r.name, Of: of, What: "no order of the calls explains the responses"}
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
