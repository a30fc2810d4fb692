package apptest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
