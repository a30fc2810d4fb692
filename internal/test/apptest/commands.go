package apptest

import (
	"strings"
	"testing"
)

// Attached runs a command on the database of a served system.
func Attached(t *testing.T, o *Server, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore,
		"BAHI_ADDR="+strings.TrimPrefix(o.URL, "http://"))
	return Execute(t, cmd)
}
