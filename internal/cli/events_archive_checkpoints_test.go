package cli_test

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/pgtest"
)

func TestImportInPlaceKeepsKeysAndCheckpoints(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	first := o.Signed()
	o.Rotated()
	for range 2 { // an archive leaves out those between the rotation and the last of the day
		apptest.Open(o.Clerk(apptest.Home), "Kotak")
		o.Signed()
	}
	apptest.Open(o.Clerk(apptest.Home), "SBI")
	last, keys := o.Signed(), o.Operator().GET("/audit/key?format=text").Status(200).Text
	require.Equal(t, 2, strings.Count(keys, "\n"))
	dir, kept := filepath.Join(t.TempDir(), "archive"), audittest.File(t, "kept", []byte(first.Note))
	apptest.Done(t, o.Database, "events", "export", dir, "--with-keys")
	o.Stop()

	copied := pgtest.DB(t)
	out, wrong := apptest.Done(t, copied, "events", "import", dir)
	require.Regexp(t, `\nCheckpoints that hold, and are kept: \d\. The server of this log signs on with the same key\.\n$`, out)
	require.Empty(t, wrong)
	out, _ = apptest.Done(t, copied, "audit", "verify", "--store", "--checkpoint", kept)
	require.Contains(t, out, "VERIFIED")
	o = apptest.StartOn(t, copied)
	all := o.Checkpoints()
	require.Equal(t, []string{last.Note}, []string{all[len(all)-1].Note}, "no checkpoint was signed since")
	apptest.Open(o.Clerk(apptest.Home), "Axis")
	newest := o.Signed()
	require.Equal(t, keys, o.Operator().GET("/audit/key?format=text").Status(200).Text)
	_, by, err := o.PublicKeys().Open([]byte(newest.Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Contains(t, strings.Split(keys, "\n")[1], by[0].ID)
	o.Stop()
	_, err = apptest.Settings(t, copied).Open(t.Context(), true)
	require.NoError(t, err, "twice in a row")
}

func TestImportBesideTheOriginalSignsWithItsOwnKey(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	o.Rotated()
	o.Signed()
	keys := o.PublicKeys()
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	apptest.Done(t, o.Database, "events", "export", with, "--with-keys")
	apptest.Done(t, o.Database, "events", "export", without)
	o.Stop()
	for name, args := range map[string][]string{
		"without the keys": {without}, "under another name": {with, "--new-store-id"},
		"under another name and without the keys": {without, "--new-store-id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := pgtest.DB(t)
			if len(args) > 1 && args[0] == without {
				copied = apptest.Database(t) // a Bahi has run on it and made a key
			}
			_, wrong := apptest.Done(t, copied, append([]string{"events", "import"}, args...)...)
			require.Contains(t, wrong, "They are another installation's; this one signs with a key of its own.")
			c := apptest.StartOn(t, copied)
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
			c.Rotated()
			c.Stop()
			apptest.StartOn(t, copied).Signed()
			out, _ := apptest.Done(t, copied, "audit", "verify", "--store")
			require.Contains(t, out, "VERIFIED")
		})
	}
}

func TestImportSignsOnWithTheOperatorsOwnKey(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 3)
	dir, copied := l.Archive(t, l.Checkpoint(t, 3)), pgtest.DB(t)
	cmd := apptest.Command(t, t.TempDir(), "events", "import", dir)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+copied, "BAHI_AUDIT_KEY="+base64.StdEncoding.EncodeToString(l.Seed))
	out, wrong, status := apptest.Execute(t, cmd)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "Checkpoints that hold, and are kept: 1.")
	apptest.Denied(t, copied, "give it in BAHI_AUDIT_KEY", "audit", "key")
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
	apptest.Done(t, copied, "events", "import", l.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 10)))
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

// An accepted restore names the checkpoints that it abandons by number; a copy numbers them differently.
func TestAnImportAbandonsNoCheckpointOfItsOwn(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	lost, err := audit.Kind.Encode(uuid.New(), audit.RestoreAccepted{LastNumber: 40, Abandoned: 3, Reason: "the disk burnt"},
		event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	_, err = o.Sys.Store.Append(t.Context(), eventstore.To(audit.Kind.Stream(audit.Log), eventstore.Any, lost))
	require.NoError(t, err)
	o.Signed()
	dir, copied := filepath.Join(t.TempDir(), "archive"), pgtest.DB(t)
	apptest.Done(t, o.Database, "events", "export", dir)
	o.Stop()
	apptest.Done(t, copied, "events", "import", dir)
	for _, bank := range []string{"SBI", "Axis"} {
		o = apptest.StartOn(t, copied)
		apptest.Open(o.Clerk(apptest.Home), bank)
		o.Signed()
		for _, c := range o.Checkpoints() {
			require.Zero(t, c.Abandoned, "checkpoint %d", c.Number)
			require.Greater(t, c.Number, int64(40))
		}
		o.Stop()
	}
}
