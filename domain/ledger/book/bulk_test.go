package book_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
)

// post asks for these rows.
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
	refuses("1,001 rows", slices.Concat(thousand, rows[:1]), invalid("rows", "at most 1000 rows"))
	refuses("no row", nil, invalid("rows", "at least one row is needed"))
	for sentence, bad := range badRows {
		fields := []string{}
		for _, f := range bad.why.Fields {
			fields = append(fields, "rows[1]."+f.Field, f.Message)
		}
		refuses("none when one is a row "+sentence, []added{rows[0], bad.row}, invalid(fields...))
	}
	refuses("every bad row is named", []added{{Date: today}, rows[0], {Date: today + 2, Out: of(0)}}, invalid(
		"rows[0].in_entries", "at least one entry is needed, on either side",
		"rows[2].date", "must not be after tomorrow", "rows[2].out_entries[0].amount", "must be more than 0",
	))
	for i := range thousand {
		thousand[i].In = book.SideOf([]bank.Entry{{Description: book.Text(strings.Repeat("क", 300)), Amount: 1}})
	}
	posts("what one transaction may hold", thousand[:800])
	refuses("more than one transaction may hold", thousand, invalid("rows", "more than 1,000,000 bytes together: send fewer at once"))
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
}
