package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"bahi/domain/messaging/network"
)

// twitter is the API of direct messages, version 2 (CONTRACT.md 0.7, 0.9).
type twitter struct{ wire }

// attachment is an uploaded image.
type attachment struct {
	Media string `json:"media_id"`
}

// send implements adapter. The network requires images to be uploaded first.
func (n twitter) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	body := struct {
		Text        string       `json:"text,omitempty"`
		Attachments []attachment `json:"attachments,omitempty"`
	}{Text: m.Text}
	if m.Image != "" {
		id, failed := n.upload(ctx, a, m)
		if failed != nil {
			if failed.Reason == network.Unknown { // whatever happened to the image, no message was sent
				failed.Reason = network.Temporary
			}
			return "", failed
		}
		body.Attachments = []attachment{{id}}
	}
	var sent struct {
		Data struct {
			Event string `json:"dm_event_id"`
		} `json:"data"`
	}
	failed := n.ask(ctx, jsonCall(http.MethodPost, a.BaseURL+"/2/dm_conversations/with/"+url.PathEscape(m.To)+"/messages", a.AccessToken,
		body), &sent, twitterFailure)
	return identified(sent.Data.Event, failed)
}

// maxUploaded is the network's maximum size of an image, in bytes.
const maxUploaded = 5 << 20

// pictures are the types of images that the network accepts.
var pictures = []string{"image/jpeg", "image/png", "image/webp", "image/gif"}

// upload fetches an image from another server, uploads it, and returns the network's id of it. The image's server gets no credentials.
func (n twitter) upload(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	got, failed := answer{status: http.StatusOK, body: m.Picture}, (*network.Failure)(nil)
	if m.Picture == nil {
		got, failed = do(ctx, n.client, n.timeout, call{method: http.MethodGet, url: m.Image, most: maxUploaded})
	}
	switch {
	case failed != nil && failed.Reason == network.Refused: // it is too large
		return "", &network.Failure{Reason: network.Content}
	case failed != nil || got.status >= http.StatusInternalServerError: // not a fault of the network
		return "", &network.Failure{Reason: network.Unfetched}
	}
	kind := http.DetectContentType(got.body)
	if got.status != http.StatusOK || !slices.Contains(pictures, kind) {
		return "", &network.Failure{Reason: network.Content}
	}
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	err := errors.Join(parts.WriteField("media_category", "dm_image"), parts.WriteField("media_type", kind))
	file, fileErr := parts.CreateFormFile("media", "image")
	if err = errors.Join(err, fileErr); err == nil {
		_, err = file.Write(got.body)
	}
	if err = errors.Join(err, parts.Close()); err != nil {
		return "", &network.Failure{Reason: network.Content}
	}
	c := jsonCall(http.MethodPost, a.BaseURL+"/2/media/upload", a.AccessToken, nil)
	c.header.Set("Content-Type", parts.FormDataContentType())
	c.body = form.Bytes()
	var uploaded struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	failed = n.ask(ctx, c, &uploaded, twitterFailure)
	return identified(uploaded.Data.ID, failed)
}

// health implements adapter.
func (n twitter) health(ctx context.Context, a network.Account) (h network.Health, failed *network.Failure) {
	var me struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if failed := n.ask(ctx, jsonCall(http.MethodGet, a.BaseURL+"/2/users/me", a.AccessToken, nil), &me, twitterFailure); failed != nil {
		return h, failed
	}
	if me.Data.ID == "" {
		return h, &network.Failure{Reason: network.Unknown}
	}
	return network.Health{Identity: me.Data.ID, CanSend: "available"}, nil
}

// twitterFailure reads {"title","detail","status"}.
func twitterFailure(a answer) *network.Failure {
	var said struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Status number `json:"status"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Title == "" {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	reason := reasonOf(a.status)
	if a.status == http.StatusNotFound {
		reason = network.Recipient
	}
	f := a.failed(reason, a.status, said.Title, said.Detail)
	if reset, err := strconv.ParseInt(a.header.Get("X-Rate-Limit-Reset"), 10, 64); err == nil && reason == network.Throttled {
		f.After = max(f.After, min(time.Until(time.Unix(reset, 0)), longestWait))
	}
	return f
}
