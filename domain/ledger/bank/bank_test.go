package bank_test

import (
	"testing"

	"bahi/domain/ledger/bank"
	"bahi/internal/test/booktest"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[bank.Entry, bank.Entry](t, bank.Ledger)
}
