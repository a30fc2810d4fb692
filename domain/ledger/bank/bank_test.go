package bank_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/internal/test/booktest"
)

func TestEntryCountsItsAmountInCash(t *testing.T) {
	t.Parallel()
	require.Equal(t, book.Effect{Cash: 125_050}, bank.Entry{Description: "Sale", Amount: 125_050}.Effect())
}

func TestEntryIsChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []bank.Entry{{Amount: 1}, {Description: book.Text(strings.Repeat("₹", 500)), Amount: 1},
		{Description: "", Amount: 999_999_999_999_999}} {
		require.Empty(t, good.Check())
	}
	amount := fault.Field{Field: "amount", Message: "must be more than 0"}
	for _, c := range []struct {
		bad  bank.Entry
		want []fault.Field
	}{
		{bank.Entry{}, []fault.Field{amount}},
		{bank.Entry{Amount: -1}, []fault.Field{amount}},
		{bank.Entry{Description: book.Text(strings.Repeat("₹", 501)), Amount: 1},
			[]fault.Field{{Field: "description", Message: "at most 500 characters"}}},
		{bank.Entry{Description: "a\u0085", Amount: 0},
			[]fault.Field{{Field: "description", Message: "control characters are not allowed"}, amount}},
	} {
		require.Equal(t, c.want, c.bad.Check())
	}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[bank.Entry, bank.Entry](t, bank.Ledger)
}
