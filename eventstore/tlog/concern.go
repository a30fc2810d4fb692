package tlog

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bahi/domain/event"
)

// The categories of streams whose events are in the map. These names are permanent, as the log has them; docs/audit-format.md lists them.
var (
	ledgers = map[string]string{ // by the category of accounts: the type of the event that begins a row
		"bank": "BankRowAdded", "bullion": "BullionRowAdded", "client": "ClientRowAdded", "karigar": "KarigarRowAdded",
		"polisher": "PolisherRowAdded",
	}
	ofWorkspaces = map[string]bool{"bookslock": true, "period": true}
)

// AccountEntry returns the name of the entry with an account's events.
func AccountEntry(account int64) string { return "account " + strconv.FormatInt(account, 10) }

// CommonEntry returns the name of the entry with a workspace's common events: those of its lock and its closed periods.
func CommonEntry(workspace string) string { return "common " + workspace }

// Concern is the entry of the map to which an event belongs.
type Concern struct {
	Entry string // "": that of the row's first event, or none without a row
	Row   string // stream of a row; "": it is no row's event
}

// ConcernOf returns the entry of an event; the zero Concern for most events.
func ConcernOf(e *event.Stored) (c Concern) {
	category, id := event.SplitStream(e.Stream)
	ofRow, isRow := strings.CutSuffix(category, "row")
	switch begins := ledgers[ofRow]; {
	case !isRow && begins != "" && isNumber(id):
		c.Entry = "account " + id
	case ofWorkspaces[category]:
		c.Entry = CommonEntry(id)
	case isRow && begins != "":
		c.Row = e.Stream
		if e.Type != begins {
			break
		}
		if account := accountOf(e.Data); isNumber(account) {
			c.Entry = "account " + account
		}
	}
	return c
}

// accountOf returns the JSON text of an object's member "account". If there are several, it returns the last one; if there is none or the
// JSON is invalid, "". Names match exactly.
func accountOf(object []byte) string {
	var has struct {
		Account jsontext.Value `json:"account"`
	}
	if json.Unmarshal(object, &has, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return ""
	}
	return string(has.Account)
}

// RowBegins returns the types of the events that begin rows.
func RowBegins() []string { return slices.Collect(maps.Values(ledgers)) }

// isNumber reports whether a text is a number from 1 as ids are written.
func isNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// Accounts folds the events of a log, in their order, into its map.
type Accounts struct {
	rows    map[string]int32 // index in entries by stream
	index   map[string]int32
	entries []Compact
	keys    []Hash
	dirty   map[int32]bool
	tree    Map
}

// Add adds an event by its leaf.
func (a *Accounts) Add(c Concern, leaf Hash) {
	if c == (Concern{}) {
		return
	}
	if a.rows == nil {
		a.rows, a.index, a.dirty = map[string]int32{}, map[string]int32{}, map[int32]bool{}
	}
	nth, known := a.rows[c.Row]
	if !known {
		if c.Entry == "" {
			return
		}
		if nth, known = a.index[c.Entry]; !known {
			nth = int32(len(a.entries))
			a.index[strings.Clone(c.Entry)] = nth
			a.entries, a.keys = append(a.entries, Compact{}), append(a.keys, MapKey(c.Entry))
		}
		if c.Row != "" {
			a.rows[strings.Clone(c.Row)] = nth
		}
	}
	a.entries[nth].Append(leaf)
	a.dirty[nth] = true
}

// Root returns the map's root.
func (a *Accounts) Root() Hash {
	for nth := range a.dirty {
		a.tree.Set(a.keys[nth], a.entries[nth].Value())
	}
	clear(a.dirty)
	a.tree.Settle()
	return a.tree.Root()
}
