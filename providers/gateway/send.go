package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Reply is a text to a person who wrote.
type Reply struct {
	ID   string // ours, the same for each attempt
	To   string // digits of the phone
	Text string
}

// Refused is an error that another attempt would not mend, or would send the reply twice: the aggregator refused it, or may have taken it.
type Refused struct {
	Status  int  // the aggregator's; 0: none was received
	Unknown bool // the aggregator may have taken the reply
}

// Error implements error. It names nobody.
func (r *Refused) Error() string {
	if r.Unknown {
		return "the gateway may have taken the reply, and was not asked again"
	}
	return fmt.Sprintf("the gateway refused the reply with status %d", r.Status)
}

// Settings configure an aggregator.
type Settings struct {
	BaseURL string // https://api.example.com/wa/api/v1; the path /msg is added
	APIKey  string
	Source  string // our own phone; empty: the aggregator knows it by the key and the app
	App     string // name of the app at the aggregator
	Channel string // the network's name at the aggregator
}

// Client sends replies by an aggregator's HTTP interface.
type Client struct {
	settings Settings
	http     *http.Client
	breaker  *gobreaker.CircuitBreaker[string]
}

const (
	sendWithin   = 10 * time.Second
	trusted      = 5 // failed calls in a row, after which the aggregator is left alone for a minute
	mostAnswered = 64 << 10
)

// NewClient returns a client. transport is nil for the default one.
func NewClient(settings Settings, transport http.RoundTripper) (*Client, error) {
	u, err := url.Parse(settings.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("expected an address like https://api.example.com/wa/api/v1")
	case settings.APIKey == "":
		return nil, errors.New("a gateway needs its API key")
	case settings.Source != "" && digits(settings.Source) == "":
		return nil, errors.New("our own phone has no digits")
	}
	settings.BaseURL, settings.Source = strings.TrimRight(settings.BaseURL, "/"), digits(settings.Source)
	return &Client{settings, &http.Client{
		Timeout: sendWithin, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the key
	}, gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= trusted },
		IsSuccessful: func(err error) bool { // a refusal says nothing about the aggregator
			refused, final := errors.AsType[*Refused](err)
			return err == nil || final && !refused.Unknown
		},
	})}, nil
}

// Send sends a reply and returns the aggregator's id of it. The error is a [*Refused] unless another attempt may follow: only after a
// connection that failed, an answer of 429 that took nothing, or without a call, while the aggregator is left alone.
func (c *Client) Send(ctx context.Context, r Reply) (id string, err error) {
	id, err = c.breaker.Execute(func() (string, error) { return c.send(ctx, r) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return "", errors.New("the gateway was not called, since it failed too often")
	}
	return id, err
}

func (c *Client) send(ctx context.Context, r Reply) (id string, err error) {
	message, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", r.Text})
	if err != nil {
		return "", fmt.Errorf("encode a reply: %w", err)
	}
	form := url.Values{
		"channel": {c.settings.Channel}, "destination": {digits(r.To)}, "src.name": {c.settings.App}, "message": {string(message)},
	}
	if c.settings.Source != "" {
		form.Set("source", c.settings.Source)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.BaseURL+"/msg", strings.NewReader(form.Encode()))
	if err != nil {
		return "", errors.New("the gateway's address cannot be called")
	}
	request.Header.Set("Content-Type", formType)
	request.Header.Set("Apikey", c.settings.APIKey)
	connected := false
	request = request.WithContext(traced(ctx, &connected))
	answer, err := c.http.Do(request)
	if err != nil {
		if connected {
			return "", &Refused{Unknown: true}
		}
		return "", errors.New("the gateway cannot be reached") // the library's error has the address and its query
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswered))
	var said struct {
		Status    string `json:"status"`
		MessageID text   `json:"messageId"`
	}
	unread := err != nil || json.Unmarshal(body, &said) != nil
	switch {
	case answer.StatusCode == http.StatusTooManyRequests:
		return "", errors.New("the gateway has had too many calls")
	case answer.StatusCode >= http.StatusInternalServerError, unread && answer.StatusCode < http.StatusMultipleChoices:
		return "", &Refused{Status: answer.StatusCode, Unknown: true}
	case answer.StatusCode >= http.StatusMultipleChoices || said.Status != "submitted":
		return "", &Refused{Status: answer.StatusCode}
	}
	return string(said.MessageID), nil
}

// Sandbox accepts every reply and sends none. What it accepted is in the outbox, where every reply is recorded.
type Sandbox struct{}

// Send implements the same as [Client.Send].
func (Sandbox) Send(_ context.Context, r Reply) (id string, err error) {
	if digits(r.To) == "" {
		return "", &Refused{}
	}
	return "sandbox-" + r.ID, nil
}
