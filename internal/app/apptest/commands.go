package apptest

import (
	"testing"
)

// Attached is a command on a database, beside whoever serves it.
func Attached(t *testing.T, o *Office, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore)
	return Execute(t, cmd)
}
