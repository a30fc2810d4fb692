package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
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
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
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

func TestTheGreatestRequestsAreStoredOrRefused(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.AllowedPhones = []string{"+91 98123 45678"}
	o := apptest.StartAs(t, with)
	t.Run("rows", func(t *testing.T) { storesTheGreatestBulk(t, o) })
	t.Run("reasons", func(t *testing.T) { judgesDryRunsBySize(t, o) })
	t.Run("draft", func(t *testing.T) { storesTheGreatestDraft(t, o) })
	t.Run("chat", func(t *testing.T) { storesTheGreatestChatMessage(t, o) })
}

// storesTheGreatestBulk posts 1,000 rows with descriptions of 500 characters, as many of three bytes as fit.
func storesTheGreatestBulk(t *testing.T, o *apptest.Server) {
	t.Helper()
	clerk := o.Clerk(o.Home).With("Bahi-Reason", url.PathEscape(strings.Repeat("🪙", 500)))
	account := apptest.Open(clerk, "HDFC")
	described := func(i, wide int) string {
		if i < wide {
			return strings.Repeat("म", 500)
		}
		return strings.Repeat("m", 500)
	}
	bulk := func(wide int) string {
		rows := make([]string, 1000)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"date":"2025-03-01","in_entries":[{"amount":1,"description":%q}]}`, described(i, wide))
		}
		return apptest.Bulk(rows...)
	}
	path := apptest.Ledger(account, "/rows")
	first := sort.Search(1001, func(wide int) bool {
		return clerk.With("Bahi-Dry-Run", "true").POST(path, bulk(wide)).Response.StatusCode == http.StatusUnprocessableEntity
	})
	require.Greater(t, first, 1, "1,000 rows with the longest descriptions of one byte per character fit")
	require.LessOrEqual(t, first, 1000, "with three bytes per character they exceed a transaction")
	head := o.Head()
	clerk.POST(path, bulk(first)).Problem(422, "Validation error", "rows", "more than 4,000,000 bytes together: send fewer at once")
	require.Equal(t, head, o.Head(), "nothing is written")
	keyed := clerk.With("Idempotency-Key", strings.Repeat("k", 255))
	for _, replayed := range []string{"", "true"} {
		a := keyed.POST(path, bulk(first-1)).Status(201)
		require.Equal(t, replayed, a.Header("Idempotency-Replayed"))
		require.Len(t, apptest.Posted(a), 1000)
	}
	read := 0
	for page := 1; read < 1000; page++ {
		var rows []struct {
			In []struct{ Description string } `json:"in_entries"`
		}
		apptest.Lenient(t, clerk.GET(apptest.Ledger(account, "?page_size=100&page=", page)).Status(200), &rows)
		require.NotEmpty(t, rows)
		for _, r := range rows {
			require.Equal(t, described(read, first-1), r.In[0].Description, "row %d", read)
			read++
		}
	}
	require.Equal(t, "1000", apptest.ClerkBanks(clerk.GET("/banks").Status(200))[0].Balance.String())
}

// judgesDryRunsBySize posts and reverses as many rows as a dry run accepts. The signs of their reason take six bytes each in JSON.
func judgesDryRunsBySize(t *testing.T, o *apptest.Server) {
	t.Helper()
	clerk := o.Clerk(o.Home).With("Bahi-Reason", url.PathEscape(strings.Repeat("<", 500)))
	path := apptest.Ledger(apptest.Open(clerk, "HDFC"), "/rows")
	const large = "more than 4,000,000 bytes together: send fewer at once"
	greatest := func(path string, body func(n int) string) {
		first := sort.Search(1001, func(n int) bool {
			return n > 0 && clerk.With("Bahi-Dry-Run", "true").POST(path, body(n)).Response.StatusCode == http.StatusUnprocessableEntity
		})
		require.Less(t, first, 1001)
		clerk.POST(path, body(first)).Problem(422, "Validation error", "rows", large)
		clerk.With("Idempotency-Key", "greatest").POST(path, body(first-1)).Status(201)
	}
	described := func(length int) string {
		row := fmt.Sprintf(`{"date":"2025-03-01","in_entries":[{"amount":1,"description":%q}]}`, strings.Repeat("m", length))
		return apptest.Bulk(slices.Repeat([]string{row}, 1000)...)
	}
	greatest(path, func(n int) string { return described(n / 2) })
	var rows []string
	for _, row := range apptest.Posted(clerk.With("Bahi-Reason", "x").POST(path, described(1)).Status(201)) {
		rows = append(rows, strconv.FormatInt(row.ID, 10))
	}
	greatest(path+"/reverse", func(n int) string { return `{"rows":[` + strings.Join(rows[:n], ",") + `]}` })
}

// callGateway sends a message to an endpoint as the gateway does, and then one that is too long. It waits for both results.
func callGateway(t *testing.T, o *apptest.Server, path, endpoint, text string) {
	t.Helper()
	g := o.Anonymous().With("X-Gateway-Token", o.Token("gateway"), "Content-Type", "application/json")
	const tooLong = 1_900_000 // characters that fit into a call
	for n, text := range []string{text, strings.Repeat("m", tooLong)} {
		g.POST(path, fmt.Sprintf(`{"app":"WorkshopApp","type":"message","timestamp":%d,"payload":{"id":"%s%d","source":"919812345678",`+
			`"type":"text","payload":{"text":%q},"sender":{"name":"Asha"}}}`, time.Now().UnixMilli(), endpoint, n, text)).Status(200)
		var calls []opsview.Webhook // newest first
		require.Eventually(t, func() bool {
			o.Operator().GET("/ops/webhooks?endpoint=" + endpoint).Status(200).JSON(&calls)
			return len(calls) == n+1 && calls[0].Verdict != "waiting"
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, []string{"handled", "parked"}[n], calls[0].Verdict)
		if n == 1 {
			require.Contains(t, *calls[0].Error, "at most 1000000 bytes")
		}
	}
}

const longText = 700_000 // characters of a text that a sealed event can have

func storesTheGreatestDraft(t *testing.T, o *apptest.Server) {
	t.Helper()
	source := "party: Ramesh\npayal 250 gm\n" + strings.Repeat("m", longText)
	callGateway(t, o, "/gateway_incoming_webhook", "receive-gateway-message", source)
	drafts := apitest.Read[[]ledgerview.OrderDraft](o.Operator().GET("/order-drafts").Status(200))
	require.Len(t, drafts, 1, "nothing of the refused one is stored")
	require.Equal(t, source, *drafts[0].Raw)
	require.Len(t, drafts[0].Entries, 1)
}

func storesTheGreatestChatMessage(t *testing.T, o *apptest.Server) {
	t.Helper()
	agent := o.Bearer(o.Key(o.Home, `{"messaging":"write"}`).Key)
	channel := apitest.Read[messagingview.Channel](agent.POST("/api/channels",
		`{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"WorkshopApp","senderId":"917"}}`).Status(201))
	o.Operator().POST(fmt.Sprintf("/ops/channels/%d/confirm", channel.ID), "").Status(200)
	heard, said := strings.Repeat("m", longText), strings.Repeat("🪙", 4096)
	callGateway(t, o, "/api/webhooks/gateway/incoming_msg", "receive-gateway-chat", heard)
	send := func(text string) *apitest.Answer {
		return agent.POST("/api/chat/send", fmt.Sprintf(`{"to":"919812345678","message":%q,"channelId":%d}`, text, channel.ID))
	}
	send(said).Status(200)
	send(said+"m").Problem(422, "Validation error", "message", "at most 4096 characters")
	people := apitest.Read[[]messagingview.Contact](agent.GET("/api/contacts?search=Asha").Status(200))
	require.Len(t, people, 1)
	talk := apitest.Read[[]messagingview.Message](agent.GET(fmt.Sprintf("/api/contacts/%d/messages", people[0].ID)).Status(200))
	require.Len(t, talk, 2, "nothing of the refused ones is stored")
	require.ElementsMatch(t, []string{heard, said}, []string{*talk[0].Text, *talk[1].Text})
}
