package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"bahi/domain/messaging/network"
)

// twitter is the API of direct messages, version 2 (CONTRACT.md 0.7, 0.9).
type twitter struct{ wire }

// send implements adapter. An image is a link in the text: the network takes only images that were uploaded to it.
func (n twitter) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	var sent struct {
		Data struct {
			Event string `json:"dm_event_id"`
		} `json:"data"`
	}
	failed := n.ask(ctx, jsonCall(http.MethodPost, a.BaseURL+"/2/dm_conversations/with/"+url.PathEscape(m.To)+"/messages", a.AccessToken,
		map[string]string{"text": linked(m)}), &sent, twitterFailure)
	return identified(sent.Data.Event, failed)
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
		return nil //nolint:nilerr // an answer that cannot be read says nothing
	}
	code, reason := a.status, network.Refused
	switch {
	case code == http.StatusUnauthorized:
		reason = network.Credentials
	case code == http.StatusForbidden, code == http.StatusNotFound:
		reason = network.Recipient
	case code == http.StatusBadRequest:
		reason = network.Content
	case code == http.StatusTooManyRequests:
		reason = network.Throttled
	case code >= http.StatusInternalServerError:
		reason = network.Temporary
	}
	f := a.failed(reason, code, said.Title, said.Detail)
	if reset, err := strconv.ParseInt(a.header.Get("X-Rate-Limit-Reset"), 10, 64); err == nil && reason == network.Throttled {
		f.After = max(f.After, min(time.Until(time.Unix(reset, 0)), longestWait))
	}
	return f
}
