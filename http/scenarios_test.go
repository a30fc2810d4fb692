package http_test

import (
	"encoding/json"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
)

// scenarios has the examples of operations whose samples are refused, because their input is in a mail or results from other events.
type scenarios struct {
	*things

	examples examples
}

// ask requests an operation, and records the request and the response. rest is the end of the path, after the parts that id determines.
func (s scenarios) ask(t *testing.T, id string, c *apitest.Client, path, body string) *apitest.Answer {
	t.Helper()
	return s.askWith(t, id, c, path, body, "application/json")
}

func (s scenarios) askWith(t *testing.T, id string, c *apitest.Client, path, body, contentType string) *apitest.Answer {
	t.Helper()
	i := slices.IndexFunc(s.ops, func(op api.Op) bool { return op.ID == id })
	require.GreaterOrEqual(t, i, 0, id)
	r := request{s.ops[i].Method, path, body, contentType}
	a := r.ask(c)
	require.Equal(t, 2, a.Response.StatusCode/100, "%s: %s", id, a.Text)
	s.examples.note(s.ops[i], r, a)
	return a
}

func (s scenarios) play(t *testing.T) {
	t.Helper()
	s.sessions(t)
	s.mailed(t)
	s.conversations(t)
	s.confirmations(t)
	s.calls(t)
	s.jobs(t)
	s.parked(t)
	s.rebuilds(t)
	s.full(t)
}

func (s scenarios) sessions(t *testing.T) {
	t.Helper()
	ravi := s.Person(uuid.NewString() + "@example.com")
	s.ask(t, "login", s.Anonymous(), apptest.Auth+"/login", fmt.Sprintf(`{"email":%q,"password":%q}`, ravi.User.Email, apptest.GoodPassword))
	s.ask(t, "refresh", s.Anonymous(), apptest.Auth+"/refresh", fmt.Sprintf(`{"refresh_token":%q}`, ravi.Refresh))
	s.ask(t, "change-password", ravi.Client, apptest.Me+"/password",
		fmt.Sprintf(`{"current_password":%q,"new_password":"jadau and polki"}`, apptest.GoodPassword))
}

func (s scenarios) mailed(t *testing.T) {
	t.Helper()
	token := func(to, subject string) string {
		_, token := apptest.Link(t, s.Mailed(to, subject, 1))
		return fmt.Sprintf(`{"token":%q}`, token)
	}
	usha, meera, mill := uuid.NewString()+"@example.com", uuid.NewString()+"@example.com", uuid.NewString()+"@example.com"
	s.Anonymous().POST(apptest.Auth+"/register", apptest.Registration(usha)).Status(201)
	s.ask(t, "verify-email", s.Anonymous(), apptest.Auth+"/verify-email", token(usha, apptest.VerifySubject))

	s.asha.POST("/api/v1/workspaces/"+s.asha.Workspace+"/invitations", apptest.Invite(usha, `{"ledger":"read"}`)).Status(201)
	in := s.Bearer(s.SignIn(usha, apptest.GoodPassword).Access)
	s.ask(t, "accept-invitation", in, "/api/v1/invitations/accept", token(usha, apptest.InviteSubject))

	s.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": usha}).Status(200)
	s.ask(t, "confirm-password-reset", s.Anonymous(), apptest.Auth+"/password-reset/confirm",
		strings.Replace(token(usha, apptest.ResetSubject), "}", `,"new_password":"jadau and polki"}`, 1))

	s.Bearer(s.SignIn(usha, "jadau and polki").Access).PUT(apptest.Me, map[string]string{"email": meera}).Status(200)
	s.ask(t, "undo-email-change", s.Anonymous(), apptest.Auth+"/email-change/undo", token(usha, "Your email address at Bahi was changed"))

	company := strings.Trim(s.value(t, "company_id"), `"`)
	s.asha.PATCH("/api/v1/companies/"+company, fmt.Sprintf(`{"name":"Meera Mill","email":%q}`, mill)).Status(200)
	s.ask(t, "confirm-company-email", s.Anonymous(), "/api/v1/companies/confirm-email", token(mill, "Confirm the address of Meera Mill"))
}

func (s scenarios) conversations(t *testing.T) {
	t.Helper()
	made := func(body string) (id int64, key string) {
		var k struct {
			ID         int64
			ChannelKey string
		}
		require.NoError(t, json.Unmarshal([]byte(s.asha.POST("/api/channels", body).Status(201).Text), &k))
		return k.ID, k.ChannelKey
	}
	channel, _ := made(`{"name":"Sales","type":"chat"}`)
	const phone = "919812345671"
	s.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: phone, Name: "Meera"}, Channel: channel, Text: "Is it ready?"})
	s.ask(t, "send-text", s.asha.Client, "/api/chat/send",
		fmt.Sprintf(`{"to":%q,"message":"Your order is ready","channelId":%d}`, phone, channel))
	s.ask(t, "send-image", s.asha.Client, "/api/chat/send-image",
		fmt.Sprintf(`{"to":%q,"imageUrl":"https://cdn.example.org/a.jpg","channelId":%d}`, phone, channel))
	var people []struct{ ID int64 }
	require.NoError(t, json.Unmarshal([]byte(s.asha.GET("/api/contacts?search="+phone).Status(200).Text), &people))
	require.Len(t, people, 1)
	s.values["messaging_contact_id"] = fmt.Sprint(people[0].ID) // one with a conversation
	s.ask(t, "send-message", s.asha.Client, fmt.Sprintf("/api/contacts/%d/messages", people[0].ID),
		fmt.Sprintf(`{"channelId":%d,"text":"Come by tomorrow"}`, channel))
	form, kind := apptest.Form(t, "image/png", apptest.Painted(t, color.White, 8, 8), "channelId", fmt.Sprint(channel))
	s.askWith(t, "send-image-file", s.asha.Client, fmt.Sprintf("/api/contacts/%d/images", people[0].ID), string(form), kind)

	const page = "https://shop.example.org"
	_, key := made(fmt.Sprintf(`{"name":"Page","type":"web","settings":{"allowedOrigins":[%q]}}`, page))
	var session struct{ Token string }
	visitor := s.Anonymous().With("Origin", page)
	require.NoError(t, json.Unmarshal([]byte(s.ask(t, "begin-web-chat", visitor, "/api/web-chat/"+key+"/sessions", "").Text), &session))
	s.ask(t, "write-web-chat", visitor.With("Authorization", "Bearer "+session.Token), "/api/web-chat/"+key+"/messages",
		`{"text":"Do you make payal?"}`)

	dms, _ := made(`{"name":"DMs","type":"twitter","accessToken":"t","settings":{"consumerSecret":"consumer","userId":"42"}}`)
	s.ask(t, "greet-twitter", s.Anonymous(), fmt.Sprintf("/api/webhook/twitter/%d?crc_token=abc", dms), "")
}

// confirmations has a party that is asked.
func (s scenarios) confirmations(t *testing.T) {
	t.Helper()
	c := s.asha.Client
	account := apptest.IdOf(t, []byte(c.POST("/client", `{"name":"Meera"}`).Status(201).Text))
	contact := apptest.IdOf(t, []byte(c.POST("/api/contacts", `{"name":"Meera","phone":"9812345679"}`).Status(201).Text))
	c.PATCH(fmt.Sprintf("/api/contacts/%d", contact), `{"optIn":true}`).Status(200)
	c.PUT(fmt.Sprintf("/books/accounts/%d/contact", account), fmt.Sprintf(`{"contactId":%d}`, contact)).Status(200)
	all := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	i := slices.IndexFunc(all, func(k messagingview.Template) bool { return k.Name == "balance" })
	asked := apptest.IdOf(t, []byte(c.POST("/books/confirmations", fmt.Sprintf(
		`{"accounts":[%d],"as_of":"2025-03-31","channelId":%d,"templateId":%d}`, account, all[i].ChannelID, all[i].ID)).Status(201).Text))
	path := ""
	require.Eventually(t, func() bool {
		text := c.GET(fmt.Sprintf("/api/contacts/%d/messages", contact)).Status(200).Text
		_, path, _ = strings.Cut(text, "/s/")
		return path != ""
	}, time.Minute, 5*time.Millisecond)
	path, _, _ = strings.Cut(path, " ")
	s.ask(t, "get-shared-statement", s.Anonymous(), "/s/"+path, "")
	s.ask(t, "decide-confirmation", c, fmt.Sprintf("/books/confirmations/%d/parties/%d", asked, account),
		`{"outcome":"disputed","note":"bill 118 is missing"}`)
}

// calls has a call of a provider that has no effect.
func (s scenarios) calls(t *testing.T) {
	t.Helper()
	var bot struct{ ID int64 }
	require.NoError(t, json.Unmarshal([]byte(s.asha.POST("/api/channels",
		`{"name":"Bot","type":"telegram","apiKey":"17:k"}`).Status(201).Text), &bot))
	secret, err := s.Sys.Messages.HookToken(t.Context(), fmt.Sprint(bot.ID))
	require.NoError(t, err)
	s.Anonymous().With("X-Telegram-Bot-Api-Secret-Token", secret).POST(fmt.Sprintf("/api/webhook/telegram/%d", bot.ID),
		`{"update_id":3,"poll":{}}`).Status(200)
	var ignored []opsview.Webhook
	require.Eventually(t, func() bool {
		s.Operator().GET("/ops/webhooks?verdict=ignored").Status(200).JSON(&ignored)
		return len(ignored) == 1
	}, time.Minute, 5*time.Millisecond)
	path := "/ops/webhooks/" + ignored[0].ID.String()
	s.ask(t, "get-webhook", s.Operator(), path, "")
	s.ask(t, "replay-webhook", s.Operator(), path+"/replay", "")
}

func (s scenarios) jobs(t *testing.T) {
	t.Helper()
	s.WaitJobs("send_verification")
	job := s.Jobs("kind=send_verification")[0].ID
	for _, verb := range []string{"retry", "cancel"} {
		s.WaitJobs("send_verification")
		s.Sql(`update river.river_job set state = 'scheduled', finalized_at = null, scheduled_at = now() + interval '1 day' where id = $1`, job)
		s.ask(t, verb+"-job", s.Operator(), fmt.Sprintf("/ops/jobs/%d/%s", job, verb), "")
	}
}

// parked makes the books stop at one event, and then at another.
func (s scenarios) parked(t *testing.T) {
	t.Helper()
	account := apptest.Open(s.asha.Client, "Union")
	s.asha.GET("/banks").Status(200)
	s.Park()
	stopped := func() (skip string) {
		var parked []opsview.Parked
		require.Eventually(t, func() bool {
			s.Operator().GET("/ops/parked").Status(200).JSON(&parked)
			return len(parked) == 1
		}, time.Minute, 5*time.Millisecond)
		return fmt.Sprintf(`{"position":%d,"reason":"the row was written by a program with a fault"}`, parked[0].Position)
	}
	apptest.Post(s.asha.Client, account, apptest.Deposit("2025-03-01", "1"))
	stopped()
	s.ask(t, "list-parked", s.Operator(), "/ops/parked", "")
	s.ask(t, "retry-parked", s.Operator(), "/ops/parked/books/retry", "")
	stopped()
	s.ask(t, "retry-projection", s.Operator(), "/ops/projections/books/retry", "")
	s.ask(t, "skip-parked", s.Operator(), "/ops/parked/books/skip", stopped())
	apptest.Post(s.asha.Client, account, apptest.Deposit("2025-03-02", "2"))
	s.ask(t, "skip-event", s.Operator(), "/ops/projections/books/skip", stopped())
	s.Sql(`alter table books_g1.row_version drop constraint parked_for_a_test`)
}

// rebuilds has a rebuild under an operator's control, a rebuild whose tables differ from the live ones, and a rollback.
func (s scenarios) rebuilds(t *testing.T) {
	t.Helper()
	const books = "/ops/projections/books"
	s.Operator().POST(books+"/rebuild", `{"throttle":1}`).Status(202)
	s.ask(t, "throttle-rebuild", s.Operator(), books+"/throttle", `{"events_per_second":5}`)
	s.ask(t, "cancel-rebuild", s.Operator(), books+"/cancel", "")
	s.Sql(`update books_g1.row_version set actor = 'nobody'`)
	s.Operator().POST(books+"/rebuild", `{"keep_seconds":3600}`).Status(202)
	require.Eventually(t, func() bool {
		b := s.Projection("books").Build
		return b != nil && b.Phase == "differs"
	}, time.Minute, 5*time.Millisecond)
	s.ask(t, "accept-rebuild", s.Operator(), books+"/accept", "")
	require.Eventually(t, func() bool { return s.Projection("books").Build == nil }, time.Minute, 5*time.Millisecond)
	s.ask(t, "rollback-projection", s.Operator(), books+"/rollback", "")
}

// full requests the previously empty lists again, after records were created.
func (s scenarios) full(t *testing.T) {
	t.Helper()
	for _, op := range s.ops { // for the lists of one account, bot or campaign
		if writes(op) && op.Area != "" && op.Method == "POST" && s.samples[op.ID].Refused == 0 {
			s.request(t, op).ask(s.may(op))
		}
	}
	for _, op := range s.ops {
		if !writes(op) && string(s.examples[op.ID].Answer) == "[]" {
			r := s.request(t, op)
			whole := r
			whole.path, _, _ = strings.Cut(r.path, "?")
			for _, r := range []request{r, whole} { // the sample's query may match no record
				if a := r.ask(s.may(op)); a.Response.StatusCode == status(op) && a.Text != "[]" {
					s.examples.note(op, r, a)
				}
			}
		}
	}
}
