package http_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestAReadSeesWhatWasAnsweredBeforeAndThePositionThatItNames(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	var position string
	for i := range 30 {
		position = clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201).Header("Bahi-Position")
		read := clerk.GET("/banks").Status(200)
		require.Equal(t, strconv.Itoa(i+1), apptest.ClerkBanks(read)[0].Balance.String())
		require.Equal(t, position, read.Header("Bahi-Position"))
		require.Empty(t, read.Header("Warning"))
	}
	for _, path := range []string{"/banks", apptest.Ledger(account), apptest.At(account, 1), apptest.At(account, 1, "/history"),
		apptest.Ledger(account, "/statement.pdf"), "/books/lock", fmt.Sprintf("/bank/%d", account)} {
		a := clerk.With("Bahi-Min-Position", position).GET(path).Status(200)
		require.Equal(t, position, a.Header("Bahi-Position"), path)
		clerk.With("Bahi-Min-Position", strconv.FormatInt(o.Head()+1, 10)).GET(path).Problem(422, "The log does not reach that position yet")
		clerk.With("Bahi-Min-Position", "18446744073709551615").GET(path).Problem(422, "The log does not reach that position yet")
	}
	for _, bad := range []string{"-1", "+1", "1.0", "x", "18446744073709551616", " "} {
		clerk.With("Bahi-Min-Position", bad).GET("/banks").Problem(422, "Validation error", "Bahi-Min-Position", "expected a position in the log")
	}
	clerk.With("Bahi-Min-Position", "0").GET("/banks").Status(200)
}
