package main_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	ledgertables "bahi/projections/ledger"
)

func TestARebuildBesideTheServerIsTakenOver(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	for i := range 5 {
		require.NoError(t, o.sys.Build(ledgertables.Books).Run(t.Context()))
		position := clerk.POST(ledger(account), deposit("2025-03-01", "1")).Status(201).Header("Bahi-Position")
		a := clerk.With("Bahi-Min-Position", position).GET("/banks").Status(200)
		require.Equal(t, strconv.Itoa(i+1), clerkBanks(a)[0].Balance.String())
	}
}
