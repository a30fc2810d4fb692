package chat

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"bahi/domain/messaging/network"
)

// Lookup requests from a service whether a phone is on the chat network (CONTRACT.md 3.1.6). It posts {"phone": "+919812345678"}; the
// response is {"is_chat": true}.
type Lookup struct {
	url string
	wire
}

const lookupTimeout = 5 * time.Second // a person waits for it

// NewLookup returns a lookup at an address.
func NewLookup(address string, client *http.Client) (*Lookup, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("CHAT_LOOKUP_URL: expected an address like https://lookup.example.org")
	}
	return &Lookup{url: address, wire: wire{client: client, timeout: lookupTimeout}}, nil
}

// OnChat returns the service's result. After an error the result is unknown.
func (l *Lookup) OnChat(ctx context.Context, phone string) (bool, error) {
	var said struct {
		IsChat *bool `json:"is_chat"`
	}
	failed := l.ask(ctx, jsonCall(http.MethodPost, l.url, "", map[string]string{"phone": phone}), &said,
		func(answer) *network.Failure { return nil })
	switch {
	case failed != nil:
		return false, failed
	case said.IsChat == nil:
		return false, &network.Failure{Reason: network.Unknown}
	}
	return *said.IsChat, nil
}
