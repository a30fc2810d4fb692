package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/go-retryablehttp"
)

// The parts of the protocol's requests that this package uses. The vendor's library has thousands of types, and compiling them took a
// quarter of the build. It also reads responses less leniently.
type (
	completionRequest struct {
		Model          string          `json:"model"`
		Messages       []messageParam  `json:"messages"`
		Temperature    *float64        `json:"temperature,omitempty"`
		MaxTokens      int64           `json:"max_tokens,omitempty"`
		NewMaxTokens   int64           `json:"max_completion_tokens,omitempty"`
		Tools          []toolParam     `json:"tools,omitempty"`
		ResponseFormat *responseFormat `json:"response_format,omitempty"`
	}

	messageParam struct {
		Role    Role        `json:"role"`
		Content any         `json:"content"` // a text, parts, or null beside calls
		Calls   []callParam `json:"tool_calls,omitempty"`
		CallID  string      `json:"tool_call_id,omitempty"`
	}

	part struct {
		Type     string    `json:"type"`
		Text     string    `json:"text,omitempty"`
		ImageURL *imageURL `json:"image_url,omitempty"`
	}

	imageURL struct {
		URL string `json:"url"`
	}

	callParam struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}

	toolParam struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}

	function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"` // parameters of a tool
		Arguments   *string         `json:"arguments,omitempty"`  // arguments of a call
	}

	responseFormat struct {
		Type       string        `json:"type"`
		JSONSchema *answerSchema `json:"json_schema,omitempty"`
	}

	answerSchema struct {
		Name   string             `json:"name"`
		Strict bool               `json:"strict"`
		Schema *jsonschema.Schema `json:"schema"`
	}

	embeddingRequest struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
)

// firstPause is the maximum pause before the second try.
const firstPause = time.Second

// serverOf returns an HTTP client for a server. If the server fails, the client retries: after Retry-After, else after a pause with jitter.
func serverOf(c Config) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     c.Transport,
			Timeout:       c.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the redirect's server would get the key
		},
		RetryMax: tries - 1, RetryWaitMin: min(firstPause, c.LongestPause) / 2, RetryWaitMax: min(firstPause, c.LongestPause),
		Backoff: retryablehttp.RateLimitLinearJitterBackoff, ErrorHandler: retryablehttp.PassthroughErrorHandler,
		CheckRetry: func(ctx context.Context, res *http.Response, err error) (bool, error) {
			switch late, timed := errors.AsType[net.Error](err); {
			case ctx.Err() != nil:
				return false, ctx.Err()
			case err != nil:
				return !timed || !late.Timeout(), nil // a silent server would be silent again
			case res.StatusCode == http.StatusTooManyRequests, res.StatusCode >= http.StatusInternalServerError:
				return retryablehttp.RateLimitLinearJitterBackoff(0, 0, 0, res) <= c.LongestPause, nil
			}
			return false, nil
		},
	}
}

// send posts a request. It does not check the response's content type, because servers differ. Status 0 means that there was no response.
func (c *Client) send(ctx context.Context, path string, asked any) (status int, body []byte, err error) {
	text, err := json.Marshal(asked)
	if err != nil {
		return 0, nil, err
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.config.BaseURL, "/")+"/"+path, text)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.config.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.config.Key)
	}
	res, err := c.server.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // the body was read, or its error is returned
	body, err = io.ReadAll(http.MaxBytesReader(nil, res.Body, maxBytes))
	return res.StatusCode, body, err
}
