package laws_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/access/plan"
	"bahi/domain/access/user"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/period"
	"bahi/domain/ledger/takada"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
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

// check returns the laws that the last transaction breaks. Earlier transactions must break none.
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

func inPeriods(data any) logged {
	return logged{stream: period.Kind.Stream(home.String()), data: data, of: home}
}

func lockedAt(through *unit.Date) logged {
	return logged{stream: bookslock.Kind.Stream(home.String()), data: bookslock.Moved{To: through}, of: home}
}

// closedAt closes the books through a day, with balances that were read at a position.
func closedAt(from *unit.Date, through unit.Date, at event.Position, balances ...closing.Balance) logged {
	return inPeriods(period.Closed{From: from, Through: through,
		Seal: period.Seal{Digest: closing.Digest(balances), Position: at}})
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	count := func(paise unit.Money) book.Side {
		return book.StoredSide(`[{"amount":1}]`, book.Effect{Cash: paise})
	}
	rich := of(rows, 7, book.RowAdded{Account: 1, Date: day, In: count(500), Out: count(30)})
	void := of(rows, 8, book.RowAdded{Account: 1, Date: day - 1, In: count(900)})
	next := of(rows, 9, book.RowAdded{Account: 1, Date: day + 1, In: count(70)})
	before := []logged{opened, rich, void, of(rows, 8, book.RowVoided{}), next, of(rows, 7, book.RowEdited{Out: new(count(40))}),
		locked} // to 7
	sbi := closing.Balance{Ledger: "bank", Account: 1, Cash: 460, Rows: 2}
	year := closedAt(nil, day, 7, sbi)
	reopened := inPeriods(period.Reopened{Through: day})
	log := func(more ...logged) []logged { return append(slices.Clip(before), more...) }

	require.Empty(t, check(t, log(year)))
	require.Empty(t, check(t, log(second, year)), "an account that is opened after the position")
	require.Empty(t, check(t, log(second, of(bank.Ledger.Accounts, 2, book.AccountDeleted{}),
		closedAt(nil, day, 8, sbi, closing.Balance{Ledger: "bank", Account: 2}))), "an account that is deleted after the position")
	require.Empty(t, check(t, log(year, reopened.with(), lockedAt(nil), of(rows, 7, book.RowDeleted{}), lockedAt(new(day)),
		closedAt(nil, day, 11, closing.Balance{Ledger: "bank", Account: 1, Rows: 1}))), "a second seal")
	require.Empty(t, check(t, log(year, lockedAt(new(day+3)), closedAt(new(day+1), day+2, 9, closing.Balance{Ledger: "bank", Account: 1,
		Cash: 530, Rows: 3}))), "the next period")

	for law, logs := range map[string][][]logged{
		"no row changes in a closed period": {
			log(year, of(rows, 10, book.RowAdded{Account: 1, Date: day})), log(year, of(rows, 7, book.RowDeleted{})),
			log(year, of(rows, 9, book.RowEdited{Date: new(day)})),
		},
		"the lock is not moved back behind a closed period": {log(year, lockedAt(nil)), log(year, lockedAt(new(day-1)))},
		"a period is closed when it is locked":              {log(closedAt(nil, day+1, 7, sbi)), {year}},
		"closed periods follow one another": {
			log(year, year), log(closedAt(new(day-9), day, 7, sbi)), log(lockedAt(new(day+3)), year, closedAt(new(day+2), day+3, 9, sbi)),
			log(year, closedAt(new(day+1), day, 8, sbi)),
		},
		"a closed period has the digest of its closing balances": {
			log(closedAt(nil, day, 7)), log(closedAt(nil, day, 8, sbi)), log(second, closedAt(nil, day, 8, sbi)),
			log(closedAt(nil, day, 7, closing.Balance{Ledger: "bank", Account: 1, Cash: 461, Rows: 2})),
		},
		"only the newest closed period is reopened": {
			log(reopened), log(year, inPeriods(period.Reopened{Through: day - 1})), log(year, reopened.with(), lockedAt(nil), reopened),
		},
	} {
		for _, log := range logs {
			require.Contains(t, check(t, log), law)
		}
	}
}

type streams interface{ Stream(id string) string }

func record(kind streams, id string, data any) logged {
	return logged{stream: kind.Stream(id), data: data, of: home}
}

// decided returns the only event of a command on a claim.
func decided(v claims.Value, key string, c event.Command[claims.State], s claims.State) logged {
	events, err := c.Decide(s)
	if err != nil || len(events) != 1 {
		panic("no event of a claim")
	}
	return record(v, key, events[0])
}

func claimed(v claims.Value, key, holder string) logged {
	return decided(v, key, claims.Claim{Value: v, Holder: holder, Now: time.Now()}, claims.State{})
}

func released(v claims.Value, key, holder string) logged {
	return decided(v, key, claims.Release{Value: v, Holder: holder}, claims.State{Holder: holder})
}

// together returns events as one transaction.
func together(events ...logged) []logged {
	all := slices.Clone(events)
	for i := range all {
		all[i].more = len(all) - 1 - i
	}
	return all
}

var (
	ada, bob   = uuid.NewString(), uuid.NewString()
	mill, shop = uuid.NewString(), uuid.NewString()
	batch      = product.NewBatchID(uuid.New())
)

func sku(text string) product.Item {
	return product.Item{Details: product.Details{SKU: patch.Set(text)}}
}

func skuKey(of, text string) string {
	return product.SKUClaim(uuid.MustParse(of), product.SKUKey(text))
}

// owned is a kind of value: events that give it to two records, and one that takes it from the first.
type owned struct {
	claims              claims.Value
	key                 string
	first, second       string // the records' ids
	gain, regain, loses logged
}

// give returns a value that the same event of a kind of records gives to two of them.
func give(v claims.Value, key string, kind streams, first, second string, gives, takes any) owned {
	return owned{v, key, first, second, record(kind, first, gives), record(kind, second, gives), record(kind, first, takes)}
}

func kinds() map[string]owned {
	of := uuid.MustParse(mill)
	added, imported := product.Added{Company: of, Item: sku("AB")}, product.InBatch(batch, 1).String()
	other := product.Edited{Details: product.Details{SKU: patch.Clear[string]()}}
	bulk := give(product.SKUs, skuKey(mill, "AB"), product.Kind, imported, bob, added, product.Deleted{})
	bulk.gain = record(product.Batches, batch.String(), product.Imported{Company: of, Products: []product.Item{{}, sku("Ab")}})
	return map[string]owned{
		"email":         give(claim.Email, "k", user.Kind, ada, bob, user.Registered{EmailKey: "k"}, user.EmailClaimLost{}),
		"changed email": give(claim.Email, "k", user.Kind, ada, bob, user.EmailChanged{EmailKey: "k"}, user.ErasureBegun{}),
		"identity":      give(claim.Identity, "i", user.Kind, ada, bob, user.IdentityLinked{IdentityKey: "i"}, user.ErasureBegun{}),
		"customer":      give(plan.Customers, "c", plan.Kind, ada, bob, plan.Reported{CustomerKey: "c"}, plan.Reported{}),
		"domain": give(company.Domains, "d", company.Kind, mill, shop, company.Created{DomainKey: "d"},
			company.Edited{DomainKey: patch.Set("")}),
		"SKU":          give(product.SKUs, skuKey(mill, "ab"), product.Kind, ada, bob, added, other),
		"imported SKU": bulk,
		"channel":      give(channel.Identities, "s", channel.Kind, "1", "2", channel.Confirmed{IdentityKey: "s"}, channel.Reported{}),
		"page":         give(botsource.Pages, "p", botsource.Kind, "1", "2", botsource.PageAdded{PageKey: "p"}, botsource.Deleted{}),
		"phone": give(contact.Phones, "t", contact.Kind, "1", "2", contact.Added{PhoneKey: "t"},
			contact.Edited{Phone: patch.Clear[event.Personal]()}),
		"sender": give(contact.Senders, "n", contact.Kind, "1", "2", contact.SenderAdded{Channel: 3, Key: "n"}, contact.Merged{Into: 2}),
	}
}

func TestUniqueValues(t *testing.T) {
	t.Parallel()
	const twice, unclaimed = "two records never have the same value", "a record claims the value that it has"
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine, its := claimed(k.claims, k.key, k.first), claimed(k.claims, k.key, k.second)
			free := released(k.claims, k.key, k.first)
			begun := together(k.gain, mine)
			after := func(events ...logged) []logged { return append(slices.Clone(begun), together(events...)...) }
			for _, lawful := range [][]logged{
				begun, {mine, k.gain}, after(mine), {mine, free}, // the record may come later, or never
				{mine, its}, {mine, its, k.regain},
				after(k.loses, free), after(free, k.loses),
				after(k.regain, its, k.loses), after(its, k.regain, k.loses), after(k.loses, k.regain, its),
				append(after(k.loses), together(its, k.regain)...), // the claim of a deleted record stays
				append(after(k.loses, free), together(its, k.regain)...),
			} {
				require.Empty(t, check(t, lawful))
			}
			for law, logs := range map[string][][]logged{
				twice:                               {after(k.regain, its), after(k.regain)},
				unclaimed:                           {{k.gain}, {its, k.gain}, after(free), after(its)},
				"a claim is released by its holder": {{free}, {its, free}, {mine, its, free}},
			} {
				for _, log := range logs {
					require.Contains(t, check(t, log), law)
				}
			}
		})
	}
}

func TestASlugIsNeverGivenUp(t *testing.T) {
	t.Parallel()
	const law = "a slug belongs to one company for good"
	mine, its := claimed(company.Slugs, "s", mill), claimed(company.Slugs, "s", shop)
	first, second := record(company.Kind, mill, company.Created{Slug: "asha"}), record(company.Kind, shop, company.Created{Slug: "asha"})
	deleted := record(company.Kind, mill, company.Deleted{})
	require.Empty(t, check(t, append(together(first, mine), deleted)))
	for _, log := range [][]logged{
		append(together(first, mine), released(company.Slugs, "s", mill)), append(together(first, mine), deleted, its), {first, deleted, second},
	} {
		require.Equal(t, []string{law}, check(t, log))
	}
}

func TestAValueIsLostWithWhatGaveIt(t *testing.T) {
	t.Parallel()
	email := func(key string) []logged {
		return together(record(user.Kind, ada, user.EmailChanged{EmailKey: key}), claimed(claim.Email, key, ada))
	}
	linked := func(id, key string) []logged {
		return together(record(user.Kind, id, user.IdentityLinked{IdentityKey: key}), claimed(claim.Identity, key, id))
	}
	log := slices.Concat(
		together(record(user.Kind, ada, user.Registered{EmailKey: "a"}), claimed(claim.Email, "a", ada)), linked(ada, "before"),
		email("b"), linked(ada, "since"), email("c"), linked(ada, "later"),
		together(record(user.Kind, ada, user.EmailRestored{Change: 0, EmailKey: "a"}), released(claim.Email, "c", ada)),
	)
	require.Empty(t, check(t, slices.Concat(log, linked(bob, "since"), linked(bob, "later"))), "an identity that was linked since is free")
	require.NotEmpty(t, check(t, slices.Concat(log, linked(bob, "before"))))

	spelt := together(record(contact.Kind, "1", contact.SenderAdded{Key: "t"}), claimed(contact.Phones, "t", "1"))
	added := together(record(contact.Kind, "2", contact.Added{PhoneKey: "t"}), claimed(contact.Phones, "t", "2"))
	require.Empty(t, check(t, slices.Concat(spelt, added)), "a further spelling gives way to a phone")
	require.NotEmpty(t, check(t, slices.Concat(added, spelt)))

	replaced := together(record(channel.Kind, "1", channel.Confirmed{IdentityKey: "s"}), record(channel.Kind, "1", channel.Reported{}))
	require.Empty(t, check(t, replaced), "what a transaction gives and takes needs no claim")
	for _, category := range []string{claim.Email.Category(), user.Kind.Category(), product.Batches.Category(), contact.Senders.Category()} {
		require.True(t, laws.Reads(category), category)
	}
}
