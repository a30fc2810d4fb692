package app_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/journal"
	"bahi/internal/app"
	"bahi/internal/test/apptest"
)

// client returns a client of a gateway.
func client(t *testing.T, address string) journal.Server {
	t.Helper()
	server, err := journal.Connect(address, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

func TestTheGatewayIsForOperatorsOnly(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+apptest.Database(t))
	g := apptest.ServeGateway(t, cmd, data)
	operator := g.Client()
	var member apptest.ApiKey
	operator.POST("/api/v1/api-keys", `{"name":"reader","permissions":{"ledger":"read"}}`).Status(201).JSON(&member)

	for key, why := range map[string]string{member.Key: "permission operator", "bahi_nobody": "no such API key"} {
		_, _, err := client(t, g.Connection(key)).Last(t.Context(), "apikey-"+member.ID)
		require.ErrorContains(t, err, why)
	}
	log := client(t, g.Connection(apptest.OperatorKey))
	_, found, err := log.Last(t.Context(), "apikey-"+member.ID)
	require.NoError(t, err)
	require.True(t, found, "the gateway serves the same log")
	err = log.Append(t.Context(), "orders-1", -1,
		[]event.Proposed{{ID: uuid.New(), Type: "OrderPlaced", Data: []byte(`{}`), Meta: []byte(`{}`)}})
	require.ErrorContains(t, err, "BAHI_GATEWAY_WRITE")
}

func TestEventsFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	e := func(kind, data, meta string) event.Proposed {
		return event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(meta)}
	}
	for stream, c := range map[string]struct {
		event event.Proposed
		why   string
	}{
		"orders-1": {e("OrderPlaced", `[]`, `{}`), ""},
		"orders-3": {e("OrderPlaced", `[]`, `{"by":"\u0000"}`), "the metadata of OrderPlaced contain a NUL or an unpaired surrogate"},
		"orders-4": {e("OrderPlaced", `[]`, `{"by":"\\\uD83d"}`), "unpaired surrogate"},
		"orders-5": {e("OrderPlaced", `["\u0000"]`, `{"by":"\ud83d\uDE00\\u0000\u0041"}`), ""},
		"orders-6": {e("OrderPlaced", `{}`, `{"more":1}`), `"more", which is reserved for transactions of Bahi`},
		"bank-1":   {e("OrderPlaced", `{}`, `{}`), "only Bahi appends to streams bank-…"},
		"bank-2":   {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "only Bahi appends to streams bank-…"},
		"orders-2": {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "BankAccountRenamed is an event of Bahi"},
	} {
		err := app.CheckForeign(stream, c.event)
		if c.why == "" {
			require.NoError(t, err, "%s", stream)
		} else {
			require.ErrorContains(t, err, c.why, "%s", stream)
		}
	}
}
