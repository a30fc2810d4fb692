package apptest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Attached runs a command on the database of a served system.
func Attached(t *testing.T, o *Server, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore,
		"BAHI_ADDR="+strings.TrimPrefix(o.URL, "http://"))
	return Execute(t, cmd)
}

// Done runs a command on the system's database, and returns its output.
func (o *Server) Done(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	out, wrong, status := Attached(t, o, args...)
	require.Equal(t, 0, status, out+wrong)
	return out
}

// Denied runs a command on the system's database that must fail with this reason.
func (o *Server) Denied(t *testing.T, why string, args ...string) {
	t.Helper()
	_, wrong, status := Attached(t, o, args...)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, why)
}
