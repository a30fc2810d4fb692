package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/internal/test/apitest"
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
		page := apitest.Read[[]AuditEvent](a)
		all = append(all, page...)
		link := a.Header("Link")
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return all
}

// Trail is the report as JSON.
type Trail struct {
	Drawn struct {
		Store      string    `json:"store_id"`
		Position   int64     `json:"position"`
		RecordedAt time.Time `json:"recorded_at"`
		Checkpoint string    `json:"checkpoint"`
	} `json:"drawn_from"`
	Days struct {
		From, To, By, Period string
	} `json:"days"`
	Changes      []TrailChange `json:"changes"`
	Restatements []struct {
		Account    struct{ Name string }
		Closing    string
		FiscalYear string `json:"fiscal_year"`
		Unit       string
		From, To   *json.Number
		Changes    int
	} `json:"restatements"`
}

type TrailChange struct {
	Position   int64
	RecordedAt time.Time `json:"recorded_at"`
	Workspace  string
	Actor      string
	Reason     string
	Change     string
	Kind       string
	ID         string
	Ledger     string
	Account    *struct {
		ID   int64
		Name string
	}
	Date   string
	Fields []trailField
}

type trailField struct {
	Field    string
	From, To json.RawMessage
}

// Auditor returns a client with an auditor's permissions in a workspace.
func (o *Server) Auditor(workspace string) *apitest.Client {
	o.T.Helper()
	return apitest.New(o.T, o.URL, o.Key(workspace, `{"audit":"read"}`).Key)
}

func TrailOf(c *apitest.Client, query string) (t Trail) {
	a := c.GET("/audit/trail" + query).Status(200)
	if err := json.Unmarshal([]byte(a.Text), &t); err != nil {
		panic(err.Error() + ": " + a.Text)
	}
	return t
}

// Short returns one line for each change of a trail.
func (t Trail) Short() (lines []string) {
	for _, c := range t.Changes {
		line := c.Kind + " " + c.Change
		for _, f := range c.Fields {
			line += fmt.Sprintf(" %s:%s>%s", f.Field, f.From, f.To)
		}
		lines = append(lines, line)
	}
	return lines
}

func Each[T, U any](list []T, do func(T) U) (out []U) {
	for _, one := range list {
		out = append(out, do(one))
	}
	return out
}

// Past moves all events of the log days into the past, where the log is stored.
func (o *Server) Past(days int) {
	o.T.Helper()
	o.Sql(`update log.event set recorded_at = recorded_at - make_interval(days => $1)`, days)
}

// Checkpoints returns all signed checkpoints, in their order.
func (o *Server) Checkpoints() (all []AuditCheckpoint) {
	o.T.Helper()
	o.Operator().GET("/audit/checkpoints").Status(200).JSON(&all)
	return all
}

// Rotated rotates the key for checkpoints.
func (o *Server) Rotated() {
	o.T.Helper()
	_, wrong, status := Attached(o.T.(*testing.T), o, "audit", "rotate-key", "--reason", "yearly")
	require.Equal(o.T, 0, status, wrong)
}

const AuditStream = "/audit/events/stream?category=bank"
