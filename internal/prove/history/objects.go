package history

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A rule specifies the responses of one part of the system, whose state is S. Next returns the state after a call, and whether the call may
// have this response. A call of unknown outcome may have any.
type rule[S any] struct {
	name string
	next func(S, Call) (S, bool)
}

// failing is a state with the one to which a Promote returns.
type failing[S any] struct{ now, copied S }

// model returns the rule for porcupine. All parts of the system are copied and promoted together.
func (r rule[S]) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return failing[S]{} },
		Step: func(state, input, _ any) (bool, any) {
			s, c := state.(failing[S]), input.(Call)
			switch c.Op {
			case Copy:
				s.copied = s.now
				return true, s
			case Promote:
				s.now = s.copied
				return true, s
			}
			now, ok := r.next(s.now, c)
			s.now = now
			return ok, s
		},
		Equal: reflect.DeepEqual,
		Hash: func(state any) uint64 {
			h := fnv.New64a()
			_, _ = fmt.Fprintf(h, "%v", state) // never fails
			return h.Sum64()
		},
		DescribeOperation: func(input, _ any) string { return input.(Call).String() },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state.(failing[S]).now) },
	}
}

// row is the state of one row.
type row struct {
	Created, Deleted bool
	ID               int64 // 0: not known yet
	Amount, Revision int64
	Key              string // with which it was created
}

func (r row) there() bool { return r.Created && !r.Deleted }

// is reports whether a call with an id concerns the row. After a failover, a client may know the id of a lost row of the same name.
func (r row) is(id int64) bool { return id == 0 || r.ID == 0 || id == r.ID }

// rows is the rule of a row with its revision: each edit increases it by one, and If-Match refuses all but the newest.
var rows = rule[row]{"row", func(r row, c Call) (row, bool) {
	switch c.Op {
	case Add:
		return added(r, c)
	case readRow, List: // part of a divided list, which shows this row or does not
		if c.Status == 404 || c.Op == List && len(c.Rows) == 0 {
			return r, !r.there() || !r.is(c.ID)
		}
		is := c.Rows[0]
		return r, len(c.Rows) == 1 && r.there() && is.Amount == r.Amount && is.Revision == r.Revision && r.is(is.ID)
	}
	there := r.there() && r.is(c.ID)
	matches := there && (c.Match == nil || *c.Match == r.Revision)
	switch {
	case !c.known() && !matches, c.Locked:
		return r, true
	case c.Status == 404:
		return r, !there
	case c.Status == 412:
		return r, !matches
	case c.known() && !c.ok(): // refused for another reason, such as an API key lost in a failover
		return r, true
	case !matches:
		return r, false
	case c.Op == Delete:
		r.Deleted = true
		return r, true
	}
	if r.Amount != c.Amount { // a call without a change writes nothing
		r.Amount, r.Revision = c.Amount, r.Revision+1
	}
	return r, !c.known() || c.Revision != nil && *c.Revision == r.Revision
}}

func added(r row, c Call) (row, bool) {
	switch {
	case c.known() && !c.ok():
		return r, true
	case r.Created && c.Key != "" && c.Key == r.Key: // a repetition
		return r, !c.known() || r.is(c.ID)
	case r.Created:
		return r, !c.known()
	}
	return row{Created: true, ID: c.ID, Amount: c.Amount, Key: c.Key}, true
}

// item is a row of an account.
type item struct {
	Name, Date string
	Amount     int64
	Deleted    bool // so that a repeated key does not create it again
}

// accounts is the rule of an account: a read shows all rows of one moment, and the balance is their sum.
var accounts = rule[[]item]{"account", func(all []item, c Call) ([]item, bool) {
	at, there := slices.BinarySearchFunc(all, c.Row, func(i item, name string) int { return strings.Compare(i.Name, name) })
	refused := c.known() && !c.ok()
	switch c.Op {
	case Add:
		if refused || there {
			return all, true // the rule rows covers repetitions
		}
		return slices.Insert(slices.Clone(all), at, item{Name: c.Row, Date: c.Date, Amount: c.Amount}), true
	case Edit, Delete:
		if refused {
			return all, true
		}
		if !there || all[at].Deleted {
			return all, !c.known()
		}
		all = slices.Clone(all)
		if all[at].Deleted = c.Op == Delete; !all[at].Deleted {
			all[at].Amount = c.Amount
		}
		return all, true
	}
	var live []item
	var sum int64
	for _, i := range all {
		if !i.Deleted {
			live, sum = append(live, i), sum+i.Amount
		}
	}
	if c.Op == Balance {
		return all, sum == c.Sum
	}
	return all, sameRows(live, c.Rows)
}}

// sameRows reports whether a response has these rows, in the order of date and number, with running balances.
func sameRows(want []item, answer []Row) bool {
	if len(want) != len(answer) {
		return false
	}
	by := map[string]item{}
	for _, i := range want {
		by[i.Name] = i
	}
	var sum int64
	for n, a := range answer {
		sum += a.Amount
		i, there := by[a.Name]
		delete(by, a.Name)
		if !there || i.Amount != a.Amount || i.Date != a.Date || a.Balance != sum {
			return false
		}
		if n > 0 && cmp.Or(strings.Compare(answer[n-1].Date, a.Date), cmp.Compare(answer[n-1].ID, a.ID)) >= 0 {
			return false
		}
	}
	return true
}

// used is the effect of a request with an Idempotency-Key.
type used struct {
	Done bool
	Row  string
	ID   int64 // 0: not known yet
}

// keys is the rule of an Idempotency-Key: one request has an effect, its repetitions have the same response, other requests have none.
var keys = rule[used]{"key", func(u used, c Call) (used, bool) {
	first := used{Done: true, Row: c.Row, ID: c.ID}
	switch {
	case !c.known() && !u.Done:
		return first, true
	case !c.known():
		return u, true
	case c.Status == 422:
		return u, u.Done && u.Row != c.Row
	case c.Locked: // a refused request does not use the key up
		return u, !u.Done
	case !c.ok():
		return u, true
	case !c.Replayed:
		return first, !u.Done
	case u.Done && u.Row == c.Row && (u.ID == 0 || u.ID == c.ID):
		return first, true
	}
	return u, false
}}

// holder is the contact that has a phone.
type holder struct {
	Taken bool
	ID    int64 // 0: not known
}

// phones is the rule of a unique value: at most one contact has it until it is released.
var phones = rule[holder]{"unique", func(h holder, c Call) (holder, bool) {
	switch {
	case c.Op == Claim && c.Status == 409:
		return h, h.Taken
	case c.known() && !c.ok():
		return h, true
	case c.Op == Claim:
		if h.Taken {
			return h, !c.known()
		}
		return holder{Taken: true, ID: c.ID}, true
	case h.Taken && h.ID == c.ID:
		return holder{}, true
	}
	return h, true // the contact no longer had it
}}

// locks is the rule of the books lock: no row is written on a locked date, and none is refused on an open one.
var locks = rule[string]{"lock", func(through string, c Call) (string, bool) {
	switch {
	case c.Op == GetLock:
		return through, c.Date == through
	case c.Op == SetLock && (!c.known() || c.ok()):
		return c.Date, true
	case c.Locked:
		return through, c.Date <= through
	case c.known() && c.ok() && !c.Replayed:
		return through, c.Date > through
	}
	return through, true
}}

func (c Call) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s", c.Op, cmp.Or(c.Row, c.Phone, c.Date))
	if c.Amount != 0 {
		fmt.Fprintf(&s, " amount %d", c.Amount)
	}
	if c.Match != nil {
		fmt.Fprintf(&s, " if %d", *c.Match)
	}
	if c.Key != "" {
		fmt.Fprintf(&s, " key %s", c.Key)
	}
	if !c.known() {
		return s.String() + ": unknown"
	}
	fmt.Fprintf(&s, ": %d at %d", c.Status, c.Position)
	if c.ID != 0 {
		fmt.Fprintf(&s, " id %d", c.ID)
	}
	if c.Revision != nil {
		fmt.Fprintf(&s, " revision %d", *c.Revision)
	}
	if c.Replayed {
		s.WriteString(" replayed")
	}
	if c.Locked {
		s.WriteString(" locked")
	}
	for _, r := range c.Rows {
		fmt.Fprintf(&s, " %s=%d@%d", r.Name, r.Amount, r.Revision)
	}
	if c.Op == Balance {
		fmt.Fprintf(&s, " sum %d", c.Sum)
	}
	return s.String()
}
