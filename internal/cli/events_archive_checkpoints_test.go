package cli_test

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/cli/events"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/pgtest"
)

func TestImportBesideTheOriginalSignsWithItsOwnKey(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.5"))
	o.Rotated()
	// An accepted restore names the checkpoints that it abandons by number; a copy numbers them differently.
	lost, err := audit.Kind.Encode(uuid.New(), audit.RestoreAccepted{LastNumber: 40, Abandoned: 3, Reason: "the disk burnt"},
		event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	_, err = o.Sys.Store.Append(t.Context(), eventstore.To(audit.Kind.Stream(audit.Log), eventstore.Any, lost))
	require.NoError(t, err)
	o.Signed()
	keys := o.PublicKeys()
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	apptest.Done(t, o.Database, "events", "export", with, "--with-keys")
	apptest.Done(t, o.Database, "events", "export", without)
	require.NoFileExists(t, filepath.Join(without, events.KeysFile))
	o.Stop()
	for name, args := range map[string][]string{
		"without the keys": {without}, "under another name": {with, "--new-store-id"},
		"under another name and without the keys": {without, "--new-store-id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := apptest.Migrated(t)
			if len(args) > 1 && args[0] == without {
				copied = apptest.Database(t) // a Bahi has run on it and made a key
			}
			_, wrong := apptest.Done(t, copied, append([]string{"events", "import"}, args...)...)
			require.Contains(t, wrong, "They are another installation's; this one signs with a key of its own.")
			c := apptest.StartOn(t, copied)
			apptest.Readiness(t, c.Operator())
			newest := c.Signed()
			_, _, err := keys.Open([]byte(newest.Note))
			require.Error(t, err, "trust in the former keys does not extend to this key")
			signed, _, err := c.PublicKeys().Open([]byte(newest.Note))
			require.NoError(t, err)
			require.Equal(t, tlog.Origin(c.Sys.Store.ID()), signed.Origin)
			require.Equal(t, len(args) > 1, o.Sys.Store.ID() != c.Sys.Store.ID())
			told := c.AuditEvents(apptest.OperatorKey, "type=AuditKeyRotated")
			require.Len(t, told, 2)
			require.Contains(t, string(told[1].Data), "the key that signed it before is not in this installation")
			if args[0] == without {
				require.Contains(t, wrong, "The archive has no keys. Its events' values of 1 people and secrets stay sealed permanently")
				require.Empty(t, apptest.Opened(t, copied))
				require.NotEmpty(t, c.Person("asha@example.com").Workspace, "a new sign-up is a new user")
			}
			workspace := c.Operator().With("Bahi-Workspace", asha.Workspace)
			require.Equal(t, "03-01 12.5", apptest.Balances(workspace, apptest.Ledger(account)), "the books are not sealed")
			c.Rotated()
			c.Stop()
			c = apptest.StartOn(t, copied)
			c.Signed()
			for _, checkpoint := range c.Checkpoints() {
				require.Zero(t, checkpoint.Abandoned, "checkpoint %d", checkpoint.Number)
				require.Greater(t, checkpoint.Number, int64(40))
			}
			c.Done(t, "audit", "verify", "--store")
		})
	}
}

func TestArchiveWithForeignCheckpointsIsNotImported(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 10)
	forged := l.Forged(func(e []event.Stored) []event.Stored { e[6].Data = []byte(`{"amount":1}`); return e })
	copied := pgtest.DB(t)
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: the events differ from those of the checkpoint of 8 events",
		"events", "import", forged.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 8), l.Checkpoint(t, 10)))
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: checkpoint 1: the checkpoint is not signed by a trusted key",
		"events", "import", exchanged(t, l, audittest.New(t, 1).Key.Public(), l.Checkpoint(t, 10)))
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: it has a checkpoint of 10 events, but only 9 events",
		"events", "import", exchanged(t, l.Forged(func(e []event.Stored) []event.Stored { return e[:9] }), l.Key.Public(), l.Checkpoint(t, 10)))

	// The operator's own key signs on, and another one takes its place.
	bahi := func(args ...string) (stdout, stderr string, status int) {
		return apptest.Execute(t, apptest.Command(t, t.TempDir(), args...).With("DATABASE_URL="+copied,
			"BAHI_AUDIT_KEY="+base64.StdEncoding.EncodeToString(l.Seed)))
	}
	out, wrong, status := bahi("events", "import", l.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 10)))
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "Checkpoints that hold, and are kept: 2.")
	apptest.Denied(t, copied, "give it in BAHI_AUDIT_KEY", "audit", "export", filepath.Join(t.TempDir(), "export"))
	next := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
	_, wrong, status = bahi("audit", "rotate-key", "--reason", "another safe", "--new-key", next)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, wrong, "Set BAHI_AUDIT_KEY to this key")
}

// exchanged returns an archive with a forged key and checkpoints.
func exchanged(t *testing.T, l *audittest.Log, key string, checkpoints []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := archive.Create(t.Context(), dir, l, archive.Options{
		UpTo: event.Position(len(l.Events)), At: time.Now(),
		Files: map[string][]byte{archive.CheckpointsFile: checkpoints, archive.PublicKeysFile: []byte(key + "\n")},
	})
	require.NoError(t, err)
	return dir
}
