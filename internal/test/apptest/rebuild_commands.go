package apptest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
)

// Fill posts rows of a rupee each, ten in a transaction. They take a throttled build some time.
func Fill(clerk *apitest.Client, account int64, rows int) {
	for some := range slices.Chunk(slices.Repeat([]string{Deposit("2025-03-01", "1")}, rows), 10) {
		clerk.POST(Ledger(account, "/rows"), Bulk(some...)).Status(201)
	}
}

// Reads waits until a generation of the books is live.
func (o *Server) Reads(generation int) {
	o.T.Helper()
	require.Eventually(o.T, func() bool { return o.Projection("books").Generation == generation }, time.Minute, 10*time.Millisecond)
}
