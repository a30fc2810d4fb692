package cli_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/projections/ledgerproj"
)

func TestARebuildBesideTheServerIsTakenOver(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	for i := range 5 {
		require.NoError(t, o.Sys.Build(ledgerproj.Books).Run(t.Context()))
		position := clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201).Header("Bahi-Position")
		a := clerk.With("Bahi-Min-Position", position).GET("/banks").Status(200)
		require.Equal(t, strconv.Itoa(i+1), apptest.ClerkBanks(a)[0].Balance.String())
	}
}
