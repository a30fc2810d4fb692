package book_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

// badRows are invalid rows, with the reasons.
var badRows = map[string]struct {
	row added
	why *fault.Error
}{
	"without entries":        {added{Date: today}, eventtest.Faults("in_entries", "at least one entry is needed, on either side")},
	"of the day after next":  {added{Date: today + 2, In: of(1)}, eventtest.Faults("date", "must not be after tomorrow")},
	"with an amount of zero": {added{Date: today, In: of(0)}, eventtest.Faults("in_entries[0].amount", "must be more than 0")},
	"with a negative amount": {added{Date: today, Out: of(5, -1)}, eventtest.Faults("out_entries[1].amount", "must be more than 0")},
	"with 501 entries": {added{Date: today, In: of(make([]int64, 501)...), Out: of(1)},
		eventtest.Faults("in_entries", "at most 500 entries")},
	"with a control character": {added{Date: today, In: texts("a\x07b")},
		eventtest.Faults("in_entries[0].description", "control characters are not allowed")},
	"with a line break": {added{Date: today, In: texts("a\nb")},
		eventtest.Faults("in_entries[0].description", "control characters are not allowed")},
	"with a long description": {
		added{Date: today, In: texts(strings.Repeat("म", 501))}, eventtest.Faults("in_entries[0].description", "at most 500 characters"),
	},
	"of more bytes than an event may have": {
		added{Date: today, In: texts(slices.Repeat([]string{strings.Repeat("म", 400)}, 450)...),
			Out: texts(slices.Repeat([]string{strings.Repeat("म", 400)}, 450)...)},
		eventtest.Faults("in_entries", "both sides together have more than 1,000,000 bytes"),
	},
	"with several faults": {
		added{Date: today + 2, In: book.SideOf([]entry{{Description: "\x00"}}), Out: of(0)},
		eventtest.Faults(
			"date", "must not be after tomorrow",
			"in_entries[0].description", "control characters are not allowed", "in_entries[0].amount", "must be more than 0",
			"out_entries[0].amount", "must be more than 0",
		),
	},
}

func TestAddRow(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows)
	both := texts("Sale, bill 118", "किराया ₹")
	for sentence, date := range map[string]unit.Date{
		"today": today, "tomorrow, for those east of us": today + 1, "long ago": day(1900, time.January, 1),
	} {
		history.Case(sentence).When(addRow{Ledger: bank.Ledger, Account: 12, Today: today,
			RowInput: ask(date, both, of())}).Then(added{Account: 12, Date: date, In: both})
	}
	history.Case("both sides").When(addRow{Ledger: bank.Ledger, Account: 12, Today: today, RowInput: ask(today, of(1, 1), of(2))}).
		Then(added{Account: 12, Date: today, In: of(1, 1), Out: of(2)})
	many := make([]int64, 500)
	for i := range many {
		many[i] = 9_999_999_999_999 // the largest possible amount
	}
	full := added{Account: 12, Date: today, In: of(many...), Out: of(many...)}
	history.Case("500 entries a side, of the largest amount").
		When(addRow{Ledger: bank.Ledger, Account: 12, Today: today, RowInput: ask(today, of(many...), of(many...))}).Then(full)
	require.Equal(t, "4999999999999500", full.In.Effect.Cash.String(), "it does not overflow")
	for sentence, bad := range badRows {
		history.Case("none " + sentence).When(addRow{Ledger: bank.Ledger, Account: 12, Today: today,
			RowInput: ask(bad.row.Date, bad.row.In, bad.row.Out)}).ThenFails(bad.why)
	}
	exists := fault.New(fault.Conflict, "Row exists already")
	there := history.And(added{Account: 12, Date: today, In: of(1)})
	there.Case("an id is used once").When(addRow{Ledger: bank.Ledger, Account: 12, Today: today,
		RowInput: ask(today, of(1), of())}).ThenFails(exists)
	there.And(rowDeleted{}).Case("also after a deletion").When(addRow{Ledger: bank.Ledger, Account: 12, Today: today,
		RowInput: ask(today, of(1), of())}).ThenFails(exists)
}

func TestEditRow(t *testing.T) {
	t.Parallel()
	edit := func(e edited) editRow {
		return editRow{Ledger: bank.Ledger, Account: 12, Today: today, RowInput: askFor(e)}
	}
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1, 2), Out: of(3)})
	for sentence, e := range map[string]edited{
		"the row moves":                  {Date: new(today - 400)},
		"a side is replaced":             {In: new(of(7))},
		"the order of entries counts":    {In: new(of(2, 1))},
		"a side is emptied":              {Out: new(of())},
		"all at once":                    {Date: new(today + 1), In: new(of(7)), Out: new(of(8, 9))},
		"one side goes, the other comes": {In: new(of()), Out: new(of(1))},
		"a description counts":           {Out: new(texts("Rent"))},
	} {
		history.Case(sentence).When(edit(e)).Then(e)
	}
	history.Case("only what changes is kept").
		When(edit(edited{Date: new(today), In: new(of(1, 2)), Out: new(of(4))})).Then(edited{Out: new(of(4))})
	history.Case("nothing asked").When(edit(edited{})).ThenNothing()
	history.Case("nothing changed").When(edit(edited{Date: new(today), In: new(of(1, 2)), Out: new(of(3))})).ThenNothing()
	history.And(edited{Out: new(of())}).Case("empty stays empty").When(edit(edited{Out: new(of())})).ThenNothing()
	history.Case("the last entry stays").When(edit(edited{In: new(of()), Out: new(of())})).
		ThenFails(eventtest.Faults("in_entries", "at least one entry is needed, on either side"))
	for sentence, bad := range badRows {
		history.Case("to none " + sentence).When(edit(edited{Date: &bad.row.Date, In: &bad.row.In, Out: &bad.row.Out})).ThenFails(bad.why)
	}

	eventtest.Given(t, bank.Ledger.Rows).Case("no row").When(edit(edited{Date: new(today)})).ThenFails(bank.Ledger.NoRow)
	history.And(rowDeleted{}).Case("a deleted row").When(edit(edited{})).ThenFails(bank.Ledger.NoRow)
	history.Case("another account's row is not there, be the edit right or wrong").
		When(editRow{Ledger: bank.Ledger, Account: 13, Today: today, RowInput: askFor(edited{In: new(of(0))})}).ThenFails(bank.Ledger.NoRow)
}

func TestEditIsJudgedByWhatTheRowThenIs(t *testing.T) {
	t.Parallel()
	eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today + 1, In: of(1)}).
		Case("a date that was fine when it was posted is fine no more on an earlier day").
		When(editRow{Ledger: bank.Ledger, Account: 12, Today: today - 1, RowInput: askFor(edited{In: new(of(2))})}).
		ThenFails(eventtest.Faults("date", "must not be after tomorrow"))
}

func TestDeleteRow(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	history.Case("a row").When(deleteRow{Ledger: bank.Ledger, Account: 12}).Then(rowDeleted{})
	history.Case("another account's row").When(deleteRow{Ledger: bank.Ledger, Account: 13}).ThenFails(bank.Ledger.NoRow)
	history.And(rowDeleted{}).Case("twice").When(deleteRow{Ledger: bank.Ledger, Account: 12}).ThenFails(bank.Ledger.NoRow)
	eventtest.Given(t, bank.Ledger.Rows).Case("no row").When(deleteRow{Ledger: bank.Ledger, Account: 0}).ThenFails(bank.Ledger.NoRow)
}

func TestRowFoldsToWhatItIs(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1), Out: of(2)})
	require.True(t, history.State().Exists())
	require.False(t, book.Row{}.Exists())
	moved := history.And(edited{Date: new(today - 1)}, edited{In: new(of())}).State()
	require.Equal(t, book.Row{Account: 12, Date: today - 1, In: of(), Out: of(2)}, moved)
	require.False(t, history.And(rowDeleted{}).State().Exists())
}

func TestAStepIsJudgedByBothEndsOfAMove(t *testing.T) {
	t.Parallel()
	lock := today - 1
	standing := book.PostingContext{AccountOpen: true, LockedThrough: &lock}
	locked := fault.New(fault.Conflict, "Books are locked through 2025-03-30")
	row := book.Row{Account: 12, Date: today, In: of(1)}
	change := func(r book.Row, f func(*book.Row)) book.Row { f(&r); return r }
	early := change(row, func(r *book.Row) { r.Date = lock })
	gone := change(row, func(r *book.Row) { r.Deleted = true })
	for sentence, c := range map[string]struct {
		before, after book.Row
		want          error
	}{
		"an added row":                   {book.Row{}, row, nil},
		"an added row, locked":           {book.Row{}, early, locked},
		"a move into the locked time":    {row, early, locked},
		"a move out of it":               {early, row, locked},
		"a deletion":                     {row, gone, nil},
		"a deletion, locked":             {early, change(early, func(r *book.Row) { r.Deleted = true }), locked},
		"a void row, locked":             {early, change(early, func(r *book.Row) { r.Void = true }), locked},
		"nothing":                        {early, early, nil},
		"a reversal of a locked row":     {early, change(early, func(r *book.Row) { r.ReversedBy = 40 }), nil},
		"a deleted row, and one like it": {gone, gone, nil},
	} {
		err := standing.RefusesStep(c.before, c.after)
		if c.want == nil {
			require.NoError(t, err, sentence)
			continue
		}
		require.ErrorIs(t, err, c.want, sentence)
	}
}

func TestStandingRefuses(t *testing.T) {
	t.Parallel()
	lock := today - 10
	locked := fault.New(fault.Conflict, "Books are locked through 2025-03-21")
	for sentence, c := range map[string]struct {
		standing book.PostingContext
		dates    []unit.Date
		want     error
	}{
		"nothing is locked":                {book.PostingContext{AccountOpen: true}, []unit.Date{0}, nil},
		"the day after the lock":           {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock + 1}, nil},
		"the locked day":                   {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock}, locked},
		"long before":                      {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{-25567}, locked},
		"a move into the locked time":      {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{today, lock}, locked},
		"a move out of it":                 {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{lock, today}, locked},
		"no date":                          {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, nil, nil},
		"no account":                       {book.PostingContext{}, []unit.Date{today}, book.ErrNoAccount},
		"no account is told before a lock": {book.PostingContext{LockedThrough: &lock}, []unit.Date{lock}, book.ErrNoAccount},
		"no account, and no date to lock":  {book.PostingContext{LockedThrough: &lock}, nil, book.ErrNoAccount},
		"one of many rows is locked": {book.PostingContext{AccountOpen: true, LockedThrough: &lock}, []unit.Date{today, today, lock},
			locked},
		"a lock on the first day of the PC": {book.PostingContext{AccountOpen: true, LockedThrough: new(unit.Date(0))}, []unit.Date{1}, nil},
	} {
		err := c.standing.CheckDates(c.dates...)
		if c.want == nil {
			require.NoError(t, err, sentence)
			continue
		}
		require.ErrorIs(t, err, c.want, sentence)
	}
}

func TestChangeTellsWhatBecameOfARow(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	require.Equal(t, "added", book.Change(book.Row{}, history.State()))
	for word, e := range map[string]rowEvent{
		"edited": edited{In: new(of(2))}, "deleted": rowDeleted{}, "voided": rowVoided{}, "reversed": reversed{By: 7},
	} {
		require.Equal(t, word, book.Change(history.State(), history.And(e).State()))
	}
}

func TestEventsOfARowThatIsNotThereChangeNothing(t *testing.T) {
	t.Parallel()
	gone := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)}, rowDeleted{})
	for _, history := range []*eventtest.History[book.Row]{eventtest.Given(t, bank.Ledger.Rows), gone} {
		for _, e := range []rowEvent{edited{Date: new(today - 1), In: new(of(2))}, rowDeleted{}, rowVoided{}} {
			require.Equal(t, history.State(), history.And(e).State(), "%T", e)
		}
	}
	row := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1)})
	require.Equal(t, row.State(), row.And(added{Account: 13, Date: today, In: of(2)}).State(), "a row begins once")
}

func TestEmptySide(t *testing.T) {
	t.Parallel()
	both := eventtest.Given(t, bank.Ledger.Rows, added{Account: 12, Date: today, In: of(1), Out: of(2)})
	noIn, noOut := emptySide{Ledger: bank.Ledger}, emptySide{Ledger: bank.Ledger, Out: true}
	both.Case("the IN side").When(noIn).Then(edited{In: new(of())})
	both.Case("the OUT side").When(noOut).Then(edited{Out: new(of())})
	one := both.And(edited{In: new(of())})
	one.Case("the only side").When(noOut).Then(rowDeleted{})
	one.Case("an empty one").When(noIn).ThenFails(fault.New(fault.NotFound, "Row has no in entries"))
	both.And(edited{Out: new(of())}).Case("the empty OUT side").When(noOut).ThenFails(fault.New(fault.NotFound, "Row has no out entries"))
	both.And(rowVoided{}).Case("of a void row").When(noIn).ThenFails(book.ErrVoid)
	both.And(rowDeleted{}).Case("of a deleted row").When(noIn).ThenFails(bank.Ledger.NoRow)
	both.Case("a row may be deleted without its account").When(deleteRow{Ledger: bank.Ledger}).Then(rowDeleted{})
}

// post requests these rows.
func post(rows []added) postRows {
	c := postRows{Ledger: bank.Ledger, Account: 12, Today: today}
	for _, r := range rows {
		c.Rows = append(c.Rows, ask(r.Date, r.In, r.Out))
	}
	return c
}

func TestPostRows(t *testing.T) {
	t.Parallel()
	open := book.PostingContext{AccountOpen: true}
	posts := func(sentence string, rows []added) {
		t.Helper()
		got, err := post(rows).Decide(open)
		require.NoError(t, err, sentence)
		require.Equal(t, rows, got, sentence)
	}
	refuses := func(sentence string, rows []added, why error) {
		t.Helper()
		_, err := post(rows).Decide(open)
		require.Equal(t, why, err, sentence)
	}
	rows := []added{{Account: 12, Date: today, In: of(1)}, {Account: 12, Date: today - 30, Out: of(2, 3)},
		{Account: 12, Date: today, In: of(1)}}
	posts("rows in their order, alike ones too", rows)
	thousand := slices.Repeat(rows[:1], 1000)
	posts("1,000 rows", thousand)
	refuses("1,001 rows", slices.Concat(thousand, rows[:1]), eventtest.Faults("rows", "at most 1000 rows"))
	refuses("no row", nil, eventtest.Faults("rows", "at least one row is needed"))
	for sentence, bad := range badRows {
		fields := []string{}
		for _, f := range bad.why.Fields {
			fields = append(fields, "rows[1]."+f.Field, f.Message)
		}
		refuses("none when one is a row "+sentence, []added{rows[0], bad.row}, eventtest.Faults(fields...))
	}
	refuses("every bad row is named", []added{{Date: today}, rows[0], {Date: today + 2, Out: of(0)}}, eventtest.Faults(
		"rows[0].in_entries", "at least one entry is needed, on either side",
		"rows[2].date", "must not be after tomorrow", "rows[2].out_entries[0].amount", "must be more than 0",
	))
	for i := range thousand {
		thousand[i].In = book.SideOf(slices.Repeat([]bank.Entry{{Description: book.Text(strings.Repeat("क", 500)), Amount: 1}}, 3))
	}
	posts("what one transaction may hold", thousand[:700])
	refuses("more than one transaction may hold", thousand, eventtest.Faults("rows", "more than 4,000,000 bytes together: send fewer at once"))
}

func TestEachRowInALockedPeriodIsNamed(t *testing.T) {
	t.Parallel()
	c := post([]added{{Date: today - 9, In: of(1)}, {Date: today - 10, In: of(1)}, {Date: today - 30, In: of(1)}})
	locked := today - 10
	why := "Books are locked through " + locked.String()
	_, err := c.Decide(book.PostingContext{AccountOpen: true, LockedThrough: &locked})
	require.Equal(t, &fault.Error{Kind: fault.Conflict, Detail: why, Fields: []fault.Field{
		{Field: "rows[1].date", Message: why}, {Field: "rows[2].date", Message: why},
	}}, err)
	_, err = c.Decide(book.PostingContext{LockedThrough: &locked})
	require.Equal(t, book.ErrNoAccount, err)
	c.Rows[1].In = book.SideInput{}
	_, err = c.Decide(book.PostingContext{AccountOpen: true, LockedThrough: &locked})
	require.Equal(t, eventtest.Faults("rows[1].in_entries", "at least one entry is needed, on either side", "rows[1].date", why,
		"rows[2].date", why), err)
}

// locked is the conflict of a row's date with the lock.
func locked(through unit.Date) error {
	why := "Books are locked through " + through.String()
	return &fault.Error{Kind: fault.Conflict, Detail: why, Fields: []fault.Field{{Field: "date", Message: why}}}
}

// with is a conflict that names a row.
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
		Today: today, Rows: []book.LedgerRow{
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
		"the day after":                 {[]unit.Date{today + 2}, 0, eventtest.Faults("date", "must not be after tomorrow")},
		"before the day of one of them": {[]unit.Date{today - 4}, 0, eventtest.Faults("date", "must not be before the date of the row")},
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
	require.Equal(t, locked(today+1), err)
	_, err = c.Decide(book.PostingContext{})
	require.Equal(t, book.ErrNoAccount, err)
}
