package marketplacehttp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
)

// network is a deployment whose own sender PN9 notifies of enquiries, with a company that is notified by chat.
type network struct {
	*apptest.Server

	t     *testing.T
	owner apptest.Person
	mill  marketplaceview.Company
	posts atomic.Int64 // messages that the network received
	mute  atomic.Bool  // it responds to none
	calls int
}

func onNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t}
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"display_phone_number":"+91 98"}`)
		case n.posts.Add(1) > 0 && n.mute.Load():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, `{"messages":[{"id":"wamid.1"}]}`)
		}
	}))
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.ChatURL, s.Outside.FetchAllow = server.URL, []string{strings.TrimPrefix(server.URL, "http://")}
	s.Outside.ChatKey, s.Outside.ChatSender, s.Outside.SocialSecrets = "key", "PN9", []string{"app-secret-for-tests"}
	n.Server = apptest.StartAs(t, s)
	n.owner = n.Person("owner@example.com")
	n.mill = founded(t, n.owner.Client, `{"name":"Mill","phone":"+919812345111"}`)
	var sales messagingview.Channel
	n.owner.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1"}}`).Status(201).JSON(&sales)
	n.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: "919812345111"}, Channel: sales.ID, Text: "hello"})
	return n
}

// receipt posts a signed receipt about a notice, and returns its result.
func (n *network) receipt(secret, sender string, enquiry uuid.UUID, status string) marketplaceview.Notification {
	n.t.Helper()
	n.post(secret, sender, enquiry, status)
	return n.chat(enquiry)
}

// post posts a signed receipt, and waits until it is handled.
func (n *network) post(secret, sender string, enquiry any, status string) {
	n.t.Helper()
	n.call(secret, sender, enquiry, status)
	require.Eventually(n.t, func() bool {
		all := n.received()
		return len(all) == n.calls && !slices.ContainsFunc(all, func(k opsview.Webhook) bool { return k.Verdict == "waiting" })
	}, time.Minute, 10*time.Millisecond)
}

// received returns the received calls, newest first.
func (n *network) received() (all []opsview.Webhook) {
	n.t.Helper()
	n.Operator().GET("/ops/webhooks?page_size=1000&endpoint=receive-social").Status(200).JSON(&all)
	return all
}

// call posts a signed receipt.
func (n *network) call(secret, sender string, enquiry any, status string) {
	n.t.Helper()
	n.calls++
	body := fmt.Sprintf(`{"object":"chat_business_account","entry":[{"id":"ACC","changes":[{"field":"messages",`+
		`"value":{"metadata":{"phone_number_id":%q},
		"statuses":[{"id":"wamid.%d","recipient_id":"919812345111","biz_opaque_callback_data":"enq_%v","status":%s}]}}]}]}`, sender,
		n.calls, enquiry, status)
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(body))
	n.Anonymous().With("X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)), "Content-Type",
		"application/json").POST("/api/webhook/social", body).Status(200)
}

// chat returns the result of a notice by chat.
func (n *network) chat(id uuid.UUID) marketplaceview.Notification {
	n.t.Helper()
	e := apitest.Read[marketplaceview.Enquiry](n.owner.GET(enquiryAt(id)).Status(200))
	return e.Notifications.Chat
}

const (
	ours        = "app-secret-for-tests"
	unreachable = `"failed","errors":[{"code":131026,"title":"Not to +919812345111"}]`
)

func TestAReceiptSettlesANoticeByChat(t *testing.T) {
	t.Parallel()
	n := onNetwork(t)
	e := notified(t, n.owner.Client, asked(t, n.Anonymous(), n.mill.ID, "").ID)
	require.Equal(t, "sent", e.Notifications.Chat.Status)
	require.Equal(t, "sent", n.receipt(ours, "PN8", e.ID, unreachable).Status, "another sender's receipt has no effect")
	lost := n.receipt(ours, "PN9", e.ID, unreachable)
	require.Equal(t, []string{"failed", "The network cannot reach the recipient (131026)"}, []string{lost.Status, *lost.Error})
	n.Operator().GET("/ops/outbox?port=chat").Status(200).Contains(`"to":"+919812345111"`, `"status":"failed"`,
		`"error":"The network cannot reach the recipient (131026)"`, "Asha Rao")
	after := apitest.Read[marketplaceview.Enquiry](n.owner.GET(enquiryAt(e.ID)).Status(200))
	require.Equal(t, []any{e.Notifications.Email, e.Notifications.CRM, e.Revision},
		[]any{after.Notifications.Email, after.Notifications.CRM, after.Revision}, "nothing else moves")
	require.Equal(t, "failed", n.receipt(ours, "PN9", e.ID, `"warning"`).Status)
	is := n.receipt(ours, "PN9", e.ID, `"delivered"`)
	require.Equal(t, []any{"sent", (*string)(nil)}, []any{is.Status, is.Error})
	n.post(ours, "PN9", uuid.New(), unreachable) // of no known enquiry
	n.post(ours, "PN9", "x", unreachable)

	closed := notified(t, n.owner.Client, asked(t, n.Anonymous(), n.mill.ID, "").ID)
	require.Equal(t, "The person has not written in the last 24 hours: only templates can be sent (131047)",
		*n.receipt(ours, "PN9", closed.ID, `"failed","errors":[{"code":131047}]`).Error)
	uncoded := notified(t, n.owner.Client, asked(t, n.Anonymous(), n.mill.ID, "").ID)
	require.Equal(t, "The network refused the request", *n.receipt(ours, "PN9", uncoded.ID, `"failed"`).Error)

	n.Operator().POST("/ops/erasures", `{"email":"`+buyerOf(n.mill.ID)+`"}`).Status(202)
	require.Equal(t, "sent", n.receipt(ours, "PN9", e.ID, unreachable).Status, "the enquiry was erased")

	// A channel's own secret is valid for its channel, not for the deployment.
	told := notified(t, n.owner.Client, asked(t, n.Anonymous(), n.mill.ID, "").ID)
	n.owner.POST("/api/channels",
		`{"name":"Own","type":"chat","apiKey":"good","settings":{"senderId":"PN9","appSecret":"own-secret"}}`).Status(201)
	n.call("own-secret", "PN9", told.ID, unreachable)
	require.Equal(t, "waiting", n.received()[0].Verdict, "the channel has not proven the sender")
	require.Equal(t, "sent", n.chat(told.ID).Status)
}

func TestAReceiptSaysThatAnUnansweredNoticeWentOut(t *testing.T) {
	t.Parallel()
	n := onNetwork(t)
	n.mute.Store(true)
	e := asked(t, n.Anonymous(), n.mill.ID, "")
	require.Eventually(t, func() bool {
		jobs := n.Jobs("kind=notify_by_chat")
		return len(jobs) == 1 && jobs[0].State == "retryable"
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "sent", n.receipt(ours, "PN9", e.ID, `"delivered"`).Status)
	n.Operator().GET("/ops/outbox?port=chat").Status(200).Contains(`"to":"+919812345111"`, `"status":"sent"`, "Asha Rao")
	n.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", n.Jobs("kind=notify_by_chat")[0].ID), nil).Status(200)
	require.Eventually(t, func() bool { return n.Jobs("kind=notify_by_chat")[0].State == "completed" }, time.Minute, 10*time.Millisecond)
	require.Equal(t, int64(1), n.posts.Load(), "no company is notified twice")
}
