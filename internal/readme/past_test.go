package readme

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
	"bahi/internal/app/apptest"
)

// past is what a program returned, by path.
type past map[string]string

// remember reads the accounts and a page of their rows as they are now, for ever.
func (p past) remember(c *apitest.Client, accounts ...int64) {
	at := c.GET("/banks").Status(200).Header("Bahi-Position")
	paths := []string{"/banks?known_at=" + at, "/banks?as_of=2025-06-30&known_at=" + at}
	for _, account := range accounts {
		paths = append(paths, apptest.Ledger(account, "?page_size=200&known_at="+at), apptest.Ledger(account, "?from=2025-04-01&to=2025-04-30&page_size=200&known_at="+at))
	}
	for _, path := range paths {
		p[path] = c.GET(path).Status(200).Text
	}
}

// holds checks that a server returns the same.
func (p past) holds(t *testing.T, c *apitest.Client) {
	t.Helper()
	for path, text := range p {
		require.JSONEq(t, text, c.GET(path).Status(200).Text, path)
	}
}

const (
	oldCommit = "6b1a895"
	oldBooks  = "testdata/" + oldCommit
)

// positionOf returns the position of an answer.
func positionOf(t *testing.T, a *apitest.Answer) int64 {
	t.Helper()
	n, err := strconv.ParseInt(a.Header("Bahi-Position"), 10, 64)
	require.NoError(t, err)
	return n
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}
