package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/internal/test/apptest"
)

func TestShellExportsCheckpointsKeysAndProofs(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	o.Signed()
	public := o.Done(t, "audit", "key")
	require.Equal(t, o.Operator().GET("/audit/key?format=text").Status(200).Text, public)
	keys, err := tlog.ParseKeys(public)
	require.NoError(t, err)
	note := o.Done(t, "audit", "checkpoint")
	c, _, err := keys.Open([]byte(note))
	require.NoError(t, err)
	require.EqualValues(t, o.Head(), c.Size)
	file := o.Done(t, "audit", "proof", "2")
	read, err := tlog.ParseProofs([]byte(file))
	require.NoError(t, err)
	_, _, err = keys.Verify(read[0])
	require.NoError(t, err)
	o.Denied(t, "position: is not in a tree of", "audit", "proof", "1000")

	dir := filepath.Join(t.TempDir(), "archive")
	kept := filepath.Join(t.TempDir(), "bahi.keys")
	require.NoError(t, os.WriteFile(kept, []byte(public), 0o600))
	out := o.Done(t, "audit", "export", dir)
	require.Regexp(t, `^\d+ events of the log \S+; segments: 1, checkpoints: \d+\n$`, out)
	out = o.Done(t, "audit", "verify", dir, "--key", kept)
	require.Contains(t, out, "VERIFIED")
	out, _, status := apptest.Attached(t, o, "audit", "verify", dir)
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL")
	out = o.Done(t, "audit", "verify", "--store")
	require.Contains(t, out, "VERIFIED")
	for _, args := range [][]string{{}, {dir, "--store"}} {
		_, wrong, status := apptest.Attached(t, o, append([]string{"audit", "verify"}, args...)...)
		require.Equal(t, 2, status)
		require.Contains(t, wrong, "name one of the two: an archive's folder, or the log with --store")
	}
	_, wrong, status := apptest.Attached(t, o, "audit", "verify", "--store", "--checkpoint", kept)
	require.Equal(t, 2, status, "it says nothing against the log")
	require.Contains(t, wrong, "bahi.keys")
	_, wrong, status = apptest.Attached(t, o, "audit", "verify", t.TempDir())
	require.Equal(t, 2, status)
	require.Contains(t, wrong, "is no archive")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{}`), 0o600))
	o.Denied(t, "the archive is broken", "audit", "verify", dir)

	// A server signs with a key that was rotated beside it.
	next := strings.TrimSpace(o.Done(t, "audit", "rotate-key", "--reason", "yearly"))
	told := o.AuditEvents(apptest.OperatorKey, "type=AuditKeyRotated")
	require.Len(t, told, 1)
	require.Contains(t, string(told[0].Data), `"to":"`+next)
	apptest.Open(clerk, "SBI")
	keys = o.PublicKeys()
	require.Equal(t, 2, keys.Len())
	require.Eventually(t, func() bool { // the checkpoint of the rotation has both signatures
		_, by, err := keys.Open([]byte(o.Signed().Note))
		require.NoError(t, err)
		apptest.Open(clerk, "Axis")
		return len(by) == 1 && strings.Contains(next, by[0].ID)
	}, time.Minute, 10*time.Millisecond)
}
