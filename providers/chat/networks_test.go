package chat_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/providers/chat"
)

func TestMailsToOneAddressAreAThread(t *testing.T) {
	t.Parallel()
	d := dialects["gmail"]
	var body atomic.Pointer[[]byte]
	n := d.served(t, func(_ *http.Request, b []byte) { body.Store(&b) })
	parent := func(channel int64, to string) string {
		a := d.account
		a.Channel = channel
		_, err := n.Send(t.Context(), a, d.message(to, ""))
		require.NoError(t, err)
		text := letter(*body.Load())
		id := between(text, "In-Reply-To: <", ">")
		require.NotEmpty(t, id)
		require.Equal(t, id, between(text, "References: <", ">"))
		return id
	}
	first := parent(1, phone)
	require.Equal(t, first, parent(1, phone))
	require.NotEqual(t, first, parent(2, phone))
	require.NotEqual(t, first, parent(1, phone+"1"))
}

func TestAMailSaysNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	d := dialects["gmail"]
	var body atomic.Pointer[[]byte]
	n := d.served(t, func(_ *http.Request, b []byte) { body.Store(&b) })
	_, err := n.Send(t.Context(), d.account, d.message(phone, ""))
	require.NoError(t, err)
	text := letter(*body.Load())
	require.True(t, strings.HasSuffix(between(text, "Message-ID: <", ">"), "@message.bahi.invalid"), text)
	require.NotContains(t, text, "go-mail")
}

// If an image cannot be uploaded, no message is sent.
func TestAnImageThatCannotBeUploadedIsNotSent(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	var base atomic.Pointer[string]
	n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case pixelAt:
			_, _ = w.Write(pixel)
		case "/page":
			_, _ = io.WriteString(w, "<html>")
		case "/large":
			_, _ = w.Write(append(bytes.Clone(pixel), make([]byte, 5<<20)...))
		case "/down":
			w.WriteHeader(http.StatusBadGateway)
		case "/2/media/upload":
			panic(http.ErrAbortHandler) // the connection breaks
		default:
			if strings.HasSuffix(r.URL.Path, "/messages") {
				sent.Add(1)
			}
			base.Store(new("http://" + r.Host))
			_, _ = io.WriteString(w, `{"data":{"dm_event_id":"e1"}}`)
		}
	}))
	d := dialects["twitter"]
	_, err := n.Send(t.Context(), d.account, d.message(phone, ""))
	require.NoError(t, err)
	for path, reason := range map[string]network.Reason{
		"/page": network.Content, "/large": network.Content, "/gone/": network.Content, "/down": network.Unfetched, pixelAt: network.Temporary,
	} {
		_, err := n.Send(t.Context(), d.account, d.message(phone, *base.Load()+path))
		require.Equal(t, reason, chat.AsFailure(err).Reason, path)
	}
	for range 6 { // more than the allowed calls without a response
		_, err := n.Send(t.Context(), d.account, d.message(phone, "http://127.0.0.1:1"+pixelAt))
		require.Equal(t, network.Unfetched, chat.AsFailure(err).Reason)
	}
	_, err = n.Send(t.Context(), d.account, d.message(phone, ""))
	require.NoError(t, err, "a missing image is not a fault of the network")
	require.EqualValues(t, 2, sent.Load(), "only the texts")
}

// A picture of ours is uploaded without a request to ourselves.
func TestAPictureOfOursIsUploaded(t *testing.T) {
	t.Parallel()
	var uploaded atomic.Bool
	n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/2/media/upload" {
			uploaded.Store(bytes.Contains(bodyOf(r), pixel))
			_, _ = io.WriteString(w, `{"data":{"id":"m1"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":{"dm_event_id":"e1"}}`)
	}))
	d := dialects["twitter"]
	m := d.message(phone, "http://127.0.0.1:1"+pixelAt)
	m.Picture = pixel
	_, err := n.Send(t.Context(), d.account, m)
	require.NoError(t, err)
	require.True(t, uploaded.Load())
}

// A mail names the network's thread of the previous one. If the account's owner has deleted the thread, it starts a new one.
func TestMailsStayInTheNetworksThread(t *testing.T) {
	t.Parallel()
	var asked []string
	gone := false
	n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := field(bodyOf(r), "threadId")
		asked = append(asked, of) // calls come one after the other
		if of != "" && gone {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":404,"message":"Requested entity was not found."}}`)
			return
		}
		if of == "" {
			of = "t1"
		}
		_, _ = io.WriteString(w, `{"id":"g1","threadId":"`+of+`"}`)
	}))
	d := dialects["gmail"]
	m := d.message(phone, "")
	m.Thread = new("")
	for range 2 {
		_, err := n.Send(t.Context(), d.account, m)
		require.NoError(t, err)
		require.Equal(t, "t1", *m.Thread)
	}
	gone = true
	_, err := n.Send(t.Context(), d.account, m)
	require.NoError(t, err)
	m.Thread = nil
	_, err = n.Send(t.Context(), d.account, m)
	require.NoError(t, err, "nobody asks for threads")
	require.Equal(t, []string{"", "t1", "t1", "", ""}, asked)
}

// Few workers fetch the files of all channels: a hanging server must not occupy each of them for a call's whole timeout.
func TestFilesThatDoNotComeAreNotWaitedForOneByOne(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var base atomic.Pointer[string]
	n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base.Store(new("http://" + r.Host))
		switch r.URL.Path {
		case pixelAt:
			_, _ = w.Write(pixel)
		case "/broken":
			asked.Add(1)
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = io.WriteString(w, `{"id":"g1"}`)
		}
	}))
	d := dialects["gmail"]
	_, err := n.Send(t.Context(), d.account, d.message(phone, ""))
	require.NoError(t, err)
	fetch := func(channel int64, path string) error {
		a := d.account
		a.Channel = channel
		_, _, err := n.File(t.Context(), a, *base.Load()+path)
		return err
	}
	for range 7 {
		require.Error(t, fetch(1, "/broken"))
	}
	require.EqualValues(t, 5, asked.Load())
	require.Error(t, fetch(1, pixelAt), "the channel rests")
	require.NoError(t, fetch(2, pixelAt), "other channels do not")
	a := d.account
	a.Channel = 1
	_, err = n.Send(t.Context(), a, d.message(phone, ""))
	require.NoError(t, err, "nor does sending")
}
