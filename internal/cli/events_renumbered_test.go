package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/internal/cli/events"
)

func TestRenumberedEventsNameNewPositions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	var i events.Importing
	for n, e := range []event.Stored{
		{Position: 977, Type: "BankRowsPosted", Data: []byte(`{}`), Meta: []byte(`{"schema":1}`), At: at},
		{Position: 1954, Type: "OrderPlaced", Data: []byte(`no JSON`), At: at.Add(-time.Hour)}, // another program's
		{Position: 2931, Type: "BankRowAdded", Data: []byte(`{"of":977}`), Meta: []byte(`{"schema":1,"of":977}`), At: at.Add(time.Hour)},
		{Position: 3908, Type: "BankRowRefused", Data: []byte(`{"position":2931}`), Meta: []byte(`{}`), At: at.Add(time.Hour)},
	} {
		got, err := i.Renumbered(e)
		require.NoError(t, err)
		require.EqualValues(t, n+1, got.Position)
		want := e
		want.Position = got.Position
		switch n {
		case 1:
			want.At = at // time never goes back in a Postgres log
		case 2:
			want.Meta = []byte(`{"schema":1,"of":1}`)
		case 3:
			want.Data = []byte(`{"position":3}`)
		}
		require.Equal(t, want, got)
	}
}
