package book_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

func TestPostRows(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bank.Bulks)
	rows := []bulkRow{{Date: today, In: of(1)}, {Date: today - 30, Out: of(2, 3)}, {Date: today, In: of(1)}}
	given.Case("rows in their order, alike ones too").When(postRows{Account: 12, Today: today, Rows: rows}).Then(posted{Account: 12, Rows: rows})
	thousand := make([]bulkRow, 1000)
	for i := range thousand {
		thousand[i] = rows[0]
	}
	given.Case("1,000 rows").When(postRows{Account: 12, Today: today, Rows: thousand}).Then(posted{Account: 12, Rows: thousand})
	given.Case("1,001 rows").When(postRows{Account: 12, Today: today, Rows: slices.Concat(thousand, rows[:1])}).ThenFails(invalid("rows", "at most 1000 rows"))
	given.Case("no row").When(postRows{Account: 12, Today: today}).ThenFails(invalid("rows", "at least one row is needed"))
	for sentence, bad := range badRows {
		fields := []string{}
		for _, f := range bad.why.Fields {
			fields = append(fields, "rows[1]."+f.Field, f.Message)
		}
		given.Case("none when one is a row " + sentence).When(postRows{Account: 12, Today: today, Rows: []bulkRow{rows[0], bad.row}}).ThenFails(invalid(fields...))
	}
	given.Case("every bad row is named").
		When(postRows{Account: 12, Today: today, Rows: []bulkRow{{Date: today}, rows[0], {Date: today + 2, Out: of(0)}}}).
		ThenFails(invalid(
			"rows[0].in_entries", "at least one entry is needed, on either side",
			"rows[2].date", "must not be after tomorrow", "rows[2].out_entries[0].amount", "must be more than 0",
		))
	given.And(posted{Account: 12, Rows: rows}).
		Case("ids are used once").When(postRows{Account: 12, Today: today, Rows: rows}).ThenFails(fault.New(fault.Conflict, "Rows exist already"))
}

func TestBulkKnowsItsRowsOneByOne(t *testing.T) {
	t.Parallel()
	rows := []bulkRow{{Date: today, In: of(1)}, {Date: today - 30, Out: of(2, 3)}}
	given := eventtest.Given(t, bank.Bulks, posted{Account: 12, Rows: rows})
	b := given.State()
	require.EqualValues(t, 1, b.Posted)
	require.Equal(t, b, given.And(rowsRefused{Position: 1, Why: "Account not found"}).State())
	require.Equal(t, []unit.Date{today, today - 30}, b.Dates())
	require.Equal(t, added{Account: 12, Date: today - 30, Out: of(2, 3)}, b.Added(1))
	require.NotZero(t, posted{Account: 12, Rows: rows}.Evolve(bank.Bulk{}).Posted)

	changes := posted{Account: 12, Rows: rows}.BulkChange()
	require.Equal(t, []book.RowChanged{b.Added(0).RowChange(), b.Added(1).RowChange()}, changes)
	require.Equal(t, unit.Money(5_00), changes[1].Out.Effect.Cash)
	require.Empty(t, rowsRefused{Position: 1, Why: "Account not found"}.BulkChange())
}
