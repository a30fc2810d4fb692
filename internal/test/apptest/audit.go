package apptest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// AuditCheckpoint is a checkpoint in the form for clients.
type AuditCheckpoint struct {
	Number    int64          `json:"number"`
	Size      uint64         `json:"size"`
	Root      []byte         `json:"root"`
	Position  event.Position `json:"position"`
	SignedAt  time.Time      `json:"signed_at"`
	Note      string         `json:"note"`
	Abandoned int64          `json:"abandoned"`
}

// Signed waits until all events are signed.
func (o *Server) Signed() AuditCheckpoint {
	o.T.Helper()
	head := o.Head()
	var newest AuditCheckpoint
	require.Eventually(o.T, func() bool {
		a := o.Operator().GET("/audit/checkpoint")
		if a.Response.StatusCode != http.StatusOK {
			a.Problem(503, "Nothing has been signed yet: a checkpoint is signed within a second or two of the first event")
			return false
		}
		newest = AuditCheckpoint{}
		a.JSON(&newest)
		return newest.Position >= event.Position(head)
	}, time.Minute, 20*time.Millisecond)
	return newest
}

// PublicKeys returns the log's public keys, as an auditor gets them.
func (o *Server) PublicKeys() tlog.Keys {
	o.T.Helper()
	keys, err := tlog.ParseKeys(o.Operator().GET("/audit/key?format=text").Status(200).Text)
	require.NoError(o.T, err)
	return keys
}

// AuditEvent is an event in the form for clients.
type AuditEvent struct {
	Position event.Position  `json:"position"`
	Stream   string          `json:"stream"`
	Revision int64           `json:"revision"`
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	At       time.Time       `json:"recorded_at"`
	Meta     json.RawMessage `json:"metadata"`
	Data     json.RawMessage `json:"data"`
	Leaf     tlog.Hash       `json:"leaf_hash"`
}

// AuditEvents returns all pages of a search.
func (o *Server) AuditEvents(token, query string) (all []AuditEvent) {
	o.T.Helper()
	for path := "/audit/events?" + query; path != ""; {
		a := o.Bearer(token).GET(path).Status(200)
		var page []AuditEvent
		a.JSON(&page)
		all = append(all, page...)
		link := a.Header("Link")
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return all
}

// following is a stream of server-sent events.
type following struct {
	t     *testing.T
	Lines *bufio.Scanner
}

func (o *Server) Follow(token, path, last string) *following {
	o.T.Helper()
	request, err := http.NewRequestWithContext(o.T.Context(), http.MethodGet, o.URL+path, nil)
	require.NoError(o.T, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.T, err)
	o.T.Cleanup(func() { response.Body.Close() })
	require.Equal(o.T, 200, response.StatusCode)
	return &following{o.T.(*testing.T), bufio.NewScanner(response.Body)}
}

// Next returns the id and the data of the next event.
func (f *following) Next() (id string, e AuditEvent) {
	f.t.Helper()
	for f.Lines.Scan() {
		if after, ok := strings.CutPrefix(f.Lines.Text(), "id: "); ok {
			id = after
		}
		if after, ok := strings.CutPrefix(f.Lines.Text(), "data: "); ok {
			require.NoError(f.t, json.Unmarshal([]byte(after), &e))
			return id, e
		}
	}
	require.NoError(f.t, f.Lines.Err())
	require.Fail(f.t, "the stream ended")
	return "", e
}
