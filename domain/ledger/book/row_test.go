package book_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// badRows are rows that cannot be posted, and why.
var badRows = map[string]struct {
	row bulkRow
	why *fault.Error
}{
	"without entries":          {bulkRow{Date: today}, invalid("in_entries", "at least one entry is needed, on either side")},
	"of the day after next":    {bulkRow{Date: today + 2, In: of(1)}, invalid("date", "must not be after tomorrow")},
	"with an amount of zero":   {bulkRow{Date: today, In: of(0)}, invalid("in_entries[0].amount", "must be more than 0")},
	"with a negative amount":   {bulkRow{Date: today, Out: of(5, -1)}, invalid("out_entries[1].amount", "must be more than 0")},
	"with 501 entries":         {bulkRow{Date: today, In: of(make([]int64, 501)...), Out: of(1)}, invalid("in_entries", "at most 500 entries")},
	"with a control character": {bulkRow{Date: today, In: texts("a\x07b")}, invalid("in_entries[0].description", "control characters are not allowed")},
	"with a line break":        {bulkRow{Date: today, In: texts("a\nb")}, invalid("in_entries[0].description", "control characters are not allowed")},
	"with a long description": {
		bulkRow{Date: today, In: texts(strings.Repeat("म", 501))}, invalid("in_entries[0].description", "at most 500 characters"),
	},
	"with several faults": {
		bulkRow{Date: today + 2, In: []entry{{Description: "\x00"}}, Out: of(0)},
		invalid(
			"date", "must not be after tomorrow",
			"in_entries[0].description", "control characters are not allowed", "in_entries[0].amount", "must be more than 0",
			"out_entries[0].amount", "must be more than 0",
		),
	},
}

func TestAddRow(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Rows)
	both := texts("Sale, bill 118", "किराया ₹")
	for sentence, date := range map[string]unit.Date{
		"today": today, "tomorrow, for those east of us": today + 1, "long ago": day(1900, time.January, 1),
	} {
		given.Case(sentence).When(addRow{Account: 12, Today: today, Date: date, In: both}).Then(added{Account: 12, Date: date, In: both})
	}
	given.Case("both sides").When(addRow{Account: 12, Today: today, Date: today, In: of(1, 1), Out: of(2)}).
		Then(added{Account: 12, Date: today, In: of(1, 1), Out: of(2)})
	many := make([]int64, 500)
	for i := range many {
		many[i] = 9_999_999_999_999 // the largest amount there is
	}
	full := added{Account: 12, Date: today, In: of(many...), Out: of(many...)}
	given.Case("500 entries a side, of the largest amount").
		When(addRow{Account: 12, Today: today, Date: today, In: of(many...), Out: of(many...)}).Then(full)
	require.Equal(t, "4999999999999500", full.RowChange().In.Effect.Cash.String(), "it does not overflow")
	for sentence, bad := range badRows {
		given.Case("none " + sentence).When(addRow{Account: 12, Today: today, Date: bad.row.Date, In: bad.row.In, Out: bad.row.Out}).ThenFails(bad.why)
	}
	exists := fault.New(fault.Conflict, "Row exists already")
	there := given.And(added{Account: 12, Date: today, In: of(1)})
	there.Case("an id is used once").When(addRow{Account: 12, Today: today, Date: today, In: of(1)}).ThenFails(exists)
	there.And(rowDeleted{}).Case("also after a deletion").When(addRow{Account: 12, Today: today, Date: today, In: of(1)}).ThenFails(exists)
}

func TestEditRow(t *testing.T) {
	t.Parallel()
	edit := func(e edited) editRow {
		return editRow{Account: 12, Today: today, Missing: bank.ErrNoRow, Date: e.Date, In: e.In, Out: e.Out}
	}
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1, 2), Out: of(3)})
	for sentence, e := range map[string]edited{
		"the row moves":                  {Date: new(today - 400)},
		"a side is replaced":             {In: new(of(7))},
		"the order of entries counts":    {In: new(of(2, 1))},
		"a side is emptied":              {Out: new([]entry{})},
		"all at once":                    {Date: new(today + 1), In: new(of(7)), Out: new(of(8, 9))},
		"one side goes, the other comes": {In: new([]entry{}), Out: new(of(1))},
		"a description counts":           {Out: new(texts("Rent"))},
	} {
		given.Case(sentence).When(edit(e)).Then(e)
	}
	given.Case("only what changes is kept").
		When(edit(edited{Date: new(today), In: new(of(1, 2)), Out: new(of(4))})).Then(edited{Out: new(of(4))})
	given.Case("nothing asked").When(edit(edited{})).ThenNothing()
	given.Case("nothing changed").When(edit(edited{Date: new(today), In: new(of(1, 2)), Out: new(of(3))})).ThenNothing()
	given.And(edited{Out: new([]entry{})}).Case("empty stays empty").When(edit(edited{Out: new([]entry{})})).ThenNothing()
	given.Case("the last entry stays").When(edit(edited{In: new([]entry{}), Out: new([]entry{})})).
		ThenFails(invalid("in_entries", "at least one entry is needed, on either side"))
	for sentence, bad := range badRows {
		given.Case("to none " + sentence).When(edit(edited{Date: &bad.row.Date, In: &bad.row.In, Out: &bad.row.Out})).ThenFails(bad.why)
	}

	eventtest.Given(t, bank.Rows).Case("no row").When(edit(edited{Date: new(today)})).ThenFails(bank.ErrNoRow)
	given.And(rowDeleted{}).Case("a deleted row").When(edit(edited{})).ThenFails(bank.ErrNoRow)
	given.Case("another account's row is not there, be the edit right or wrong").
		When(editRow{Account: 13, Today: today, Missing: bank.ErrNoRow, In: new(of(0))}).ThenFails(bank.ErrNoRow)
}

func TestEditIsJudgedByWhatTheRowThenIs(t *testing.T) {
	t.Parallel()
	eventtest.Given(t, bank.Rows, added{Account: 12, Date: today + 1, In: of(1)}).
		Case("a date that was fine when it was posted is fine no more on an earlier day").
		When(editRow{Account: 12, Today: today - 1, Missing: bank.ErrNoRow, In: new(of(2))}).
		ThenFails(invalid("date", "must not be after tomorrow"))
}

func TestDeleteRow(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1)})
	given.Case("a row").When(deleteRow{Account: 12, Missing: bank.ErrNoRow}).Then(rowDeleted{})
	given.Case("another account's row").When(deleteRow{Account: 13, Missing: bank.ErrNoRow}).ThenFails(bank.ErrNoRow)
	given.And(rowDeleted{}).Case("twice").When(deleteRow{Account: 12, Missing: bank.ErrNoRow}).ThenFails(bank.ErrNoRow)
	eventtest.Given(t, bank.Rows).Case("no row").When(deleteRow{Account: 0, Missing: bank.ErrNoRow}).ThenFails(bank.ErrNoRow)
}

func TestRowFoldsToWhatItIs(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Rows, added{Account: 12, Date: today, In: of(1), Out: of(2)})
	require.True(t, given.State().Exists())
	require.False(t, bank.Row{}.Exists())
	moved := given.And(edited{Date: new(today - 1)}, edited{In: new([]entry{})}).State()
	require.Equal(t, bank.Row{Account: 12, Date: today - 1, In: []entry{}, Out: of(2)}, moved)
	require.False(t, given.And(rowDeleted{}).State().Exists())
	require.Equal(t, given.State(), given.And(rowRefused{Position: 1, Why: "Account not found"}).State())
}

func TestDatesOfAStepAreBothEndsOfAMove(t *testing.T) {
	t.Parallel()
	row := bank.Row{Account: 12, Date: today, In: of(1)}
	moved, gone := row, row
	moved.Date = today - 1
	gone.Deleted = true
	for _, c := range []struct {
		before, after bank.Row
		want          []unit.Date
	}{
		{bank.Row{}, row, []unit.Date{today}},
		{row, row, []unit.Date{today}},
		{row, moved, []unit.Date{today, today - 1}},
		{row, gone, []unit.Date{today}},
		{gone, gone, nil},
		{bank.Row{}, bank.Row{}, nil},
	} {
		require.Equal(t, c.want, book.Dates(c.before, c.after))
	}
}

func TestStandingRefuses(t *testing.T) {
	t.Parallel()
	lock := today - 10
	locked := fault.New(fault.Conflict, "Books are locked through 2025-03-21")
	for sentence, c := range map[string]struct {
		standing book.Standing
		dates    []unit.Date
		want     error
	}{
		"nothing is locked":                 {book.Standing{AccountOpen: true}, []unit.Date{0}, nil},
		"the day after the lock":            {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock + 1}, nil},
		"the locked day":                    {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock}, locked},
		"long before":                       {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{-25567}, locked},
		"a move into the locked time":       {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{today, lock}, locked},
		"a move out of it":                  {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock, today}, locked},
		"no date":                           {book.Standing{AccountOpen: true, LockedThrough: &lock}, nil, nil},
		"no account":                        {book.Standing{}, []unit.Date{today}, book.ErrNoAccount},
		"no account is told before a lock":  {book.Standing{LockedThrough: &lock}, []unit.Date{lock}, book.ErrNoAccount},
		"no account, and no date to lock":   {book.Standing{LockedThrough: &lock}, nil, book.ErrNoAccount},
		"one of many rows is locked":        {book.Standing{AccountOpen: true, LockedThrough: &lock}, []unit.Date{today, today, lock}, locked},
		"a lock on the first day of the PC": {book.Standing{AccountOpen: true, LockedThrough: new(unit.Date(0))}, []unit.Date{1}, nil},
	} {
		err := c.standing.Refuses(c.dates...)
		if c.want == nil {
			require.NoError(t, err, sentence)
			continue
		}
		require.ErrorIs(t, err, c.want, sentence)
	}
}

func TestRowChanges(t *testing.T) {
	t.Parallel()
	in := &book.Side{Entries: of(1, 2), Effect: book.Effect{Cash: 3_00}}
	none := &book.Side{Entries: []entry{}}
	for _, c := range []struct {
		e    rowEvent
		want book.RowChanged
	}{
		{added{Account: 12, Date: today, In: of(1, 2)}, book.RowChanged{Op: book.Add, Account: 12, Date: &today, In: in, Out: none}},
		{edited{Date: &today}, book.RowChanged{Op: book.Edit, Date: &today}},
		{edited{In: new(of(1, 2)), Out: new([]entry{})}, book.RowChanged{Op: book.Edit, In: in, Out: none}},
		{rowDeleted{}, book.RowChanged{Op: book.Delete}},
		{rowVoided{}, book.RowChanged{Op: book.Void}},
		{announced{Bulk: 7}, book.RowChanged{Op: book.Announce, Reversal: 7}},
		{dropped{Bulk: 7}, book.RowChanged{Op: book.Drop, Reversal: 7}},
		{reversed{By: 7}, book.RowChanged{Op: book.Reverse}},
		{rowRefused{Position: 3, Why: "Account not found"}, book.RowChanged{Op: book.Refuse}},
	} {
		change, ok := c.e.(book.RowChange)
		require.True(t, ok)
		require.Equal(t, c.want, change.RowChange(), "%T", c.e)
	}
}

func TestEffectsAddUp(t *testing.T) {
	t.Parallel()
	a, b := book.Effect{Cash: 5, Fine: 7}, book.Effect{Cash: 2, Fine: 9}
	require.Equal(t, book.Effect{Cash: 7, Fine: 16}, a.Plus(b))
	require.Equal(t, book.Effect{Cash: 3, Fine: -2}, a.Minus(b))
}
