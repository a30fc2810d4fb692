package book_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// with is a conflict that carries the row that it names.
func with(field string, row int64, detail string) error {
	return &fault.Error{Kind: fault.Conflict, Detail: detail, Fields: []fault.Field{{Field: field, Message: detail, ID: row}}}
}

func TestReversalOfARowIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	want := reserve{Ledger: bank.Ledger, Account: 12, Bulk: 40}
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	history.Case("a row").When(want).Then(announced{Bulk: 40})
	history.And(announced{Bulk: 40}, dropped{Bulk: 40}).Case("one that was let go").When(want).Then(announced{Bulk: 40})
	history.And(announced{Bulk: 40}, dropped{Bulk: 39}).Case("one that another bulk let go").When(want).ThenFails(book.ErrReversing)
	history.And(announced{Bulk: 39}).Case("while it is announced").When(want).ThenFails(book.ErrReversing)
	history.And(announced{Bulk: 39}, reversed{By: 41}).Case("twice").When(want).ThenFails(with("reversed_by", 41, "The row is reversed by row 41 already"))
	history.And(announced{Bulk: 39}, reversed{By: 41}, dropped{Bulk: 39}).Case("what is reversed is not let go").
		When(want).ThenFails(with("reversed_by", 41, "The row is reversed by row 41 already"))
	history.And(rowVoided{}).Case("a void row").When(want).ThenFails(book.ErrVoid)
	history.And(rowDeleted{}).Case("a deleted row").When(want).ThenFails(bank.Ledger.NoRow)
	history.Case("another account's row").When(reserve{Ledger: bank.Ledger, Account: 13, Bulk: 40}).ThenFails(bank.Ledger.NoRow)
	eventtest.Given(t, bank.Ledger.Rows).Case("no row").When(want).ThenFails(bank.Ledger.NoRow)
	eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1), Reverses: 7}).Case("a reversal").When(want).Then(announced{Bulk: 40})
}

func TestWhatIsSettledStaysAsItIs(t *testing.T) {
	t.Parallel()
	row := added{Account: 12, Date: today, In: of(1)}
	takesBack := row
	takesBack.Reverses = 7
	for sentence, c := range map[string]struct {
		events []rowEvent
		why    error
	}{
		"announced": {[]rowEvent{row, announced{Bulk: 40}}, book.ErrReversing},
		"reversed": {
			[]rowEvent{row, announced{Bulk: 40}, reversed{By: 41}},
			with("reversed_by", 41, "The row is reversed by row 41 and stays as it is"),
		},
		"reversing": {[]rowEvent{takesBack}, with("reverses", 7, "The row reverses row 7 and stays as it is; it can be reversed itself")},
		"void":      {[]rowEvent{row, rowVoided{}}, book.ErrVoid},
	} {
		history := eventtest.Given(t, bank.Ledger.Rows, c.events...)
		require.ErrorIs(t, history.State().Editable(), c.why, sentence)
		history.Case(sentence + ": edited").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today, Asked: askFor(edited{In: new(of(2))})}).ThenFails(c.why)
		history.Case(sentence + ": moved").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today, Asked: askFor(edited{Date: new(today - 1)})}).ThenFails(c.why)
		history.Case(sentence + ": edited to what it is").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today, Asked: askFor(edited{In: new(of(1))})}).ThenNothing()
		history.Case(sentence + ": deleted").When(deleteRow{Ledger: bank.Ledger, Account: 12}).ThenFails(c.why)
		history.Case(sentence + ": void").When(voidRow{Ledger: bank.Ledger, Account: 12}).ThenFails(c.why)
	}
}

func TestVoidRow(t *testing.T) {
	t.Parallel()
	want := voidRow{Ledger: bank.Ledger, Account: 12}
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	history.Case("a row").When(want).Then(rowVoided{})
	history.And(rowVoided{}).Case("twice").When(want).ThenFails(book.ErrVoid)
	history.And(rowDeleted{}).Case("a deleted row").When(want).ThenFails(bank.Ledger.NoRow)
	history.Case("another account's row").When(voidRow{Ledger: bank.Ledger, Account: 13}).ThenFails(bank.Ledger.NoRow)
	require.True(t, history.And(rowVoided{}).State().Exists())
}

func TestDropReversal(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	history.And(announced{Bulk: 40}).Case("of the bulk that holds it").When(release{Bulk: 40}).Then(dropped{Bulk: 40})
	history.And(announced{Bulk: 40}).Case("of another").When(release{Bulk: 39}).ThenNothing()
	history.Case("of none").When(release{Bulk: 40}).ThenNothing()
	history.And(announced{Bulk: 40}, reversed{By: 40}).Case("of one that has decided").When(release{Bulk: 40}).ThenNothing()
	require.Equal(t, history.State(), history.And(announced{Bulk: 40}, dropped{Bulk: 40}).State())
}

func TestAnnouncementsOfWhatCannotBeReversedHoldNothing(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	for _, more := range [][]rowEvent{{rowDeleted{}}, {rowVoided{}}} {
		require.Zero(t, history.And(more...).And(announced{Bulk: 40}).State().Reserved)
	}
	require.EqualValues(t, 39, history.And(announced{Bulk: 39}, announced{Bulk: 40}).State().Reserved)
	require.Zero(t, announced{Bulk: 40}.Evolve(book.Row{}).Reserved)
}

func TestABulkHoldsARowThatItTakesBackAsItStands(t *testing.T) {
	t.Parallel()
	row := book.Row{Account: 12, Date: today, In: of(1, 2), Out: of(5), Reserved: 40, ReservedAt: 8}
	back := bulkRow{Date: today, In: of(5), Out: of(3)}
	require.True(t, row.ReservedFor(40, 12, back, 9), "what counts is what it counts")
	change := func(f func(*book.Row)) book.Row { r := row; f(&r); return r }
	for sentence, held := range map[string]bool{
		"another bulk's":             row.ReservedFor(41, 12, back, 9),
		"another account's":          row.ReservedFor(40, 13, back, 9),
		"announced too late":         row.ReservedFor(40, 12, back, 8),
		"deleted":                    change(func(r *book.Row) { r.Deleted = true }).ReservedFor(40, 12, back, 9),
		"not there":                  book.Row{Reserved: 40}.ReservedFor(40, 0, bulkRow{}, 9),
		"counting more in":           change(func(r *book.Row) { r.In = of(4) }).ReservedFor(40, 12, back, 9),
		"counting more out":          change(func(r *book.Row) { r.Out = of(6) }).ReservedFor(40, 12, back, 9),
		"counting the same in total": change(func(r *book.Row) { r.In, r.Out = of(4), of(6) }).ReservedFor(40, 12, back, 9),
	} {
		require.False(t, held, sentence)
	}
}

func TestReverseRows(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Bulks)
	rows := []reversalRow{{Reverses: 7, Out: of(1)}, {Reverses: 3, In: of(2, 3)}}
	want := reverseRows{Account: 12, Date: today, Today: today, Latest: today - 3, Rows: rows}
	on := func(date, latest unit.Date) reverseRows {
		c := want
		c.Date, c.Latest = today+date, today+latest
		return c
	}
	history.Case("today").When(want).Then(rowsReversed{Account: 12, Date: today, Rows: rows})
	history.Case("on the rows' own day").When(on(-3, -3)).Then(rowsReversed{Account: 12, Date: today - 3, Rows: rows})
	history.Case("tomorrow").When(on(1, -3)).Then(rowsReversed{Account: 12, Date: today + 1, Rows: rows})
	history.Case("the day after").When(on(2, -3)).ThenFails(invalid("date", "must not be after tomorrow"))
	history.Case("before the row").When(on(-4, -3)).ThenFails(invalid("date", "must not be before the date of the row"))
	history.And(rowsReversed{Account: 12, Date: today, Rows: rows}).Case("ids are used once").When(want).ThenFails(fault.New(fault.Conflict, "Rows exist already"))
	history.And(rowsAbandoned{}).Case("what was abandoned").When(want).ThenFails(book.ErrOvertaken)

	history.Case("abandoned").When(abandonRows{}).Then(rowsAbandoned{})
	history.And(rowsAbandoned{}).Case("abandoned twice").When(abandonRows{}).ThenNothing()
	history.And(rowsReversed{Account: 12, Date: today, Rows: rows}).Case("abandoned too late").When(abandonRows{}).ThenNothing()
}

func TestAReversalIsABulkOfRowsThatNameOthers(t *testing.T) {
	t.Parallel()
	e := rowsReversed{Account: 12, Date: today, Rows: []reversalRow{{Reverses: 7, Out: of(1)}, {Reverses: 3, In: of(2, 3)}}}
	b := eventtest.Given(t, bank.Ledger.Bulks, e).State()
	require.Equal(t, []int64{7, 3}, b.Reverses)
	require.Equal(t, added{Account: 12, Date: today, In: of(2, 3), Reverses: 3}, b.Added(1))
	require.EqualValues(t, 7, b.Added(0).Evolve(book.Row{}).Reverses)
	var abandoned event.Event[book.Bulk] = rowsAbandoned{}
	require.True(t, abandoned.Evolve(book.Bulk{}).Abandoned)
}

func TestExchangeMirrorsASideByTheOther(t *testing.T) {
	t.Parallel()
	in, out, err := bank.Ledger.Mirror(of(1, 2), of(3))
	require.NoError(t, err)
	require.Equal(t, of(3), in)
	require.Equal(t, of(1, 2), out)
}
