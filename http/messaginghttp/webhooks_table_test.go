package messaginghttp_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/webhooks"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/providers/partner"
)

// hook is an endpoint, as TestEachWebhookTakesWhatIsProvenOnce uses it.
type hook struct {
	endpoint, path string

	prove func(c *apitest.Client, body string, at time.Time) *apitest.Client // by the right secret
	forge func(c *apitest.Client, body string) *apitest.Client               // by another one
	timed bool                                                               // the proof has a time
	// in order; any letters of the first body are escaped
	bodies [2]string
	other  string // body of an unknown kind

	// elsewhere sends calls about another workspace's channel, and returns how many of them are stored.
	elsewhere func(t *testing.T) int
	// state returns the result of the bodies.
	state func(t *testing.T) string
	want  string
}

// aggregated returns settings with an aggregator that accepts all messages, as ee-1, ee-2 and so on.
func aggregated(t *testing.T) app.Settings {
	t.Helper()
	var sent atomic.Int64
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"status":"success","templates":[]}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"status":"submitted","messageId":"ee-%d"}`, sent.Add(1))
	}))
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ReplyURL, with.Outside.ReplyKey, with.Outside.ReplySource = server.URL, "k", "917"
	with.Outside.FetchAllow = []string{strings.TrimPrefix(server.URL, "http://")}
	return with
}

// theHooks returns a system with a channel of each kind in two workspaces, and its endpoints.
func theHooks(t *testing.T) (*apptest.Server, []hook) {
	t.Helper()
	with := aggregated(t)
	with.Outside.SocialSecrets, with.Outside.BillingSecret = []string{"app-secret-for-tests"}, []string{"billing-secret-for-tests"}
	o := apptest.StartAs(t, with)
	c, stranger, out := agent(o, apptest.Home), agent(o, apptest.OtherWorkspace), o.Anonymous()
	id := func(of *apitest.Client, body string) int64 { return channelOf(t, of, body).ID }

	var ours struct {
		MessageID, ProviderMessageID, Status, To string
		ChannelID                                int64
	}
	for _, of := range []struct {
		*apitest.Client

		app string
	}{{stranger, "Theirs"}, {c, "Ours"}} {
		k := id(of.Client, fmt.Sprintf(`{"name":"Sales","type":"chat","apiKey":"k","settings":{"dialect":"envelope_v2","appName":%q,`+
			`"senderId":"917"}}`, of.app))
		heard(t, o, k, "919812345699", of.app, time.Now())
		of.POST("/api/chat/send", text("919812345699", k)).Status(200).JSON(&ours)
	}
	meera, receipt := appears(t, c, "919812345699"), ours.ProviderMessageID

	id(c, `{"name":"Cloud","type":"chat","settings":{"senderId":"PN1","appSecret":"own-secret"}}`)
	id(stranger, `{"name":"Cloud","type":"chat","settings":{"senderId":"PN2","appSecret":"their-secret"}}`)
	bot, theirBot := id(c, `{"name":"Bot","type":"telegram","apiKey":"17:k"}`),
		id(stranger, `{"name":"Bot","type":"telegram","apiKey":"18:k"}`)
	dms := id(c, `{"name":"DMs","type":"twitter","accessToken":"t","settings":{"consumerSecret":"consumer","userId":"42"}}`)
	theirDMs := id(stranger, `{"name":"DMs","type":"twitter","accessToken":"t","settings":{"consumerSecret":"another","userId":"43"}}`)
	botToken, err := o.Sys.Messages.HookToken(t.Context(), fmt.Sprint(bot))
	require.NoError(t, err)

	refused := func(c *apitest.Client, path, body string) func(t *testing.T) int {
		return func(t *testing.T) int {
			t.Helper()
			c.POST(path, body).Problem(401, "Webhook proof missing or wrong")
			return 0
		}
	}
	said := func(search string) func(t *testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			var all []string
			for _, k := range people(t, c, "?search="+search) {
				for _, m := range conversation(t, c, k.ID, "") {
					all = append(all, *m.Text)
				}
			}
			slices.Sort(all)
			return strings.Join(all, ", ")
		}
	}
	const gold, both = `\u0938\u094b\u0928\u093e`, "second, सोना"
	byToken := func(secret string) func(c *apitest.Client, _ string, _ time.Time) *apitest.Client {
		return func(c *apitest.Client, _ string, _ time.Time) *apitest.Client {
			return c.With("X-Gateway-Token", secret, "Content-Type", "application/json")
		}
	}
	forged := func(header, value string) func(c *apitest.Client, _ string) *apitest.Client {
		return func(c *apitest.Client, _ string) *apitest.Client { return c.With(header, value) }
	}
	wroteTo := func(app, id, text string) string {
		return fmt.Sprintf(`{"app":%q,"timestamp":%d,"type":"message","payload":{"id":%q,"source":"919812345601","type":"text",`+
			`"payload":{"text":"%s"}}}`, app, time.Now().UnixMilli(), id, text)
	}
	became := func(app, id, status string) string {
		return fmt.Sprintf(`{"app":%q,"timestamp":%d,"type":"message-event","payload":{"id":%q,"type":%q}}`, app, time.Now().UnixMilli(),
			id, status)
	}
	update := func(id int, text string) string {
		return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":%d,"chat":{"id":77,"type":"private"},`+
			`"from":{"first_name":"Telegrapher"},"text":"%s"}}`, id, id, time.Now().Unix(), text)
	}
	direct := func(id, text string) string {
		return fmt.Sprintf(`{"for_user_id":"42","direct_message_events":[{"id":%q,"message_create":{"sender_id":"5",`+
			`"message_data":{"text":"%s"}}}],"users":{"5":{"name":"Twitterer"}}}`, id, text)
	}
	tweeted := func(secret, body string) string {
		return "sha256=" + base64.StdEncoding.EncodeToString(sha(secret, body))
	}
	inGateway := wroteTo("Theirs", "elsewhere", "to them")
	gateway := o.Token("gateway")
	whsec, asha, ravi := partner.Secret(o.Token("partner")), o.Person("asha@example.com"), o.Person("ravi@example.com")
	billed := func(id, kind string, created int, workspace string) string {
		return fmt.Sprintf(`{"id":%q,"type":%q,"created":%d,"data":{"object":{"customer":"cus_1",`+
			`"metadata":{"plan":"\u0938\u094b\u0928\u093e","workspace_id":%q}}}}`, id, kind, created, workspace)
	}
	bill := func(c *apitest.Client, body string, at time.Time) *apitest.Client {
		stamp := fmt.Sprint(at.Unix())
		return c.With("Billing-Signature", "t="+stamp+",v1="+hex.EncodeToString(sha("billing-secret-for-tests", stamp+"."+body)))
	}
	return o, []hook{{
		endpoint: "receive-social", path: social,
		prove: func(c *apitest.Client, body string, _ time.Time) *apitest.Client {
			return signed(c, "app-secret-for-tests", body)
		},
		forge: func(c *apitest.Client, body string) *apitest.Client { return signed(c, "app-secret", body) },
		bodies: [2]string{strings.Replace(graph("PN1", wrote("wamid.1", "919812345602", "GOLD")), "GOLD", gold, 1),
			graph("PN1", wrote("wamid.2", "919812345602", "second"))},
		other: `{"object":"chat_account","entry":[{"id":"1","changes":[{"field":"flows","value":{"event":"x"}}]}]}`,
		elsewhere: refused(signed(out, "own-secret", graph("PN2", wrote("wamid.3", "919812345602", "to them"))), social,
			graph("PN2", wrote("wamid.3", "919812345602", "to them"))),
		state: said("919812345602"), want: both,
	}, {
		endpoint: "receive-gateway-chat", path: incoming, prove: byToken(gateway), forge: forged("X-Gateway-Token", gateway+"x"),
		bodies: [2]string{wroteTo("Ours", "g1", gold), wroteTo("Ours", "g2", "second")},
		other:  `{"app":"Ours","type":"user-event","payload":{"type":"sandbox-start"}}`,
		elsewhere: func(t *testing.T) int {
			t.Helper()
			byToken(gateway)(out, "", time.Now()).POST(incoming, inGateway).Status(200)
			require.Equal(t, "919812345601", *appears(t, stranger, "919812345601").Phone)
			require.Empty(t, people(t, c, "?search=919812345601"))
			return 1
		},
		state: said("919812345601"), want: both,
	}, {
		endpoint: "receive-gateway-receipt", path: receipts, prove: byToken(gateway), forge: forged("X-Gateway-Token", gateway[1:]),
		bodies: [2]string{became("Ours", receipt, "delivered"), became("Ours", receipt, "read")},
		other:  `{"app":"Ours","type":"account-event","payload":{"id":"x"}}`,
		elsewhere: func(t *testing.T) int { // their app has no such message: the receipt waits for it
			t.Helper()
			byToken(gateway)(out, "", time.Now()).POST(receipts, became("Theirs", receipt, "failed")).Status(200)
			return 0
		},
		state: func(t *testing.T) string { t.Helper(); return conversation(t, c, meera.ID, "")[0].Status }, want: "read",
	}, {
		endpoint: fmt.Sprintf("receive-telegram/%d", bot), path: fmt.Sprintf("/api/webhook/telegram/%d", bot),
		prove: func(c *apitest.Client, _ string, _ time.Time) *apitest.Client {
			return c.With("X-Telegram-Bot-Api-Secret-Token", botToken)
		},
		forge: forged("X-Telegram-Bot-Api-Secret-Token", botToken+"0"), bodies: [2]string{update(1, gold), update(2, "second")},
		other: `{"update_id":3,"poll":{}}`,
		elsewhere: refused(out.With("X-Telegram-Bot-Api-Secret-Token", botToken), fmt.Sprintf("/api/webhook/telegram/%d", theirBot),
			update(1, "to them")),
		state: said("Telegrapher"), want: both,
	}, {
		endpoint: fmt.Sprintf("receive-twitter/%d", dms), path: fmt.Sprintf("/api/webhook/twitter/%d", dms),
		prove: func(c *apitest.Client, body string, _ time.Time) *apitest.Client {
			return c.With("X-Twitter-Webhooks-Signature", tweeted("consumer", body))
		},
		forge: func(c *apitest.Client, body string) *apitest.Client {
			return c.With("X-Twitter-Webhooks-Signature", tweeted("another", body))
		},
		bodies: [2]string{direct("e1", gold), direct("e2", "second")}, other: `{"for_user_id":"42","favorite_events":[{}]}`,
		elsewhere: refused(out.With("X-Twitter-Webhooks-Signature", tweeted("consumer", direct("e3", "x"))),
			fmt.Sprintf("/api/webhook/twitter/%d", theirDMs), direct("e3", "x")),
		state: said("Twitterer"), want: both,
	}, {
		endpoint: "receive-partner", path: "/api/webhook/partner", timed: true,
		prove: func(c *apitest.Client, body string, at time.Time) *apitest.Client {
			id, stamp := hex.EncodeToString(sha("id", body)), fmt.Sprint(at.Unix())
			return c.With("webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", whsec.Sign(id, stamp, []byte(body)))
		},
		forge: func(c *apitest.Client, _ string) *apitest.Client {
			return c.With("webhook-id", "p", "webhook-timestamp", fmt.Sprint(time.Now().Unix()), "webhook-signature",
				"v1,goc7u6MVF6mi1ui0C6i0FkWU5eVAMW/rzONSPI9yjlA=")
		},
		bodies:    [2]string{`{"type":"account.updated","data":{"name":"` + gold + `"}}`, `{"type":"account.updated","data":{"name":"second"}}`},
		other:     `{"type":"unheard.of"}`,
		elsewhere: func(*testing.T) int { return 0 }, // it has no channels
		state:     func(*testing.T) string { return "" },
	}, {
		endpoint: "receive-billing", path: "/api/billing-webhook", timed: true, prove: bill,
		forge:  forged("Billing-Signature", "t=1760000000,v1=7487fb8b0a3f2407534af9561bc68cee027713fc3d56f776d930c675d00b39c9"),
		bodies: [2]string{billed("e1", "invoice.paid", 10, asha.Workspace), billed("e2", "customer.subscription.deleted", 20, asha.Workspace)},
		other:  `{"id":"e3","type":"charge.refunded","created":30}`,
		elsewhere: func(t *testing.T) int { // a customer of one workspace cannot be made another's
			t.Helper()
			claim := billed("e0", "customer.subscription.created", 1, asha.Workspace)
			bill(out, claim, time.Now()).POST("/api/billing-webhook", claim).Status(200)
			calls(t, o, "receive-billing", 1)
			claim = billed("e9", "customer.subscription.created", 2, ravi.Workspace)
			bill(out, claim, time.Now()).POST("/api/billing-webhook", claim).Status(200)
			calls(t, o, "receive-billing", 2)
			require.Equal(t, `{"plan":null,"status":null,"updatedAt":null}`, strings.TrimSpace(ravi.GET("/api/billing/plan").Status(200).Text))
			claim = billed("e8", "invoice.paid", 3, "x") // nobody's
			bill(out, claim, time.Now()).POST("/api/billing-webhook", claim).Status(200)
			return 3
		},
		state: func(t *testing.T) string {
			t.Helper()
			said, _, _ := strings.Cut(asha.GET("/api/billing/plan").Status(200).Text, `,"updatedAt"`)
			return said
		},
		want: `{"plan":"सोना","status":"canceled"`,
	}}
}

// Each endpoint refuses calls without a valid proof, and handles each proven call once, in any order, with an empty response.
func TestEachWebhookTakesWhatIsProvenOnce(t *testing.T) {
	t.Parallel()
	o, all := theHooks(t)
	for _, h := range all {
		t.Run(h.endpoint, func(t *testing.T) {
			t.Parallel()
			out, now := o.Anonymous(), time.Now()
			no := func(c *apitest.Client) { c.POST(h.path, h.bodies[0]).Problem(401, "Webhook proof missing or wrong") }
			no(out)
			no(h.forge(out, h.bodies[0]))
			if h.timed {
				no(h.prove(out, h.bodies[0], now.Add(-6*time.Minute)))
				no(h.prove(out, h.bodies[0], now.Add(6*time.Minute)))
			} else {
				no(h.prove(out, h.bodies[1], now).With("X-Gateway-Token", "", "X-Telegram-Bot-Api-Secret-Token", "")) // another body's proof
			}
			kept := h.elsewhere(t)
			calls(t, o, h.endpoint, kept)

			post := func(body string) *apitest.Answer { return h.prove(out, body, now).POST(h.path, body) }
			for _, body := range []string{h.bodies[1], h.bodies[0], h.bodies[1], h.bodies[0], h.other, "no JSON", h.other, "no JSON"} {
				require.Empty(t, post(body).Status(200).Text)
			}
			post(strings.Repeat("a", webhooks.MaxBody+1)).Problem(413, "The request body is too large")
			verdicts := map[string]int{}
			for _, k := range calls(t, o, h.endpoint, kept+4) {
				verdicts[k.Verdict]++
			}
			require.Equal(t, 1, verdicts["parked"], "what cannot be read")
			require.GreaterOrEqual(t, verdicts["ignored"], 1, "what nobody knows")
			require.Equal(t, h.want, h.state(t))
		})
	}
}
