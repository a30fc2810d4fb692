// Package closing computes the digest of the closing balances of a workspace's books (docs/books.md, "Closed periods").
package closing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"bahi/domain/unit"
)

// Balance is the balance of an account at the end of a day. Rows is the number of its rows dated on or before the day,
// without deleted ones.
type Balance struct {
	Ledger  string
	Account int64
	Cash    unit.Money
	Fine    unit.Grams
	Rows    int64
}

// Digest returns the SHA-256 digest of the balances of all accounts in lowercase hex. Their order does not matter.
func Digest(balances []Balance) string {
	sorted := slices.SortedFunc(slices.Values(balances), func(a, b Balance) int { return cmp.Compare(a.Account, b.Account) })
	text := []byte("bahi-closing/v1\n")
	for _, b := range sorted {
		text = append(text, b.Ledger...)
		for _, n := range []int64{b.Account, int64(b.Cash), int64(b.Fine), b.Rows} {
			text = strconv.AppendInt(append(text, ' '), n, 10)
		}
		text = append(text, '\n')
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
