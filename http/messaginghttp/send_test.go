package messaginghttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
	"bahi/readmodels/messagingview"
)

// recordingNetwork is a network that records the phones to which it sends.
type recordingNetwork struct {
	messagingcmd.Networks
	to []string
}

// Send implements [messagingcmd.Networks].
func (n *recordingNetwork) Send(ctx context.Context, a network.Account, m network.Message) (string, error) {
	n.to = append(n.to, m.To)
	return n.Networks.Send(ctx, a, m)
}

// A message is decided again if what the decision read changes before the append. The rate limit counts it once.
func TestAMessageIsSentAsItsContactAndChannelAreThen(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]struct {
		changes func(c *apitest.Client, who, on int64)
		toPhone bool // the message is to a phone, not to a contact
		to      []string
		want    error
	}{
		"nothing": {
			changes: func(*apitest.Client, int64, int64) {},
			to:      []string{"919812345678"},
		},
		"another phone": {
			changes: func(c *apitest.Client, who, _ int64) { c.PATCH(at(who), `{"phone":"9812345670"}`).Status(200) },
			to:      []string{"919812345670"},
		},
		"the contact is deleted": {
			changes: func(c *apitest.Client, who, _ int64) { c.DELETE(at(who)).Status(204) },
			want:    contact.ErrNotFound,
		},
		"the phone's contact is deleted": {
			changes: func(c *apitest.Client, who, _ int64) { c.DELETE(at(who)).Status(204) },
			toPhone: true,
			want:    (&network.Failure{Reason: network.WindowClosed}).Fault(),
		},
		"the channel is deleted": {
			changes: func(c *apitest.Client, _, on int64) {
				c.DELETE("/api/channels/" + strconv.FormatInt(on, 10)).Status(204)
			},
			toPhone: true,
			want:    channel.ErrNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, c, sales := openSales(t)
			asha := made(t, c, `{"name":"Asha","phone":"9812345678"}`)
			heard(t, o, sales.ID, "919812345678", "w1", time.Now())
			messages, channels := *o.Sys.Messages, *o.Sys.Messages.Channels
			net := &recordingNetwork{Networks: channels.Networks}
			channels.Networks, messages.Channels = net, &channels
			messages.Sandboxed = func(network.Account) bool { return false }
			admitted := 0
			admit := func(int64) error {
				if admitted++; admitted == 1 {
					what.changes(c, asha.ID, sales.ID)
				}
				return nil
			}
			req := commands.Request{Workspace: uuid.MustParse(o.Home)}
			var err error
			if what.toPhone {
				_, err = messages.Send(t.Context(), req, message.Draft{Channel: sales.ID, To: "919812345678", Text: "Hello"}, admit)
			} else {
				_, err = messages.SendTo(t.Context(), req, asha.ID, message.ToContact{ChannelID: sales.ID, Text: "Hello"}, admit)
			}
			require.ErrorIs(t, err, what.want)
			require.Equal(t, what.to, net.to)
			require.Equal(t, 1, admitted)
		})
	}
}

// A message and its consequences are one append: the contact, its unique values, consent, a merge.
func TestAMessageThatComesInIsOneTransaction(t *testing.T) {
	t.Parallel()
	o, _, sales := openSales(t)
	receive := func(text string, from messagingcmd.Sender) (types []string) {
		out := o.Receives(messagingcmd.InboundMessage{Sender: from, Channel: sales.ID, Text: text})
		const most = 16
		var written []event.Stored
		for e := range o.Events(int64(out.Position) - most) {
			if e.Position <= out.Position {
				written = append(written, e)
			}
		}
		for n := range written {
			e := written[len(written)-1-n]
			var meta event.Meta
			require.NoError(t, json.Unmarshal(e.Meta, &meta))
			if meta.More != n {
				break
			}
			types = append([]string{e.Type}, types...)
		}
		return types
	}
	require.Equal(t,
		[]string{"RequestAccepted", "MessagingContactAdded", "MessagingContactSenderAdded", "MessagingSenderClaimed", "MessageReceived"},
		receive("Hello", messagingcmd.Sender{UserID: "IN.1", Name: "Asha"}))
	require.Equal(t,
		[]string{"RequestAccepted", "MessagingContactAdded", "MessagingPhoneClaimed", "MessageReceived"},
		receive("STOP", messagingcmd.Sender{From: "919812345671", Name: "Asha Rao"}))
	require.Equal(t,
		[]string{
			"RequestAccepted", "MessagingContactAbsorbed", "MessagingContactEdited", "MessagingContactMerged", "MessagingPhoneClaimed",
			"MessageReceived",
		},
		receive("Hello again", messagingcmd.Sender{From: "919812345671", UserID: "IN.1"}))
	require.Equal(t,
		[]string{"RequestAccepted", "MessageReceived"},
		receive("And again", messagingcmd.Sender{From: "919812345671", UserID: "IN.1"}))
}

// dyingNetwork is a network after whose response the process ends.
type dyingNetwork struct {
	messagingcmd.Networks

	calls *int
	ends  bool
}

func (n dyingNetwork) Send(ctx context.Context, a network.Account, m network.Message) (string, error) {
	*n.calls++
	id, err := n.Networks.Send(ctx, a, m)
	if n.ends {
		panic("the process ends")
	}
	return id, err
}

// The process ends after the call of the network, before it has recorded the response. The outcome is unknown, so a retry with the same key
// never calls again, and a receipt settles the message.
func TestAfterACrashAMessageIsLookedUpBeforeItIsSent(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	heard(t, o, sales.ID, "919812345671", "c1", time.Now())
	calls := 0
	send := func(ends bool) (commands.Outcome[message.State], error) {
		channels, f := *o.Sys.Messages.Channels, *o.Sys.Messages
		channels.Networks = dyingNetwork{o.Sys.Messages.Networks, &calls, ends}
		f.Channels = &channels
		req := commands.Request{Workspace: uuid.MustParse(o.Home), Operation: "send-text", Key: "crash"}
		return f.Send(t.Context(), req, message.Draft{Channel: sales.ID, To: "919812345671", Text: "Yes"}, func(int64) error { return nil })
	}
	require.Panics(t, func() { _, _ = send(true) })
	require.Equal(t, 1, calls)
	for range 2 {
		out, err := send(false)
		require.Equal(t, (&network.Failure{Reason: network.Unknown}).Fault(), err)
		require.True(t, out.Replayed)
	}
	who := appears(t, c, "919812345671")
	talk := conversation(t, c, who.ID, "")
	require.Len(t, talk, 2)
	require.Equal(t, "queued", talk[0].Status)
	number, err := message.Number("messageId", talk[0].ID)
	require.NoError(t, err)

	_, err = o.Sys.Messages.Receipts(t.Context(),
		[]messagingcmd.DeliveryReceipt{{Receipt: message.Receipt{Status: "delivered"}, Channel: sales.ID, IDs: []string{"wamid.c"},
			Callback: talk[0].ID}})
	require.NoError(t, err)
	out, err := send(false)
	require.NoError(t, err)
	require.Equal(t, []string{strconv.FormatInt(number, 10), "delivered"}, []string{out.ID, out.State.Status})
	require.Equal(t, 1, calls, fmt.Sprint("calls of the network: ", calls))
}

// An incoming file is fetched from its network with the channel's token, stored, and shown by a link. Files that are too large, or that a
// browser would run, are not stored.
func TestAFileIsFetchedAndKept(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))))
	files := map[string][]byte{"M1": picture.Bytes(), "M2": bytes.Repeat([]byte("a"), chat.MaxFile+1),
		"M3": []byte("<html><script>alert(1)</script>")}
	var at string
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/file/"):
			_, _ = w.Write(files[id])
		case files[id] != nil:
			_, _ = fmt.Fprintf(w, `{"url":%q}`, at+"/file/"+id)
		default:
			_, _ = io.WriteString(w, `{"display_phone_number":"+91 98"}`)
		}
	}))
	at = server.URL
	o := onNetwork(t, server)
	c, out := agent(o, apptest.Home), o.Anonymous()
	channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1","appSecret":"own-secret"}}`)
	for i := range files {
		body := graph("PN1", fmt.Sprintf(`"messages":[{"from":"919812345678","id":"wamid.%s","type":"image","image":{"id":%q,`+
			`"mime_type":"image/png","caption":"This one"}}]`, i, i))
		signed(out, "own-secret", body).POST(social, body).Status(200)
	}
	calls(t, o, "receive-social", len(files))
	asha := appears(t, c, "919812345678")
	var shown []messagingview.Message
	require.Eventually(t, func() bool {
		shown = nil
		for _, m := range conversation(t, c, asha.ID, "") {
			if m.MediaURL != nil {
				shown = append(shown, m)
			}
		}
		return len(shown) == 1
	}, time.Minute, 10*time.Millisecond)
	_, kind, got := fetched(t, o, *shown[0].MediaURL)
	require.Equal(t, picture.Bytes(), got)
	require.Equal(t, "image/png", kind)

	for _, m := range conversation(t, c, asha.ID, "") {
		if m.ID == shown[0].ID {
			continue
		}
		err := o.Sys.Messages.StoreFile(t.Context(), strings.TrimPrefix(m.ID, "msg_"))
		failed, ok := err.(*network.Failure) //nolint:errorlint // always a *network.Failure
		require.True(t, ok, err)
		require.Contains(t, []network.Reason{network.Refused, network.Content}, failed.Reason)
		require.Nil(t, m.MediaURL)
	}

	// The file of a revoked message is deleted.
	body := graph("PN1", `"messages":[{"from":"919812345678","id":"wamid.9","type":"revoke","revoke":{"original_message_id":"wamid.M1"}}]`)
	signed(out, "own-secret", body).POST(social, body).Status(200)
	require.Eventually(t, func() bool {
		for _, m := range conversation(t, c, asha.ID, "") {
			if m.ID == shown[0].ID {
				return m.DeletedAt != nil && m.Text == nil && m.MediaURL == nil
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		status, _, _ := fetched(t, o, *shown[0].MediaURL)
		return status == http.StatusNotFound
	}, time.Minute, 10*time.Millisecond)
}

func sendFile(t *testing.T, c *apitest.Client, contact int64, content []byte, texts ...string) *apitest.Answer {
	t.Helper()
	form, kind := apptest.Form(t, "image/png", content, texts...)
	return c.With("Content-Type", kind).Do("POST", at(contact)+"/images", form)
}

// fetched returns the content behind a link to a stored file.
func fetched(t *testing.T, o *apptest.Server, link string) (status int, kind string, content []byte) {
	t.Helper()
	of, err := url.Parse(link)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(link, o.Sys.Settings.Outside.PublicURL+"/blobs/"), link)
	r, err := http.Get(o.URL + of.RequestURI())
	require.NoError(t, err)
	defer r.Body.Close() // it was read
	content, err = io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, r.Header.Get("Content-Type"), content
}

// A sent picture is re-encoded and stored with the contact's files. It is deleted with the contact.
func TestAPictureIsSentFromAFile(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	channel := strconv.FormatInt(sales.ID, 10)
	asha := made(t, c, `{"name":"Asha","phone":"9812345678"}`)
	picture := apptest.Painted(t, color.White, 2100, 8)
	kept := func() []string {
		all, err := o.Sys.Blobs.List(t.Context(), fmt.Sprintf("files/messagingcontact-%d/", asha.ID))
		require.NoError(t, err)
		return all
	}

	sendFile(t, c, asha.ID, picture, "channelId", channel).Problem(409,
		"The person has not written in the last 24 hours: only templates can be sent")
	require.Empty(t, kept(), "what was not sent is not kept")
	heard(t, o, sales.ID, "919812345678", "w1", time.Now())
	sendFile(t, c, asha.ID, []byte("<html>"), "channelId", channel).Problem(400, "File must be an image")
	sendFile(t, c, asha.ID, nil, "channelId", channel).Problem(400, "File must be an image")
	sendFile(t, c, asha.ID, apptest.Painted(t, color.White, 6001, 1), "channelId", channel).
		Problem(413, "The picture is too large: at most 16 MB and 6000 x 6000 pixels")
	sendFile(t, c, asha.ID, picture).Problem(422, "Validation error", "channelId", "Channel not found")
	sendFile(t, c, asha.ID, picture, "channelId", "77").Problem(422, "Validation error", "channelId", "Channel not found")
	sendFile(t, c, asha.ID, picture, "channelId", channel, "caption", strings.Repeat("a", 1025)).
		Problem(422, "Validation error", "caption", "at most 1024 characters")
	sendFile(t, c, 77, picture, "channelId", channel).Problem(404, "Contact not found")
	require.Empty(t, kept())
	require.Len(t, conversation(t, c, asha.ID, ""), 1)

	sent := sendFile(t, c, asha.ID, picture, "channelId", channel, "caption", "A-204").Status(201)
	require.Len(t, kept(), 1)
	untilRead(t, c, asha.ID, 1)
	all := conversation(t, c, asha.ID, "")
	require.Len(t, all, 2)
	require.Equal(t, []string{"out", "image", "A-204"}, []string{all[0].Direction, all[0].Type, *all[0].Text})
	answered := apitest.Read[messagingview.Message](sent)
	require.Equal(t, all[0].ID, answered.ID)
	for _, link := range []string{*answered.MediaURL, *all[0].MediaURL} {
		status, kind, content := fetched(t, o, link)
		require.Equal(t, []any{200, "image/jpeg"}, []any{status, kind})
		shown, err := jpeg.DecodeConfig(bytes.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, image.Point{2048, 8}, image.Point{shown.Width, shown.Height})
	}

	// The sandbox cannot reach this phone: the message has failed, and shows its content.
	lost := made(t, c, `{"name":"Lost","phone":"9812345000"}`)
	heard(t, o, sales.ID, "919812345000", "w2", time.Now())
	sendFile(t, c, lost.ID, picture, "channelId", channel).Problem(422, "The network cannot reach the recipient (131026)")
	require.NotNil(t, conversation(t, c, lost.ID, "")[0].MediaURL)

	c.DELETE(at(asha.ID)).Status(204)
	require.Eventually(t, func() bool { return len(kept()) == 0 }, time.Minute, 10*time.Millisecond)
	status, _, _ := fetched(t, o, *all[0].MediaURL)
	require.Equal(t, http.StatusNotFound, status)
}
