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

func TestReversalOfARowIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	ask := announce{Account: 12, Bulk: 40, Missing: bank.ErrNoRow}
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1)})
	given.Case("a row").When(ask).Then(announced{Bulk: 40})
	given.And(announced{Bulk: 40}, dropped{Bulk: 40}).Case("one that was let go").When(ask).Then(announced{Bulk: 40})
	given.And(announced{Bulk: 40}, dropped{Bulk: 39}).Case("one that another bulk let go").When(ask).ThenFails(book.ErrReversing)
	given.And(announced{Bulk: 39}).Case("while it is announced").When(ask).ThenFails(book.ErrReversing)
	given.And(announced{Bulk: 39}, reversed{By: 41}).Case("twice").When(ask).ThenFails(fault.New(fault.Conflict, "The row is reversed by row 41 already"))
	given.And(announced{Bulk: 39}, reversed{By: 41}, dropped{Bulk: 39}).Case("what is reversed is not let go").
		When(ask).ThenFails(fault.New(fault.Conflict, "The row is reversed by row 41 already"))
	given.And(rowVoided{}).Case("a void row").When(ask).ThenFails(book.ErrVoid)
	given.And(rowDeleted{}).Case("a deleted row").When(ask).ThenFails(bank.ErrNoRow)
	given.Case("another account's row").When(announce{Account: 13, Bulk: 40, Missing: bank.ErrNoRow}).ThenFails(bank.ErrNoRow)
	eventtest.Given(t, bank.Rows).Case("no row").When(ask).ThenFails(bank.ErrNoRow)
	eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1), Reverses: 7}).Case("a reversal").When(ask).Then(announced{Bulk: 40})
}

func TestWhatIsSettledStaysAsItIs(t *testing.T) {
	t.Parallel()
	row := added{Account: 12, Date: today, In: of(1)}
	takesBack := row
	takesBack.Reverses = 7
	for sentence, c := range map[string]struct {
		given []rowEvent
		why   error
	}{
		"announced": {[]rowEvent{row, announced{Bulk: 40}}, book.ErrReversing},
		"reversed": {
			[]rowEvent{row, announced{Bulk: 40}, reversed{By: 41}},
			fault.New(fault.Conflict, "The row is reversed by row 41 and stays as it is"),
		},
		"reversing": {[]rowEvent{takesBack}, fault.New(fault.Conflict, "The row reverses row 7 and stays as it is; it can be reversed itself")},
		"void":      {[]rowEvent{row, rowVoided{}}, book.ErrVoid},
	} {
		given := eventtest.Given(t, bank.Rows, c.given...)
		require.ErrorIs(t, given.State().Settled(), c.why, sentence)
		given.Case(sentence + ": edited").When(editRow{Account: 12, Today: today, Missing: bank.ErrNoRow, In: new(of(2))}).ThenFails(c.why)
		given.Case(sentence + ": moved").When(editRow{Account: 12, Today: today, Missing: bank.ErrNoRow, Date: new(today - 1)}).ThenFails(c.why)
		given.Case(sentence + ": edited to what it is").When(editRow{Account: 12, Today: today, Missing: bank.ErrNoRow, In: new(of(1))}).ThenNothing()
		given.Case(sentence + ": deleted").When(deleteRow{Account: 12, Missing: bank.ErrNoRow}).ThenFails(c.why)
		if sentence != "void" {
			given.Case(sentence + ": void").When(voidRow{Account: 12, Missing: bank.ErrNoRow}).ThenFails(c.why)
		}
	}
}

func TestVoidRow(t *testing.T) {
	t.Parallel()
	ask := voidRow{Account: 12, Missing: bank.ErrNoRow}
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1)})
	given.Case("a row").When(ask).Then(rowVoided{})
	given.And(rowVoided{}).Case("twice").When(ask).ThenNothing()
	given.And(rowDeleted{}).Case("a deleted row").When(ask).ThenFails(bank.ErrNoRow)
	given.Case("another account's row").When(voidRow{Account: 13, Missing: bank.ErrNoRow}).ThenFails(bank.ErrNoRow)
	require.True(t, given.And(rowVoided{}).State().Exists())
}

func TestDropReversal(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1)})
	given.And(announced{Bulk: 40}).Case("of the bulk that holds it").When(drop{Bulk: 40}).Then(dropped{Bulk: 40})
	given.And(announced{Bulk: 40}).Case("of another").When(drop{Bulk: 39}).ThenNothing()
	given.Case("of none").When(drop{Bulk: 40}).ThenNothing()
	given.And(announced{Bulk: 40}, reversed{By: 40}).Case("of one that has decided").When(drop{Bulk: 40}).ThenNothing()
	require.Equal(t, given.State(), given.And(announced{Bulk: 40}, dropped{Bulk: 40}).State())
}

func TestAnnouncementsOfWhatCannotBeReversedHoldNothing(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1)})
	for _, more := range [][]rowEvent{{rowDeleted{}}, {rowVoided{}}} {
		require.Zero(t, given.And(more...).And(announced{Bulk: 40}).State().Reversal)
	}
	require.EqualValues(t, 39, given.And(announced{Bulk: 39}, announced{Bulk: 40}).State().Reversal)
	require.Zero(t, announced{Bulk: 40}.Evolve(bank.Row{}).Reversal)
}

func TestABulkHoldsARowThatItTakesBackAsItStands(t *testing.T) {
	t.Parallel()
	row := bank.Row{Account: 12, Date: today, In: of(1, 2), Out: of(5), Reversal: 40, Announced: 8}
	back := bulkRow{Date: today, In: of(5), Out: of(3)}
	require.True(t, row.Held(40, 12, back, 9), "what counts is what it counts")
	change := func(f func(*bank.Row)) bank.Row { r := row; f(&r); return r }
	for sentence, held := range map[string]bool{
		"another bulk's":             row.Held(41, 12, back, 9),
		"another account's":          row.Held(40, 13, back, 9),
		"announced too late":         row.Held(40, 12, back, 8),
		"deleted":                    change(func(r *bank.Row) { r.Deleted = true }).Held(40, 12, back, 9),
		"not there":                  bank.Row{Reversal: 40}.Held(40, 0, bulkRow{}, 9),
		"counting more in":           change(func(r *bank.Row) { r.In = of(4) }).Held(40, 12, back, 9),
		"counting more out":          change(func(r *bank.Row) { r.Out = of(6) }).Held(40, 12, back, 9),
		"counting the same in total": change(func(r *bank.Row) { r.In, r.Out = of(4), of(6) }).Held(40, 12, back, 9),
	} {
		require.False(t, held, sentence)
	}
}

func TestReverseRows(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Bulks)
	rows := []reversalRow{{Reverses: 7, Out: of(1)}, {Reverses: 3, In: of(2, 3)}}
	ask := reverseRows{Account: 12, Date: today, Today: today, Latest: today - 3, Rows: rows}
	on := func(date, latest unit.Date) reverseRows {
		c := ask
		c.Date, c.Latest = today+date, today+latest
		return c
	}
	given.Case("today").When(ask).Then(rowsReversed{Account: 12, Date: today, Rows: rows})
	given.Case("on the rows' own day").When(on(-3, -3)).Then(rowsReversed{Account: 12, Date: today - 3, Rows: rows})
	given.Case("tomorrow").When(on(1, -3)).Then(rowsReversed{Account: 12, Date: today + 1, Rows: rows})
	given.Case("the day after").When(on(2, -3)).ThenFails(invalid("date", "must not be after tomorrow"))
	given.Case("before the row").When(on(-4, -3)).ThenFails(invalid("date", "must not be before the date of the row"))
	given.And(rowsReversed{Account: 12, Date: today, Rows: rows}).Case("ids are used once").When(ask).ThenFails(fault.New(fault.Conflict, "Rows exist already"))
	given.And(rowsForsaken{}).Case("what was forsaken").When(ask).ThenFails(book.ErrForsaken)

	given.Case("forsaken").When(forsakeRows{}).Then(rowsForsaken{})
	given.And(rowsForsaken{}).Case("forsaken twice").When(forsakeRows{}).ThenNothing()
	given.And(rowsReversed{Account: 12, Date: today, Rows: rows}).Case("forsaken too late").When(forsakeRows{}).ThenNothing()
}

func TestAReversalIsABulkOfRowsThatNameOthers(t *testing.T) {
	t.Parallel()
	e := rowsReversed{Account: 12, Date: today, Rows: []reversalRow{{Reverses: 7, Out: of(1)}, {Reverses: 3, In: of(2, 3)}}}
	b := eventtest.Given(t, bank.Bulks, e).State()
	require.Equal(t, []int64{7, 3}, b.Reverses)
	require.Equal(t, added{Account: 12, Date: today, In: of(2, 3), Reverses: 3}, b.Added(1))
	changes := e.BulkChange()
	require.Equal(t, []book.RowChanged{b.Added(0).RowChange(), b.Added(1).RowChange()}, changes)
	require.EqualValues(t, 7, changes[0].Reverses)
	require.Empty(t, rowsForsaken{}.BulkChange())
	var forsaken event.Event[bank.Bulk] = rowsForsaken{}
	require.True(t, forsaken.Evolve(bank.Bulk{}).Forsaken)
}

func TestExchangeMirrorsASideByTheOther(t *testing.T) {
	t.Parallel()
	in, out := bank.Ledger.Mirror(of(1, 2), of(3))
	require.Equal(t, of(3), in)
	require.Equal(t, of(1, 2), out)
}
