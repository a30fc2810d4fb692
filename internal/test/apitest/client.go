// Package apitest is a short notation for HTTP requests in tests:
//
//	seller.POST("/bank", `{"name":"HDFC"}`).Status(201).JSON(&account)
//	stranger.GET("/bank-ledger/7").Problem(404, "Bank account not found")
package apitest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Client is a caller. [Client.With] returns copies with further headers.
type Client struct {
	t      testing.TB
	base   string
	header http.Header
	http   *http.Client
}

// New returns a client of the server at base, a URL without a path. An empty bearer gives an anonymous client.
func New(t testing.TB, base, bearer string) *Client {
	c := &Client{t: t, base: strings.TrimSuffix(base, "/"), header: http.Header{}, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if bearer != "" {
		c.header.Set("Authorization", "Bearer "+bearer)
	}
	return c
}

// With returns a client that also sends these headers: names and values in turn. An empty value removes a header.
func (c *Client) With(headers ...string) *Client {
	other := *c
	other.header = c.header.Clone()
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			other.header.Del(headers[i])
		} else {
			other.header.Set(headers[i], headers[i+1])
		}
	}
	return &other
}

// In returns a client that reports to another test, such as a subtest.
func (c *Client) In(t testing.TB) *Client {
	other := *c
	other.t = t
	return &other
}

// At returns the same client for another server.
func (c *Client) At(base string) *Client {
	other := *c
	other.base = strings.TrimSuffix(base, "/")
	return &other
}

// GET requests a path.
func (c *Client) GET(path string) *Answer { c.t.Helper(); return c.Do("GET", path, nil) }

// DELETE sends DELETE to a path.
func (c *Client) DELETE(path string) *Answer { c.t.Helper(); return c.Do("DELETE", path, nil) }

// POST sends a body: a string or bytes unchanged, anything else as JSON.
func (c *Client) POST(path string, body any) *Answer { c.t.Helper(); return c.Do("POST", path, body) }

// PUT is like [Client.POST].
func (c *Client) PUT(path string, body any) *Answer { c.t.Helper(); return c.Do("PUT", path, body) }

// PATCH is like [Client.POST].
func (c *Client) PATCH(path string, body any) *Answer { c.t.Helper(); return c.Do("PATCH", path, body) }

// Do sends a request and reads the whole response.
func (c *Client) Do(method, path string, body any) *Answer {
	c.t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	case []byte:
		reader = bytes.NewReader(body)
	case io.Reader:
		reader = body
	default:
		text, err := json.Marshal(body)
		require.NoError(c.t, err)
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, reader)
	require.NoError(c.t, err)
	request.Header = c.header.Clone()
	if reader != nil && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	require.NoError(c.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return &Answer{t: c.t, what: method + " " + path, Response: response, Text: string(text)}
}

// Answer is the server's response.
type Answer struct {
	t    testing.TB
	what string

	Response *http.Response
	Text     string // the body
}

// Field is one entry of a problem's errors.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Problem is the body of a refusal.
type Problem struct {
	Detail    string  `json:"detail"`
	Code      string  `json:"code"`
	Status    int     `json:"status"`
	Title     string  `json:"title"`
	Errors    []Field `json:"errors"`
	RequestID string  `json:"request_id"`
}

// Status checks the status.
func (a *Answer) Status(status int) *Answer {
	a.t.Helper()
	require.Equal(a.t, status, a.Response.StatusCode, "%s: %s", a.what, a.Text)
	return a
}

// Problem checks that the request was refused with this detail. wrong are the fields that the response must list, in order: names and
// messages in turn.
func (a *Answer) Problem(status int, detail string, wrong ...string) *Answer {
	a.t.Helper()
	a.Status(status)
	kind := a.Response.Header.Get("Content-Type")
	require.Contains(a.t, []string{"application/problem+json", "application/json"}, kind, a.what)
	var p Problem
	require.NoError(a.t, json.Unmarshal([]byte(a.Text), &p), "%s: %s", a.what, a.Text)
	require.Equal(a.t, detail, p.Detail, "%s: %s", a.what, a.Text)
	require.Equal(a.t, status, p.Status, a.what)
	require.Equal(a.t, http.StatusText(status), p.Title, a.what)
	require.NotEmpty(a.t, p.Code, a.what)
	require.Equal(a.t, a.Header("X-Request-Id"), p.RequestID, a.what)
	if len(wrong) > 0 {
		var want []Field
		for i := 0; i+1 < len(wrong); i += 2 {
			want = append(want, Field{wrong[i], wrong[i+1]})
		}
		require.Equal(a.t, want, p.Errors, a.what)
	}
	return a
}

// JSON decodes the body into a value, which must have every field.
func (a *Answer) JSON(into any) *Answer {
	a.t.Helper()
	d := json.NewDecoder(strings.NewReader(a.Text))
	d.DisallowUnknownFields()
	require.NoError(a.t, d.Decode(into), "%s: %s", a.what, a.Text)
	return a
}

// Read returns the body of a response, in the type T.
func Read[T any](a *Answer) (body T) {
	a.t.Helper()
	a.JSON(&body)
	return body
}

// Body checks that the body is this JSON.
func (a *Answer) Body(want string) *Answer {
	a.t.Helper()
	require.JSONEq(a.t, want, a.Text, a.what)
	return a
}

// Contains checks that the body has these texts.
func (a *Answer) Contains(texts ...string) *Answer {
	a.t.Helper()
	for _, text := range texts {
		require.Contains(a.t, a.Text, text, a.what)
	}
	return a
}

// Header returns a header of the response.
func (a *Answer) Header(name string) string { return a.Response.Header.Get(name) }

// None checks that there is no body.
func (a *Answer) None() *Answer {
	a.t.Helper()
	require.Empty(a.t, a.Text, a.what)
	return a
}
