package messaginghttp_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

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
