package laws_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
)

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
	log := func(more ...logged) []logged { return append(before[:len(before):len(before)], more...) }

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
