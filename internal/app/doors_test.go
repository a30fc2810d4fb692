package app_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

// openGateway serves a system's log in this process, and returns a function that connects with a key.
func openGateway(o *apptest.Server, write bool) func(key string) (journal.Server, error) {
	o.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(o.T, err)
	door, err := app.GatewaySettings{GatewayAddr: listener.Addr().String(), GatewayWrite: write}.Gateway(o.Sys, apptest.OperatorKey)
	require.NoError(o.T, err)
	worktest.Background(o.T, func(ctx context.Context) error { return door.Serve(ctx, listener) })
	authority := filepath.Join(o.Sys.Settings.Data, "gateway", "ca.crt")
	return func(key string) (journal.Server, error) {
		at := "esdb://" + url.UserPassword("bahi", key).String() + "@" + listener.Addr().String() + "?tlsCAFile=" + url.QueryEscape(authority)
		server, err := journal.Connect(at, slog.New(slog.DiscardHandler))
		require.NoError(o.T, err)
		o.T.Cleanup(server.Close)
		_, _, err = server.Last(o.T.Context(), "orders-1")
		return server, err
	}
}

func TestNoListenerWritesToALogWithoutItsTail(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	outside, err := openGateway(o, true)(apptest.OperatorKey)
	require.NoError(t, err)

	account := apptest.Open(o.Operator(), "HDFC")
	apptest.Post(o.Operator(), account, apptest.Deposit("2025-03-01", "100"))
	require.NoError(t, o.Sys.UntilSigned(t.Context()))
	o.Sql(`delete from audit.checkpoint where position = (select max(position) from log.event)`)
	o.Sql(`delete from log.event where position = (select max(position) from log.event)`)
	require.Eventually(t, func() bool { return o.Sys.Signer.Lost() != "" }, time.Minute, 10*time.Millisecond)

	const why = "nothing is written until an operator has accepted it"
	head := o.Head()
	o.Operator().POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "100")).
		Problem(503, "The log lost events that were signed for: "+why)
	_, err = o.Sys.Commands.Numbers(t.Context(), "rows", 100_000)
	require.ErrorContains(t, err, why)
	order := func() eventstore.Transaction {
		e := event.Proposed{ID: uuid.New(), Type: "OrderPlaced", Data: []byte(`{}`), Meta: []byte(`{}`)}
		return eventstore.To("orders-1", eventstore.NoStream, e)
	}
	for _, r := range o.Sys.Commands.AppendEach(t.Context(), []eventstore.Transaction{order(), order()}) {
		require.ErrorContains(t, r.Err, why)
	}
	require.ErrorContains(t, outside.Append(t.Context(), "orders-1", -1, order().Writes[0].Events), why)
	require.Equal(t, head, o.Head())
}

func TestTheGatewayIsForOperatorsAndCountsWrongKeysWithHTTP(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.Limits = api.Limits{}
	for group := range api.DefaultLimits() {
		with.Outside.Limits[group] = ratelimit.Limit{}
	}
	with.Outside.Limits[api.GroupRefused] = ratelimit.Limit{Requests: 3, Per: time.Hour}
	o := apptest.StartAs(t, with)
	open := openGateway(o, false)
	apitest.New(t, o.URL, "bahi_nobody").GET("/banks").Status(401)
	member := o.Key(o.Home, `{"ledger":"read"}`)
	_, err := open(member.Key)
	require.ErrorContains(t, err, "permission operator")
	_, err = open("bahi_nobody")
	require.ErrorContains(t, err, "no such API key")
	_, _ = open("bahi_nobody") // each call tries the key more than once
	_, err = open("bahi_nobody")
	require.ErrorContains(t, err, "too many wrong API keys")
	apitest.New(t, o.URL, "bahi_nobody").GET("/banks").Problem(429, "Too many requests")
	log, err := open(apptest.OperatorKey)
	require.NoError(t, err, "a valid key is never refused for wrong ones")
	o.Operator().GET("/banks").Status(200)
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
