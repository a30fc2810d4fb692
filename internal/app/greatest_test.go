package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
)

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
