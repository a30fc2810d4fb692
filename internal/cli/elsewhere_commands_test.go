package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

func TestPositionBetweenTwoEventsIsReadFrom(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, pgtest.Template(t, "migrated", migrations.Up))
	with.EventStore = esdbtest.Start(t, 1).URL()
	o := apptest.StartAs(t, with)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	require.Equal(t, "03-01 12.5", apptest.Balances(clerk, apptest.Ledger(account)))

	nowhere := o.Head() - 5
	for _, path := range []string{"/audit/events?from_position=%d", fmt.Sprintf("/bank-ledger/%d/statement.pdf?known_at=%%d", account)} {
		o.Operator().With("Bahi-Workspace", apptest.Home).GET(fmt.Sprintf(path, nowhere)).Status(200)
		o.Operator().With("Bahi-Workspace", apptest.Home).GET(fmt.Sprintf(path, o.Head()+2)).Status(422)
	}
	require.Empty(t, apptest.Balances(clerk, apptest.Ledger(account, "?known_at=", nowhere)), "a position between two events")
	v := o.Sign()
	v.Get(fmt.Sprintf("/events/%d", nowhere)).Is(404).Says("Event not found")
	v.Get("/").Is(200).Says(fmt.Sprintf("%d is the newest position", o.Head()))
}
