package messaginghttp_test

import (
	"bytes"
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

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
	"bahi/readmodels/messagingview"
)

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
