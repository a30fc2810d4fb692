package book_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

// with is a conflict that carries the row that it names.
func with(field string, row int64, detail string) error {
	return &fault.Error{Kind: fault.Conflict, Detail: detail, Fields: []fault.Field{{Field: field, Message: detail, ID: row}}}
}

func TestARowIsReversedOnce(t *testing.T) {
	t.Parallel()
	want := reverseRow{Ledger: bank.Ledger, Account: 12, By: 40}
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	history.Case("a row").When(want).Then(reversed{By: 40})
	history.And(reversed{By: 41}).Case("twice").When(want).ThenFails(with("reversed_by", 41, "The row is reversed by row 41 already"))
	history.And(rowVoided{}).Case("a void row").When(want).ThenFails(book.ErrVoid)
	history.And(rowDeleted{}).Case("a deleted row").When(want).ThenFails(bank.Ledger.NoRow)
	history.Case("another account's row").When(reverseRow{Ledger: bank.Ledger, Account: 13, By: 40}).ThenFails(bank.Ledger.NoRow)
	eventtest.Given(t, bank.Ledger.Rows).Case("no row").When(want).ThenFails(bank.Ledger.NoRow)
	eventtest.Given(t, bank.Ledger.Rows,
		added{Account: 12, Date: today, In: of(1), Reverses: 7}).Case("a reversal").When(want).Then(reversed{By: 40})
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
		"reversed":  {[]rowEvent{row, reversed{By: 41}}, with("reversed_by", 41, "The row is reversed by row 41 and cannot be changed")},
		"reversing": {[]rowEvent{takesBack}, with("reverses", 7, "The row reverses row 7 and cannot be changed. It can be reversed")},
		"void":      {[]rowEvent{row, rowVoided{}}, book.ErrVoid},
	} {
		history := eventtest.Given(t, bank.Ledger.Rows, c.events...)
		require.ErrorIs(t, history.State().Editable(), c.why, sentence)
		history.Case(sentence + ": edited").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today,
			RowInput: askFor(edited{In: new(of(2))})}).ThenFails(c.why)
		history.Case(sentence + ": moved").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today,
			RowInput: askFor(edited{Date: new(today - 1)})}).ThenFails(c.why)
		history.Case(sentence + ": edited to what it is").When(editRow{Ledger: bank.Ledger, Account: 12, Today: today,
			RowInput: askFor(edited{In: new(of(1))})}).ThenNothing()
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

func TestReverseRows(t *testing.T) {
	t.Parallel()
	c := book.ReverseRows{
		Today: today, Rows: []book.Reversing{
			{Ledger: bank.Ledger, ID: 7, Row: book.Row{Account: 12, Date: today - 3, In: of(1)}},
			{Ledger: bank.Ledger, ID: 3, Row: book.Row{Account: 12, Date: today - 5, Out: of(2, 3)}},
		},
	}
	mirrors := func(date unit.Date) []added {
		return []added{{Account: 12, Date: date, Out: of(1), Reverses: 7}, {Account: 12, Date: date, In: of(2, 3), Reverses: 3}}
	}
	open := book.PostingContext{AccountOpen: true}
	for sentence, test := range map[string]struct {
		days []unit.Date // none: no day is given
		on   unit.Date
		why  error
	}{
		"today":                         {nil, today, nil},
		"on the day of the latest row":  {[]unit.Date{today - 3}, today - 3, nil},
		"tomorrow":                      {[]unit.Date{today + 1}, today + 1, nil},
		"the day after":                 {[]unit.Date{today + 2}, 0, invalid("date", "must not be after tomorrow")},
		"before the day of one of them": {[]unit.Date{today - 4}, 0, invalid("date", "must not be before the date of the row")},
	} {
		c.Date = nil
		for _, day := range test.days {
			c.Date = &day
		}
		got, err := c.Decide(open)
		require.Equal(t, test.why, err, sentence)
		if err == nil {
			require.Equal(t, mirrors(test.on), got, sentence)
		}
	}
	c.Date, c.Rows = nil, slices.Clone(c.Rows)
	c.Rows[1].Date = today + 1
	got, err := c.Decide(open)
	require.NoError(t, err)
	require.Equal(t, mirrors(today+1), got, "a row of tomorrow is reversed tomorrow")
	_, err = c.Decide(book.PostingContext{AccountOpen: true, LockedThrough: new(today + 1)})
	require.Equal(t, fault.Newf(fault.Conflict, "Books are locked through %s", today+1), err)
	_, err = c.Decide(book.PostingContext{})
	require.Equal(t, book.ErrNoAccount, err)
}

func TestExchangeMirrorsASideByTheOther(t *testing.T) {
	t.Parallel()
	in, out, err := bank.Ledger.Mirror(of(1, 2), of(3))
	require.NoError(t, err)
	require.Equal(t, of(3), in)
	require.Equal(t, of(1, 2), out)
}
