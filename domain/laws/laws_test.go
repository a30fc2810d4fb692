package laws_test

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/request"
	"bahi/domain/unit"
)

const day unit.Date = 20_000

var home, away = uuid.New(), uuid.New()

type logged struct {
	stream   string
	revision int64
	data     any
	of       uuid.UUID
	more     int
}

func of(kind interface{ Stream(id string) string }, id int64, data any) logged {
	return logged{stream: kind.Stream(strconv.FormatInt(id, 10)), data: data, of: home}
}

func (l logged) in(workspace uuid.UUID) logged { l.of = workspace; return l }

// with returns an event that the next one follows in its transaction.
func (l logged) with() logged { l.more = 1; return l }

var (
	rows   = bank.Ledger.Rows
	opened = of(bank.Ledger.Accounts, 1, book.AccountOpened{Name: "SBI"})
	second = of(bank.Ledger.Accounts, 2, book.AccountOpened{Name: "HDFC"})
	added  = of(rows, 7, book.RowAdded{Account: 1, Date: day})
	locked = logged{stream: bookslock.Kind.Stream(home.String()), data: bookslock.Moved{To: new(day)}, of: home}
	back   = of(rows, 8, book.RowAdded{Account: 1, Date: day + 1, Reverses: 7}).with()
	taken  = of(rows, 7, book.RowReversed{By: 8})

	meena   = of(client.Ledger.Accounts, 10, book.AccountOpened{Name: "Meena"})
	asha    = of(client.Ledger.Accounts, 11, book.AccountOpened{Name: "Asha"})
	imran   = of(karigar.Ledger.Accounts, 12, book.AccountOpened{Name: "Imran"})
	ordered = of(order.Kind, 1, order.Added{Order: order.Order{Client: 10}})
	another = of(order.Kind, 2, order.Added{Order: order.Order{Client: 11}})
	moved   = of(order.Kind, 1, order.Edited{Client: patch.Set(int64(11))})
)

func delivered(id, number int64, maker *int64) logged {
	items := []takada.Item{{Name: "ring", Weight: 1, Karigar: maker}}
	return of(takada.Kind, id, takada.Added{Takada: takada.Takada{Order: number, Items: items}})
}

// check returns the laws that the last transaction breaks. No transaction before it may break any.
func check(t *testing.T, events []logged) (broken []string) {
	t.Helper()
	c := laws.New()
	for i, e := range events {
		all := c.Next(event.Recorded[any]{
			Position: event.Position(i + 1), Stream: e.stream, Revision: e.revision, Data: e.data, Meta: event.Meta{Workspace: e.of},
		})
		if e.more == 0 {
			all = append(all, c.Commit()...)
		}
		if i+e.more+1 < len(events) {
			require.Empty(t, all, "event %d", i)
		}
		for _, b := range all {
			require.NotEmpty(t, b.Stream)
			broken = append(broken, b.Law)
		}
	}
	return broken
}

func TestEachLawIsBrokenByAnEvent(t *testing.T) {
	t.Parallel()
	closed := of(bank.Ledger.Accounts, 1, book.AccountDeleted{EarliestRow: new(day)})
	edit := of(rows, 7, book.RowEdited{Date: new(day + 5)})
	void, gone := of(rows, 7, book.RowVoided{}), of(rows, 7, book.RowDeleted{})
	key := logged{stream: request.Kind.Stream("k"), revision: 1, data: request.Accepted{}, of: home}
	noMeena, noOrder := of(client.Ledger.Accounts, 10, book.AccountDeleted{}), of(order.Kind, 1, order.Deleted{})
	later, first := of(rows, 7, book.RowAdded{Account: 1, Date: day + 1}), delivered(1, 1, nil)
	other := of(rows, 9, book.RowAdded{Account: 2, Date: day})
	pair, paired := of(rows, 7, book.RowPaired{With: 9, Account: 2}), of(rows, 9, book.RowPaired{With: 7, Account: 1})
	five := book.StoredSide(`[{"amount":5}]`, book.Effect{Cash: 500})
	in5 := of(rows, 9, book.RowAdded{Account: 2, Date: day, In: five})
	for law, logs := range map[string][][]logged{
		"an Idempotency-Key has one effect":           {{key}},
		"only an open account is deleted":             {{closed}, {opened, of(bank.Ledger.Accounts, 1, book.AccountDeleted{}), closed}},
		"an account with a locked row is not deleted": {{opened, added, locked, closed}},
		"a row is added once":                         {{opened, added, added}},
		"only an existing row is changed":             {{opened, added, gone, edit}},
		"a row is of an open account of its workspace": {
			{added}, {opened, added.in(away)}, {opened, added, closed, edit}, {meena, of(rows, 7, book.RowAdded{Account: 10, Date: day})},
		},
		"a row is reversed once": {{opened, added, back, taken, taken}, {opened, added, void, back, taken}},
		"a row is reversed by a row of its account that names it": {
			{opened, added, taken}, {opened, second, added, of(rows, 8, book.RowAdded{Account: 2, Date: day, Reverses: 7}).with(), taken},
		},
		"a row that names another one reverses it": {{opened, added, back, edit}},
		"a settled row does not change": {
			{opened, added, back, taken, edit}, {opened, added, void, gone}, {opened, added, back, of(rows, 8, book.RowDeleted{})},
		},
		"no row changes on a locked day": {
			{opened, locked, added}, {opened, added, locked, edit}, {opened, later, locked, of(rows, 7, book.RowEdited{Date: new(day)})},
			{opened, added, locked, gone},
		},
		"a row is paired once":          {{opened, second, added, other, pair.with(), paired, pair}},
		"only a paired row is unpaired": {{opened, added, of(rows, 7, book.RowUnpaired{})}},
		"two paired rows have different accounts and name each other": {
			{opened, second, added, other, pair}, {opened, second, added, other, of(rows, 7, book.RowPaired{With: 9, Account: 1})},
			{opened, second, added, other, pair.with(), of(rows, 9, book.RowPaired{With: 7, Account: 2})},
		},
		"the values of two paired rows are opposite": {
			{opened, second, added, in5, pair.with(), paired},
			{opened, second, added, other, pair.with(), paired, of(rows, 7, book.RowEdited{In: &five})},
		},
		"an order is added once, and changed while it exists": {{meena, ordered, ordered}, {meena, asha, ordered, noOrder, moved}},
		"an order with takadas keeps its client":              {{meena, asha, ordered, first, moved}},
		"an order is of an open client of its workspace":      {{ordered}, {meena, ordered, moved}, {meena, ordered.in(away)}},
		"a takada is added once, and changed while it exists": {{meena, ordered, first, first}},
		"a takada belongs to an existing order":               {{first}, {meena, ordered, noMeena, first}},
		"a takada stays with its client": {
			{meena, asha, ordered, another, first, of(takada.Kind, 1, takada.Edited{Order: patch.Set(int64(2))})},
		},
		"a takada names open karigars of its workspace": {{meena, ordered, delivered(1, 1, new(int64(12)))}},
	} {
		for _, log := range logs {
			require.Contains(t, check(t, log), law)
		}
	}
}

func TestALogThatKeepsTheLawsBreaksNone(t *testing.T) {
	t.Parallel()
	require.Empty(t, check(t, []logged{
		opened, second, added, of(rows, 6, book.RowAdded{Account: 2, Date: day}), locked,
		of(rows, 7, book.RowPaired{With: 6, Account: 2}).with(), of(rows, 6, book.RowPaired{With: 7, Account: 1}), back, taken,
		of(rows, 7, book.RowUnpaired{}).with(), of(rows, 6, book.RowUnpaired{}), of(rows, 9, book.RowAdded{Account: 1, Date: day + 2}),
		of(rows, 9, book.RowEdited{Date: new(day + 3)}), of(rows, 9, book.RowDeleted{}),
		meena, asha, imran, ordered, moved, of(order.Kind, 3, order.Added{Order: order.Order{Client: 11}}),
		delivered(1, 1, new(int64(12))), of(takada.Kind, 1, takada.Edited{Order: patch.Set(int64(3))}),
		of(order.Kind, 1, order.Edited{Client: patch.Set(int64(10))}),
		of(takada.Kind, 1, takada.Deleted{}), of(client.Ledger.Accounts, 11, book.AccountDeleted{}),
		{stream: request.Kind.Stream("k"), data: request.Accepted{}, of: home},
	}))
}
