package messaginghttp_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
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
