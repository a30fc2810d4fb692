package ledgerview_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/metal"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

var trialBooks = flag.Int("trial.books", 300, "how many random books a trial balance is drawn from")

// trialAccount is an account of random books.
type trialAccount struct {
	ledger *book.Ledger
	metal  string
	open   bool
}

// trialState is random books at a position.
type trialState struct {
	position event.Position
	metal    string
	accounts map[int64]trialAccount
	rows     map[int64]book.Row
}

// randomBooks creates random events of a workspace.
type randomBooks struct {
	*rand.Rand
	trialState

	workspace uuid.UUID
	first     int64 // of its ids
	revisions map[string]int64
	pending   []pending
	states    []trialState
}

// pending is an event of the next transaction.
type pending struct {
	stream string
	encode func(event.Meta) (event.Proposed, error)
}

func put[S any](b *randomBooks, kind *event.Kind[S], id string, e event.Event[S]) {
	b.pending = append(b.pending, pending{kind.Stream(id), func(m event.Meta) (event.Proposed, error) {
		return kind.Encode(uuid.Must(uuid.NewV7()), e, m)
	}})
}

func (b *randomBooks) row(id int64, e event.Event[book.Row]) {
	r := e.Evolve(b.rows[id])
	put(b, b.accounts[r.Account].ledger.Rows, strconv.FormatInt(id, 10), e)
	b.rows[id] = r
}

func (b *randomBooks) account(id int64, e event.Event[book.Account], a trialAccount) {
	put(b, a.ledger.Accounts, strconv.FormatInt(id, 10), e)
	b.accounts[id] = a
}

// transaction returns the pending events, by stream.
func (b *randomBooks) transaction(t *testing.T) (tx eventstore.Transaction) {
	t.Helper()
	var order []string
	of := map[string][]pending{}
	for _, p := range b.pending {
		if of[p.stream] == nil {
			order = append(order, p.stream)
		}
		of[p.stream] = append(of[p.stream], p)
	}
	more := len(b.pending)
	for _, stream := range order {
		last, known := b.revisions[stream]
		if !known {
			last = -1
		}
		w := eventstore.Write{Stream: stream, Expected: eventstore.Expected(last)}
		for _, p := range of[stream] {
			more--
			e, err := p.encode(event.Meta{Workspace: b.workspace, Actor: "system:test", OccurredAt: time.Unix(0, 0), More: more})
			require.NoError(t, err)
			w.Events = append(w.Events, e)
		}
		b.revisions[stream] = last + int64(len(w.Events))
		tx.Writes = append(tx.Writes, w)
	}
	b.pending = nil
	return tx
}

// pick returns a random id that fits, 0 if none does.
func pick[V any](b *randomBooks, of map[int64]V, fits func(int64, V) bool) int64 {
	var found []int64
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if fits(id, of[id]) {
			found = append(found, id)
		}
	}
	if len(found) == 0 {
		return 0
	}
	return found[b.IntN(len(found))]
}

func isOpen(_ int64, a trialAccount) bool { return a.open }

var trialMetals = []book.Metal{"", "", "gold", "silver", "platinum"}

func (b *randomBooks) movement(metal bool) (v book.Movement) {
	if metal && b.IntN(2) == 0 {
		v.FineWeight, v.Metal = new(unit.Grams(1+b.IntN(99_999))), trialMetals[b.IntN(len(trialMetals))]
		return v
	}
	v.Amount = new(unit.Money(1 + b.IntN(99_999)))
	return v
}

// trialDays are the days of the rows of random books, in four periods of totals.
var trialDays = []unit.Date{today - 160, today - 120, today - 80, today - 1, today}

func (b *randomBooks) day() unit.Date { return trialDays[b.IntN(len(trialDays))] }

// post posts a row, and returns its id.
func (b *randomBooks) post(t *testing.T, account int64, in book.RowInput) int64 {
	t.Helper()
	e, err := book.AddRow{Ledger: b.accounts[account].ledger, Account: account, Today: today, RowInput: in}.Row()
	require.NoError(t, err)
	id := b.first + 100 + int64(len(b.rows))
	b.row(id, e)
	return id
}

// both returns a row, and the row paired with it if that row's account is open.
func (b *randomBooks) both(id int64) []int64 {
	if other := b.rows[id].PairedWith; other != 0 && b.accounts[b.rows[other].Account].open {
		return []int64{id, other}
	}
	return []int64{id}
}

func (b *randomBooks) pair(x, y int64) {
	b.row(x, book.RowPaired{With: y, Account: b.rows[y].Account})
	b.row(y, book.RowPaired{With: x, Account: b.rows[x].Account})
}

// lossy returns a row with metal that was lost in work.
func (b *randomBooks) lossy(l *book.Ledger, date unit.Date) (in book.RowInput, ok bool) {
	weight, lost := new(unit.Grams(1+b.IntN(9_999))), new(unit.Grams(1+b.IntN(999)))
	in.Date = &date
	switch l.Name {
	case "karigar":
		in.In, in.Out = book.Entries([]karigar.In{{FineWeight: weight, WastageWeight: lost}}), book.Entries([]karigar.Out{})
	case "polisher":
		in.In, in.Out = book.Entries([]polisher.In{{Weight: weight, LossWeight: lost}}), book.Entries([]polisher.Out{})
	default:
		return in, false
	}
	return in, true
}

// step makes the events of one transaction.
func (b *randomBooks) step(t *testing.T) {
	t.Helper()
	editable := pick(b, b.rows, func(_ int64, r book.Row) bool { return r.Exists() && r.Editable() == nil && b.accounts[r.Account].open })
	reversible := pick(b, b.rows, func(_ int64, r book.Row) bool {
		return r.Exists() && !r.Void && r.ReversedBy == 0 && b.accounts[r.Account].open
	})
	account := pick(b, b.accounts, isOpen)
	switch n := b.IntN(20); {
	case len(b.accounts) < 3 || n == 0 && len(b.accounts) < 5:
		l := ledger.All[b.IntN(len(ledger.All))]
		b.account(b.first+int64(len(b.accounts)), book.AccountOpened{Name: "A"}, trialAccount{ledger: l, open: true})
	case n == 1:
		b.trialState.metal = string(trialMetals[2+b.IntN(3)])
		put(b, metal.Kind, b.workspace.String(), metal.Set{To: b.trialState.metal})
	case account == 0:
	case n == 2 && b.accounts[account].ledger.Metal:
		a := b.accounts[account]
		a.metal = string(trialMetals[b.IntN(len(trialMetals))])
		b.account(account, book.AccountMetalChanged{To: a.metal}, a)
	case n == 3 && b.IntN(3) == 0:
		a := b.accounts[account]
		a.open = false
		b.account(account, book.AccountDeleted{}, a)
	case n == 4 && editable != 0:
		for _, id := range b.both(editable) {
			b.row(id, book.RowVoided{})
		}
	case n == 5 && editable != 0:
		for _, id := range b.both(editable) {
			b.row(id, book.RowDeleted{})
		}
	case n == 6 && editable != 0:
		b.row(editable, book.RowEdited{Date: new(b.day())})
	case n == 7 && reversible != 0 && b.rows[reversible].PairedWith != 0:
		for _, id := range b.both(reversible) {
			b.row(id, book.RowUnpaired{})
		}
	case n < 10 && reversible != 0:
		b.reverse(t, reversible)
	case n < 15:
		l := b.accounts[account].ledger
		if in, ok := b.lossy(l, b.day()); ok && b.IntN(2) == 0 {
			b.post(t, account, in)
			return
		}
		b.post(t, account, l.Transfer(b.day(), b.movement(l.Metal), b.IntN(2) == 0))
	default:
		other := pick(b, b.accounts, func(id int64, a trialAccount) bool { return a.open && id != account })
		if other == 0 {
			return
		}
		from, to := b.accounts[account].ledger, b.accounts[other].ledger
		v := b.movement(from.Metal && to.Metal)
		b.pair(b.post(t, account, from.Transfer(b.day(), v, true)), b.post(t, other, to.Transfer(b.day(), v, false)))
	}
}

func (b *randomBooks) reverse(t *testing.T, id int64) {
	t.Helper()
	both := b.both(id)
	date := today
	var news []int64
	var sum book.Effect
	for _, old := range both {
		r := b.rows[old]
		l := b.accounts[r.Account].ledger
		in, out, err := l.Mirror(r.In, r.Out)
		require.NoError(t, err)
		by := b.first + 100 + int64(len(b.rows))
		b.row(by, book.RowAdded{Account: r.Account, Date: date, In: in, Out: out, Reverses: old})
		b.row(old, book.RowReversed{By: by})
		news, sum = append(news, by), sum.Plus(l.Debit(b.rows[by]))
	}
	if len(news) == 2 && sum == (book.Effect{}) {
		b.pair(news[0], news[1])
	}
}

func (b *randomBooks) remember(position event.Position) {
	s := b.trialState
	s.position, s.accounts, s.rows = position, maps.Clone(b.accounts), maps.Clone(b.rows)
	b.states = append(b.states, s)
}

// expectedTrial is a trial balance in a comparable form.
type expectedTrial struct {
	of             map[int64]map[string]int64
	unpaired, loss map[string]int64
	rows           []int64 // the unpaired ones, by date and id
}

const money = "money"

// of is the metal of a row.
func (s trialState) of(r book.Row) string {
	for _, name := range []string{r.Metal(), s.accounts[r.Account].metal, s.metal} {
		if name != "" {
			return name
		}
	}
	return metal.Default
}

// sum adds up the books by hand.
func (s trialState) sum(asOf unit.Date) expectedTrial {
	h := expectedTrial{map[int64]map[string]int64{}, map[string]int64{}, map[string]int64{}, nil}
	for id, a := range s.accounts {
		if a.open {
			h.of[id] = map[string]int64{}
		}
	}
	seen := func(id int64) bool {
		r, known := s.rows[id]
		return known && !r.Deleted && s.accounts[r.Account].open && r.Date <= asOf
	}
	for id, r := range s.rows {
		if !seen(id) {
			continue
		}
		l, of := s.accounts[r.Account].ledger, s.of(r)
		sign := int64(-1)
		if l.Name == "bank" {
			sign = 1
		}
		in, out := r.Counts()
		cash, fine, lost := sign*int64(in.Cash-out.Cash), sign*int64(in.Fine-out.Fine), sign*int64(r.Lost())
		h.of[r.Account][money] += cash
		h.of[r.Account][of] += fine
		if first := s.rows[r.Reverses]; r.Reverses == 0 && seen(r.ReversedBy) || r.Reverses != 0 && first.Reverses == 0 && seen(r.Reverses) {
			continue
		}
		h.loss[of] += lost
		if other := s.rows[r.PairedWith]; seen(r.PairedWith) && (fine == lost || s.of(other) == of) {
			continue
		}
		h.unpaired[money] += cash
		h.unpaired[of] += fine - lost
		if cash != 0 || fine != lost {
			h.rows = append(h.rows, id)
		}
	}
	slices.SortFunc(h.rows, func(x, y int64) int { return cmp.Or(cmp.Compare(s.rows[x].Date, s.rows[y].Date), cmp.Compare(x, y)) })
	return h
}

// shownByHand returns a trial balance in the same form.
func shownByHand(b ledgerview.TrialBalance) expectedTrial {
	flat := func(t ledgerview.Trial) map[string]int64 {
		m := map[string]int64{money: int64(unit.MoneyOf(t.Cash.Decimal))}
		for name, fine := range t.Fine {
			m[name] = int64(unit.GramsOf(fine.Decimal))
		}
		return m
	}
	h := expectedTrial{map[int64]map[string]int64{}, flat(b.Unpaired), flat(b.Loss), nil}
	for i, a := range b.Accounts {
		h.of[a.ID] = flat(b.Of[i])
	}
	return h
}

// plain drops what is zero.
func (h expectedTrial) plain() expectedTrial {
	drop := func(m map[string]int64) { maps.DeleteFunc(m, func(_ string, n int64) bool { return n == 0 }) }
	drop(h.unpaired)
	drop(h.loss)
	for _, m := range h.of {
		drop(m)
	}
	return h
}

// total returns the sum of all lines.
func (h expectedTrial) total() map[string]int64 {
	sum := map[string]int64{}
	for _, m := range h.of {
		for name, n := range m {
			sum[name] += n
		}
	}
	for _, m := range []map[string]int64{h.unpaired, h.loss} {
		for name, n := range m {
			sum[name] -= n
		}
	}
	maps.DeleteFunc(sum, func(_ string, n int64) bool { return n == 0 })
	return sum
}

func TestTheTrialBalanceOfRandomBooksComesToZero(t *testing.T) {
	t.Parallel()
	o := open(t)
	all := make([]*randomBooks, *trialBooks)
	for i := range all {
		all[i] = &randomBooks{
			Rand: rand.New(rand.NewPCG(42, uint64(i))), workspace: uuid.New(), first: int64(1000 * (i + 1)), revisions: map[string]int64{},
			trialState: trialState{accounts: map[int64]trialAccount{}, rows: map[int64]book.Row{}},
		}
	}
	for range 16 {
		var txs []eventstore.Transaction
		var of []*randomBooks
		for _, b := range all {
			if b.step(t); len(b.pending) > 0 {
				txs, of = append(txs, b.transaction(t)), append(of, b)
			}
		}
		for n, result := range o.store.AppendEach(o.ctx, txs) {
			require.NoError(t, result.Err)
			of[n].remember(result.Appended.Position)
		}
	}
	require.NoError(t, commands.InParallel(len(all), func(i int) error {
		b := all[i]
		for n, state := range b.states {
			if i >= 50 && n != b.IntN(len(b.states)) { // checks each position and day of the first books, and some of the others
				continue
			}
			for _, asOf := range append([]unit.Date{trialDays[0] - 1}, trialDays...) {
				if i >= 50 && b.IntN(3) > 0 {
					continue
				}
				views := []ledgerview.As{{Of: &asOf, KnownAt: &state.position}}
				if n == len(b.states)-1 {
					views = append(views, ledgerview.As{Of: &asOf})
				}
				for _, as := range views {
					shown, err := o.views.TrialBalance(o.ctx, nil, b.workspace, as)
					if err != nil {
						return err
					}
					got, want := shownByHand(shown).plain(), state.sum(asOf).plain()
					if got.rows, err = o.unpaired(b.workspace, as); err != nil {
						return err
					}
					if len(got.total()) > 0 || fmt.Sprint(got) != fmt.Sprint(want) {
						return fmt.Errorf("books %d at %d as of %s: %v, not %v; comes to %v", i, state.position, asOf, got, want, got.total())
					}
				}
			}
		}
		return nil
	}))
}

// unpaired returns the unpaired rows of all pages.
func (o *fixture) unpaired(workspace uuid.UUID, as ledgerview.As) (ids []int64, err error) {
	for number := 1; ; number++ {
		rows, total, err := o.views.Unpaired(o.ctx, nil, workspace, readmodels.Page{Number: number, Size: 5}, as)
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		switch {
		case err != nil || len(rows) < 5 && int(total) == len(ids):
			return ids, err
		case len(rows) < 5:
			return ids, fmt.Errorf("%d of %d unpaired rows", len(ids), total)
		}
	}
}

// A trial balance reads totals, so that it takes no longer in large books.
func TestTheTrialBalanceReadsNoRows(t *testing.T) {
	t.Parallel()
	o, workspace := open(t), uuid.New()
	opened, err := ledgercmd.OpenAccount(o.ctx, as(workspace), o.books, karigar.Ledger, book.OpenAccount{Name: "Imran"})
	require.NoError(t, err)
	rows := make([]book.RowInput, 100)
	for i := range rows {
		rows[i] = book.RowInput{Date: new(today - unit.Date(i)), In: book.Entries([]karigar.In{{FineWeight: new(unit.Grams(95)),
			WastageWeight: new(unit.Grams(5))}})}
	}
	_, err = ledgercmd.PostRows(o.ctx, as(workspace), o.books, karigar.Ledger, number(t, opened.ID), rows)
	require.NoError(t, err)
	position, err := o.store.Head(o.ctx)
	require.NoError(t, err)
	views := []ledgerview.As{{}, {Of: new(today - 50)}, {KnownAt: &position}, {Of: new(today - 50), KnownAt: &position}}
	read := func() (all []ledgerview.TrialBalance) {
		for _, as := range views {
			b, err := o.views.TrialBalance(o.ctx, nil, workspace, as)
			require.NoError(t, err)
			all = append(all, b)
		}
		return all
	}
	unpaired := func() (rows []ledgerview.Entered, total int64) {
		rows, total, err := o.views.Unpaired(o.ctx, nil, workspace, readmodels.Page{Number: 1, Size: 3}, ledgerview.As{})
		require.NoError(t, err)
		return rows, total
	}
	first, total := unpaired()
	require.Len(t, first, 3)
	require.EqualValues(t, 100, total)
	before := read()
	require.Equal(t, "-0.500", before[0].Loss.Fine[metal.Default].StringFixed(3))
	require.Equal(t, "-4.750", before[3].Unpaired.Fine[metal.Default].StringFixed(3))
	schema := projections.SchemaName("books", 1)
	_, err = o.pool.Exec(o.ctx, `delete from `+schema+`.row_version where date > date '1970-01-01' + $1::int`, first[0].Date|63)
	require.NoError(t, err)
	again, total := unpaired()
	require.Equal(t, first, again, "the rows of other periods are not read")
	require.EqualValues(t, 100, total)
	_, err = o.pool.Exec(o.ctx, `truncate `+schema+`.row_version`)
	require.NoError(t, err)
	require.Equal(t, before, read())
}
