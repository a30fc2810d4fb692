package apptest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
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
