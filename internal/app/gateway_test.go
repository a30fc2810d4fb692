package app_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/journal"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
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
	err = log.Append(t.Context(), "orders-1", -1, []event.New{{ID: uuid.New(), Type: "OrderPlaced", Data: []byte(`{}`), Meta: []byte(`{}`)}})
	require.ErrorContains(t, err, "BAHI_GATEWAY_WRITE")
}

func TestEventsFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	e := func(kind, data, meta string) event.New {
		return event.New{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(meta)}
	}
	for stream, c := range map[string]struct {
		event event.New
		why   string
	}{
		"orders-1":  {e("OrderPlaced", `[]`, `{}`), ""},
		"orders-3":  {e("OrderPlaced", `[]`, `{"by":"\u0000"}`), "the metadata of OrderPlaced have a NUL in them, or half of a character"},
		"orders-4":  {e("OrderPlaced", `[]`, `{"by":"\\\uD83d"}`), "half of a character"},
		"orders-5":  {e("OrderPlaced", `["\u0000"]`, `{"by":"\ud83d\uDE00\\u0000\u0041"}`), ""},
		"orders-6":  {e("OrderPlaced", `{}`, `{"more":1}`), `"more", which only transactions of Bahi have`},
		"bank-1":    {e("OrderPlaced", `{}`, `{}`), "streams bank-… hold events of Bahi, and OrderPlaced is none"},
		"orders-2":  {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "BankAccountRenamed belongs in streams bank-…, not in orders-2"},
		"bank-2":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), ""},
		"bank-3":    {e("BankAccountRenamed", `{"from":"HDFC","to":7}`, `{"schema":1}`), "BankAccountRenamed cannot be read: json"},
		"bank-4":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{}`), "schema version 0 is unknown"},
		"bank-5":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":2}`), "schema version 2 is unknown"},
		"bank-6":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `[]`), "BankAccountRenamed cannot be read: json"},
		"bankrow-1": {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "not in bankrow-1"},

		// Values that Go reads and SQL does not would change the books and be missing from the trail.
		"bank-7":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"of":0}`), "no event is at position 0"},
		"bank-8":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"of":3,"Of":0}`), `"Of" is called "of"`},
		"bank-9":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"reaſon":"x"}`), `"reaſon" is called "reason"`},
		"bank-10":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"workspace":"0195E8A0-7C1E-7000-8000-0000000000AA"}`), `the workspace is written "0195e8a0-7c1e-7000-8000-0000000000aa"`},
		"bank-11":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"workspace":"0195e8a0-7c1e-7000-8000-0000000000aa","$correlationId":"A"}`), ""},
		"bank-12":    {e("BankAccountRenamed", `{"from":"HDFC","To":"SBI"}`, `{"schema":1}`), `has the name "To"`},
		"bank-13":    {e("BankAccountRenamed", `{"from":"HDFC","to":"\u0000"}`, `{"schema":1}`), "has a NUL in it"},
		"bank-14":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"\u006dore":1}`), "more is set, which only transactions of Bahi have"},
		"bankbulk-1": {e("BankRowsPosted", `{"account":1,"rows":[{"date":"2025-03-01","in_entries":[{"Amount":5}]}]}`, `{"schema":1}`), `has the name "Amount"`},
		"bankbulk-2": {e("BankRowsPosted", `{"account":1,"rows":[{"date":"2025-03-01","in_entries":[{"amount":5}]}]}`, `{"schema":1}`), ""},
	} {
		err := app.CheckForeign(stream, c.event)
		if c.why == "" {
			require.NoError(t, err, "%s", stream)
		} else {
			require.ErrorContains(t, err, c.why, "%s", stream)
		}
	}
}
