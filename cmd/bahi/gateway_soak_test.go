//go:build soak

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every test of the bank ledger over HTTP, and of what all operations share, with its log in another process.
func TestTheWholeBankLedgerIsKeptInALogOfAnotherProcess(t *testing.T) {
	t.Parallel()
	if elsewhere {
		return // this is that run
	}
	var names []string
	for _, file := range []string{"bank_accounts", "bank_bulk", "bank_corrections", "bank_past", "bank_rows", "bank_statement", "books_lock",
		"conditions", "dry_run", "freshness", "idempotency"} {
		text, err := os.ReadFile(file + "_test.go")
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	require.Greater(t, len(names), 30)
	onGateway(t, "^("+strings.Join(names, "|")+")$")
}
