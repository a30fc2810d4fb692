package apitest

import (
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tmaxmax/go-sse"
)

// Stream is a running stream of server-sent events, read as a browser reads it.
type Stream struct {
	t testing.TB

	Response *http.Response
	next     func() (sse.Event, error, bool)
}

// Stream requests a stream, and returns after the head of the response. The end of the test closes it.
func (c *Client) Stream(path string) *Stream {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.base+path, nil)
	require.NoError(c.t, err)
	request.Header = c.header.Clone()
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.http.Do(request)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		require.NoError(c.t, err)
		require.Equal(c.t, http.StatusOK, response.StatusCode, "GET %s: %s", path, text)
	}
	require.Equal(c.t, "text/event-stream", response.Header.Get("Content-Type"))
	next, stop := iter.Pull2(sse.Read(response.Body, nil))
	c.t.Cleanup(stop)
	return &Stream{t: c.t, Response: response, next: next}
}

// Next waits for the next event, decodes its data and returns its name, "" at the end of the stream.
func (s *Stream) Next(into any) (name, id string) {
	s.t.Helper()
	e, err, ok := s.next()
	require.NoError(s.t, err)
	if !ok {
		return "", ""
	}
	require.NoError(s.t, json.Unmarshal([]byte(e.Data), into), e.Data)
	return e.Type, e.LastEventID
}

// Close disconnects.
func (s *Stream) Close() { s.Response.Body.Close() }
