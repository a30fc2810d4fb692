package apptest

import (
	"encoding/json"
	"fmt"
	"time"

	"bahi/internal/test/apitest"
)

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
