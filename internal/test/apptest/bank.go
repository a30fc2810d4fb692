package apptest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/pdftest"
)

// Lenient decodes a response, and ignores unknown fields.
func Lenient(t *testing.T, a *apitest.Answer, into any) {
	t.Helper()
	a.Status(200)
	require.NoError(t, json.Unmarshal([]byte(a.Text), into))
}

func MustTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// Bulk returns the body of rows posted together.
func Bulk(rows ...string) string { return `{"rows":[` + strings.Join(rows, ",") + `]}` }

func Posted(a *apitest.Answer) []BankRow {
	var p struct {
		Rows []BankRow `json:"rows"`
	}
	a.JSON(&p)
	return p.Rows
}

// TodayIn returns today in the workshop's zone. If the day lasts only minutes more, it waits for the next day. A test calls it before it
// uses a date.
func TodayIn(t *testing.T, o *Server) string {
	t.Helper()
	zone, err := o.Sys.Settings.Zone()
	require.NoError(t, err)
	now := time.Now().In(zone)
	if next := now.Add(3 * time.Minute); next.Day() != now.Day() {
		<-time.After(time.Until(time.Date(next.Year(), next.Month(), next.Day(), 0, 0, 1, 0, zone)))
		now = time.Now().In(zone)
	}
	return now.Format(time.DateOnly)
}

// Change is a step of a row's history.
type Change struct {
	Position int64    `json:"position"`
	At       string   `json:"at"`
	Actor    string   `json:"actor"`
	Reason   string   `json:"reason"`
	Change   string   `json:"change"`
	Before   *BankRow `json:"before"`
	After    *BankRow `json:"after"`
}

// Words returns the text of a PDF, with single spaces.
func Words(t *testing.T, a *apitest.Answer) string {
	t.Helper()
	require.Equal(t, "application/pdf", a.Status(200).Header("Content-Type"))
	return pdftest.Read(t, []byte(a.Text)).Words()
}

const Locked = "Books are locked through 2025-03-31"
