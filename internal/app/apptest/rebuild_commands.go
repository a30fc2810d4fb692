package apptest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// FillOnce posts rows of a rupee each in one bulk: twice as many events, which take a throttled build some time.
func FillOnce(clerk *apitest.Client, account int64, rows int) {
	clerk.POST(Ledger(account, "/rows"), Bulk(slices.Repeat([]string{Deposit("2025-03-01", "1")}, rows)...)).Status(201)
}

// Reads waits until a generation of the books is live.
func (o *Office) Reads(generation int) {
	o.T.Helper()
	require.Eventually(o.T, func() bool { return o.Projection("books").Generation == generation }, time.Minute, 10*time.Millisecond)
}
