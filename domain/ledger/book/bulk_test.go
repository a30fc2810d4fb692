package book_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// post asks for these rows.
func post(rows []bulkRow) postRows {
	c := postRows{Ledger: bank.Ledger, Account: 12, Today: today}
	for _, r := range rows {
		c.Rows = append(c.Rows, ask(r.Date, r.In, r.Out))
	}
	return c
}

func TestPostRows(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bank.Ledger.Bulks)
	rows := []bulkRow{{Date: today, In: of(1)}, {Date: today - 30, Out: of(2, 3)}, {Date: today, In: of(1)}}
	history.Case("rows in their order, alike ones too").When(post(rows)).Then(posted{Account: 12, Rows: rows})
	thousand := make([]bulkRow, 1000)
	for i := range thousand {
		thousand[i] = rows[0]
	}
	history.Case("1,000 rows").When(post(thousand)).Then(posted{Account: 12, Rows: thousand})
	history.Case("1,001 rows").When(post(slices.Concat(thousand, rows[:1]))).ThenFails(invalid("rows", "at most 1000 rows"))
	history.Case("no row").When(post(nil)).ThenFails(invalid("rows", "at least one row is needed"))
	for sentence, bad := range badRows {
		fields := []string{}
		for _, f := range bad.why.Fields {
			fields = append(fields, "rows[1]."+f.Field, f.Message)
		}
		history.Case("none when one is a row " + sentence).When(post([]bulkRow{rows[0], bad.row})).ThenFails(invalid(fields...))
	}
	history.Case("every bad row is named").
		When(post([]bulkRow{{Date: today}, rows[0], {Date: today + 2, Out: of(0)}})).
		ThenFails(invalid(
			"rows[0].in_entries", "at least one entry is needed, on either side",
			"rows[2].date", "must not be after tomorrow", "rows[2].out_entries[0].amount", "must be more than 0",
		))
	for i := range thousand {
		thousand[i].In = book.SideOf([]bank.Entry{{Description: book.Text(strings.Repeat("क", 300)), Amount: 1}})
	}
	history.Case("what one event may hold").When(post(thousand[:800])).Then(posted{Account: 12, Rows: thousand[:800]})
	history.Case("more than one event may hold").When(post(thousand)).
		ThenFails(invalid("rows", "more than 1,000,000 bytes together: send fewer at once"))
	history.And(posted{Account: 12, Rows: rows}).
		Case("ids are used once").When(post(rows)).ThenFails(fault.New(fault.Conflict, "Rows exist already"))
}

func TestBulkKnowsItsRowsOneByOne(t *testing.T) {
	t.Parallel()
	rows := []bulkRow{{Date: today, In: of(1)}, {Date: today - 30, Out: of(2, 3)}}
	history := eventtest.Given(t, bank.Ledger.Bulks, posted{Account: 12, Rows: rows})
	b := history.State()
	require.EqualValues(t, 1, b.Posted)
	require.Equal(t, []unit.Date{today, today - 30}, b.Dates())
	require.Equal(t, added{Account: 12, Date: today - 30, Out: of(2, 3)}, b.Added(1))
	require.NotZero(t, posted{Account: 12, Rows: rows}.Evolve(book.Bulk{}).Posted)

	require.Equal(t, unit.Money(5_00), b.Added(1).Out.Effect.Cash)
}

func TestABulkNamesEachRowInALockedPeriod(t *testing.T) {
	t.Parallel()
	b := book.Bulk{Account: 12, Rows: []bulkRow{{Date: today - 9}, {Date: today - 10}, {Date: today - 30}}}
	locked := today - 10
	open := book.Standing{AccountOpen: true, LockedThrough: &locked}
	why := "Books are locked through " + locked.String()
	require.Equal(t, &fault.Error{Kind: fault.Conflict, Detail: why, Fields: []fault.Field{
		{Field: "rows[1].date", Message: why}, {Field: "rows[2].date", Message: why},
	}}, b.RefusedBy(open))
	require.NoError(t, b.RefusedBy(book.Standing{AccountOpen: true}))
	require.Equal(t, book.ErrNoAccount, b.RefusedBy(book.Standing{LockedThrough: &locked}))
	b.Reverses = []int64{1, 2, 3}
	require.Equal(t, fault.New(fault.Conflict, why), b.RefusedBy(open), "the rows of a reversal have one date")
}
