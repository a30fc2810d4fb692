package ledgerhttp_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/http/ledgerhttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// effect is what entries count.
type effect struct{ cash, fine decimal.Decimal }

func (e effect) plus(o effect) effect  { return effect{e.cash.Add(o.cash), e.fine.Add(o.fine)} }
func (e effect) minus(o effect) effect { return effect{e.cash.Sub(o.cash), e.fine.Sub(o.fine)} }

func effectOf(all []sample) (sum effect) {
	for _, s := range all {
		cash, fine := counts([]sample{s}, nil)
		sum = sum.plus(effect{decimal.RequireFromString(cash), decimal.RequireFromString(fine)})
	}
	return sum
}

// cut is sold to a dealer: the service writes the money against it on the other side.
var cut = sample{entry: `{"kind":"rate_cut","fine_weight":10,"rate":7000}`, fine: "10"}

// entered is a row of the model.
type entered struct {
	account int64
	date    string
	in, out []sample
	void    bool
}

// sides returns what the row counts on each side.
func (e entered) sides() (in, out effect) {
	if e.void {
		return in, out
	}
	in, out = effectOf(e.in), effectOf(e.out)
	if slices.ContainsFunc(e.out, func(s sample) bool { return s.entry == cut.entry }) {
		in.cash = in.cash.Add(decimal.NewFromInt(70_000))
	}
	return in, out
}

// model is what the books of a workspace must say.
type model struct {
	accounts map[int64]*book.Ledger
	rows     map[int64]entered
}

func (m model) clone() model { return model{maps.Clone(m.accounts), maps.Clone(m.rows)} }

// inOrder returns the ids of the rows up to a day, by date and id.
func (m model) inOrder(upTo string) (ids []int64) {
	for id, row := range m.rows {
		if m.accounts[row.account] != nil && (upTo == "" || row.date <= upTo) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int {
		if c := strings.Compare(m.rows[a].date, m.rows[b].date); c != 0 {
			return c
		}
		return int(a - b)
	})
	return ids
}

func (m model) balances(upTo string) map[int64]effect {
	all := map[int64]effect{}
	for _, id := range m.inOrder(upTo) {
		in, out := m.rows[id].sides()
		all[m.rows[id].account] = all[m.rows[id].account].plus(in).minus(out)
	}
	return all
}

// workshop changes the books of all kinds at random, and looks back at them.
type workshop struct {
	t *rapid.T
	*apitest.Client

	model
	past []remembered
}

// remembered is what the books said at a position.
type remembered struct {
	position string
	model
}

func (w *workshop) date() string {
	return fmt.Sprintf("2025-0%d-10", rapid.IntRange(1, 4).Draw(w.t, "month"))
}

func (w *workshop) some(from []sample) []sample {
	return rapid.SliceOfN(rapid.SampledFrom(from), 1, 2).Draw(w.t, "entries")
}

// sides draws entries for both sides; at most one of them is a cut.
func (w *workshop) sides(l *book.Ledger) (in, out []sample) {
	in, out = w.some(ledgerSamples[l.Name].in), w.some(ledgerSamples[l.Name].out)
	if l.Name == "bullion" && rapid.Bool().Draw(w.t, "cut") {
		out = append(out, cut)
	}
	return in, out
}

func (w *workshop) account() (int64, *book.Ledger) {
	if len(w.accounts) == 0 {
		w.open(rapid.SampledFrom(ledger.All).Draw(w.t, "ledger"))
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(w.accounts))).Draw(w.t, "account")
	return id, w.accounts[id]
}

func (w *workshop) open(l *book.Ledger) {
	var a shown
	body := map[string]any{"name": "Imran"}
	if l.Types > 0 {
		body["type"] = rapid.IntRange(0, l.Types-1).Draw(w.t, "type")
	}
	w.POST(ledgerhttp.Served()[l.Name].Open, body).Status(201).JSON(&a)
	w.accounts[a.ID] = l
}

// ofARow returns the action that changes a row, or adds one if there is none.
func (w *workshop) ofARow(change func()) func(*rapid.T) {
	return func(*rapid.T) {
		if len(w.inOrder("")) == 0 {
			w.add()
		} else {
			change()
		}
	}
}

// row draws a row that exists.
func (w *workshop) row() (id int64, row entered, l *book.Ledger) {
	id = rapid.SampledFrom(w.inOrder("")).Draw(w.t, "row")
	return id, w.rows[id], w.accounts[w.rows[id].account]
}

func at(path string, id int64) string { return variable.ReplaceAllLiteralString(path, fmt.Sprint(id)) }

func (w *workshop) ledger(account int64) string {
	return at(ledgerhttp.Served()[w.accounts[account].Name].Ledger, account)
}

// done reports whether a change was made. What is refused changes nothing.
func (w *workshop) done(a *apitest.Answer) bool {
	require.Contains(w.t, []int{200, 201, 204, 404, 409}, a.Response.StatusCode, a.Text)
	return a.Response.StatusCode < 300
}

func (w *workshop) add() {
	account, l := w.account()
	in, out := w.sides(l)
	row := entered{account: account, date: w.date(), in: in, out: out}
	var added shown
	if a := w.POST(w.ledger(account), body(row.date, in, out)); w.done(a) {
		a.JSON(&added)
		w.rows[added.ID] = row
	}
}

func (w *workshop) edit() {
	id, row, l := w.row()
	in, out := w.sides(l)
	change := fmt.Sprintf(`{"id":%d,"in_entries":%s}`, id, entries(in))
	if rapid.Bool().Draw(w.t, "OUT") {
		change, row.out = fmt.Sprintf(`{"id":%d,"out_entries":%s}`, id, entries(out)), out
	} else {
		row.in = in
	}
	if w.done(w.PUT(w.ledger(row.account), change)) {
		w.rows[id] = row
	}
}

func (w *workshop) move() {
	id, row, _ := w.row()
	row.date = w.date()
	if w.done(w.PUT(w.ledger(row.account), fmt.Sprintf(`{"id":%d,"date":%q}`, id, row.date))) {
		w.rows[id] = row
	}
}

func (w *workshop) remove() {
	id, row, l := w.row()
	loose := ledgerhttp.Served()[l.Name].LooseRow
	switch side := rapid.IntRange(0, 2).Draw(w.t, "side"); {
	case loose == "" || side == 0:
		if w.done(w.DELETE(fmt.Sprint(w.ledger(row.account), "/row/", id))) {
			delete(w.rows, id)
		}
	case w.done(w.DELETE(at(loose, id) + []string{"", "/in", "/out"}[side])):
		if side == 1 {
			row.in = nil
		} else {
			row.out = nil
		}
		if w.rows[id] = row; len(row.in)+len(row.out) == 0 {
			delete(w.rows, id)
		}
	}
}

func (w *workshop) void() {
	id, row, _ := w.row()
	if w.done(w.POST(fmt.Sprint(w.ledger(row.account), "/row/", id, "/void"), `{"reason":"x"}`)) {
		row.void = true
		w.rows[id] = row
	}
}

func (w *workshop) reverse() {
	id, row, _ := w.row()
	var back shown
	if a := w.POST(fmt.Sprint(w.ledger(row.account), "/row/", id, "/reverse"), `{"reason":"x","date":"2025-04-11"}`); w.done(a) {
		a.JSON(&back)
		in, out := row.sides()
		counting := func(e effect) []sample { return []sample{{cash: e.cash.String(), fine: e.fine.String()}} }
		w.rows[back.ID] = entered{account: row.account, date: "2025-04-11", in: counting(out), out: counting(in)}
	}
}

// look reads all books as they were at a position and up to a day, and holds them against the model.
func (w *workshop) look() {
	then := rapid.SampledFrom(w.past).Draw(w.t, "position")
	query, upTo := url.Values{"known_at": {then.position}}, ""
	if rapid.Bool().Draw(w.t, "as of") {
		upTo = w.date()
		query.Set("as_of", upTo)
	}
	all := then.balances(upTo)
	var summary summed
	w.GET("/books/summary?" + query.Encode()).Status(200).JSON(&summary)
	require.Equal(w.t, then.position, fmt.Sprint(summary.Position))
	for n, l := range ledger.All {
		var listed []shown
		var want owing
		w.GET(ledgerhttp.Served()[l.Name].List + "?" + query.Encode()).Status(200).JSON(&listed)
		got := map[int64]effect{}
		for _, a := range listed {
			require.Same(w.t, l, then.accounts[a.ID])
			got[a.ID] = held(l, a)
		}
		for id, of := range then.accounts {
			if of == l {
				want.add(all[id])
				same(w.t, all[id], got[id], "%s %d, %s", l.Name, id, query)
				delete(got, id)
			}
		}
		require.Empty(w.t, got)
		summary.Kinds[n].holds(w.t, l, want)
	}
	w.lookAtRows(then, query, upTo)
}

// lookAtRows reads one account's rows.
func (w *workshop) lookAtRows(then remembered, query url.Values, upTo string) {
	if len(then.accounts) == 0 {
		return
	}
	account := rapid.SampledFrom(slices.Sorted(maps.Keys(then.accounts))).Draw(w.t, "account of rows")
	l, running := then.accounts[account], effect{}
	ids := slices.DeleteFunc(then.inOrder(upTo), func(id int64) bool { return then.rows[id].account != account })
	var rows []shown
	w.GET(at(ledgerhttp.Served()[l.Name].Ledger, account) + "?" + query.Encode()).Status(200).JSON(&rows)
	require.Len(w.t, rows, len(ids))
	for i, r := range rows {
		require.Equal(w.t, ids[i], r.ID)
		require.Equal(w.t, then.rows[r.ID].void, r.Void)
		in, out := then.rows[r.ID].sides()
		running = running.plus(in).minus(out)
		same(w.t, running, held(l, r), "row %d", r.ID)
	}
}

// lookAtDays reads the daybook.
func (w *workshop) lookAtDays() {
	from, to := w.date(), w.date()
	if from > to {
		from, to = to, from
	}
	var book daybook
	w.GET("/books/daybook?from=" + from + "&to=" + to).Status(200).JSON(&book)
	ids := slices.DeleteFunc(w.inOrder(to), func(id int64) bool { return w.rows[id].date < from })
	cash := decimal.Zero
	for id, b := range w.balances(to) {
		if w.accounts[id].Name == "bank" {
			cash = cash.Add(b.cash)
		}
	}
	require.Equal(w.t, cash.String(), book.Closing.String())
	var got []int64
	before := book.Opening
	for _, day := range book.Days {
		require.Equal(w.t, before.String(), day.Opening.String())
		before = day.Closing
		for _, r := range day.Rows {
			require.Equal(w.t, w.accounts[r.ID].Name, r.Kind)
			got = append(got, r.Row.ID)
		}
	}
	require.Equal(w.t, book.Closing.String(), before.String())
	require.Equal(w.t, append([]int64{}, ids...), append([]int64{}, got...))
}

// held is the balances of an answer.
func held(l *book.Ledger, a shown) effect {
	if l.Metal {
		return effect{*a.Cash, *a.Fine}
	}
	return effect{cash: *a.Balance}
}

func same(t *rapid.T, want, got effect, why string, args ...any) {
	require.Equalf(t, []string{want.cash.String(), want.fine.String()}, []string{got.cash.String(), got.fine.String()}, why, args...)
}

// owing is what a summary adds up.
type owing struct {
	accounts int
	we, they effect
}

func (o *owing) add(balance effect) {
	o.accounts++
	up := func(d decimal.Decimal) decimal.Decimal { return decimal.Max(d, decimal.Zero) }
	o.we = o.we.plus(effect{up(balance.cash), up(balance.fine)})
	o.they = o.they.plus(effect{up(balance.cash.Neg()), up(balance.fine.Neg())})
}

// summed is a summary as it is answered.
type summed struct {
	AsOf     any `json:"as_of"`
	Position uint64
	Kinds    []kindSummed
	Day      any
}

type kindSummed struct {
	Kind          string
	Accounts      int
	Cash, Crystal struct {
		WeOwe   decimal.Decimal `json:"we_owe"`
		TheyOwe decimal.Decimal `json:"they_owe"`
		Net     decimal.Decimal
	}
}

func (k kindSummed) holds(t *rapid.T, l *book.Ledger, want owing) {
	require.Equal(t, []any{l.Name, want.accounts}, []any{k.Kind, k.Accounts})
	same(t, want.we.minus(want.they), effect{k.Cash.Net, k.Crystal.Net}, "net of %s", l.Name)
	if l.Metal {
		same(t, want.we, effect{k.Cash.WeOwe, k.Crystal.WeOwe}, "what we owe to %ss", l.Name)
		same(t, want.they, effect{k.Cash.TheyOwe, k.Crystal.TheyOwe}, "what %ss owe", l.Name)
	}
}

// Rows of every kind, however they are changed, amount to what a model says, at each position and day that is remembered.
func TestEveryLedgerAmountsToWhatAModelSays(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := &workshop{t: rt, Client: o.Clerk(uuid.NewString()), model: model{map[int64]*book.Ledger{}, map[int64]entered{}}}
		for _, l := range ledger.All {
			w.open(l)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				w.past = append(w.past, remembered{fmt.Sprint(o.Head()), w.clone()})
			},
			"add": func(*rapid.T) { w.add() }, "add another": func(*rapid.T) { w.add() }, "edit": w.ofARow(w.edit), "move": w.ofARow(w.move),
			"remove": w.ofARow(w.remove), "void": w.ofARow(w.void), "reverse": w.ofARow(w.reverse),
			"look": func(*rapid.T) { w.look() }, "look at days": func(*rapid.T) { w.lookAtDays() },
			"lock": func(*rapid.T) {
				through := rapid.SampledFrom([]string{`null`, `"2025-01-31"`}).Draw(rt, "through")
				w.done(w.With("Bahi-Reason", "x").PUT("/books/lock", `{"locked_through":`+through+`}`))
			},
			"delete account": func(*rapid.T) {
				if account, l := w.account(); rapid.IntRange(0, 3).Draw(rt, "really") == 0 &&
					w.done(w.DELETE(at(ledgerhttp.Served()[l.Name].Delete, account))) {
					delete(w.accounts, account)
				}
			},
		})
		w.look()
		w.lookAtDays()
	})
}
