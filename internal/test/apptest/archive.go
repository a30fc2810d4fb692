package apptest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// on runs a command on a database, with or without a server.
func on(t *testing.T, url string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+url)
	return Execute(t, cmd)
}

// Done runs a command that must succeed.
func Done(t *testing.T, url string, args ...string) (stdout, stderr string) {
	t.Helper()
	out, wrong, status := on(t, url, args...)
	require.Equal(t, 0, status, out+wrong)
	return out, wrong
}

// Denied runs a command that must fail with this reason.
func Denied(t *testing.T, url, why string, args ...string) {
	t.Helper()
	_, wrong, status := on(t, url, args...)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, why)
}
