package readme

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

// past is what a program returned, by path.
type past map[string]string

// holds checks that a server returns the same.
func (p past) holds(t *testing.T, c *apitest.Client) {
	t.Helper()
	for path, text := range p {
		require.JSONEq(t, text, c.GET(path).Status(200).Text, path)
	}
}

const (
	oldCommit = "377ea36"          // the program of the upgrade
	oldBooks  = "testdata/f38effb" // the log of an older one
)

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text := worktest.File(t, path)
	require.NoError(t, json.Unmarshal(text, into))
}
