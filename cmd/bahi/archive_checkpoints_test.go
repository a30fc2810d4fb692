package main_test

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	audits "bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/audit/audittest"
	"bahi/internal/pgtest"
)

// checkpoints are all that were signed, in their order.
func (o *office) checkpoints() (all []auditCheckpoint) {
	o.t.Helper()
	o.operator().GET("/audit/checkpoints").Status(200).JSON(&all)
	return all
}

// rotated lets another key sign.
func (o *office) rotated() {
	o.t.Helper()
	_, wrong, status := attached(o.t.(*testing.T), o, "audit", "rotate-key", "--reason", "yearly")
	require.Equal(o.t, 0, status, wrong)
}

func TestAnImportThatTakesTheLogsPlaceSignsOnWithItsKeysAndKeepsWhatWasSigned(t *testing.T) {
	t.Parallel()
	o := start(t)
	open(o.clerk(home), "HDFC")
	first := o.signed()
	o.rotated()
	open(o.clerk(home), "SBI")
	last, keys := o.signed(), o.operator().GET("/audit/key?format=text").Status(200).Text
	require.Equal(t, 2, strings.Count(keys, "\n"))
	dir, kept := filepath.Join(t.TempDir(), "archive"), audittest.File(t, "kept", []byte(first.Note))
	done(t, o.database, "events", "export", dir, "--with-keys")
	o.stop()

	copied := pgtest.DB(t)
	out, wrong := done(t, copied, "events", "import", dir)
	require.Regexp(t, `\nCheckpoints that hold, and are kept: \d\. Whoever serves this log signs on with the same key\.\n$`, out)
	require.Empty(t, wrong)
	out, _ = done(t, copied, "audit", "verify", "--store", "--checkpoint", kept)
	require.Contains(t, out, "VERIFIED")
	o = startOn(t, copied)
	all := o.checkpoints()
	require.Equal(t, []string{last.Note}, []string{all[len(all)-1].Note}, "nothing was signed since")
	open(o.clerk(home), "Axis")
	newest := o.signed()
	require.Equal(t, keys, o.operator().GET("/audit/key?format=text").Status(200).Text)
	_, by, err := o.publicKeys().Open([]byte(newest.Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Contains(t, strings.Split(keys, "\n")[1], by[0].ID)
	o.stop()
	_, err = testSettings(t, copied).Open(t.Context(), true)
	require.NoError(t, err, "and again")
}

func TestAnImportElsewhereSignsWithAKeyOfItsOwnAndTellsTheLog(t *testing.T) {
	t.Parallel()
	o := start(t)
	open(o.clerk(home), "HDFC")
	o.rotated()
	o.signed()
	keys := o.publicKeys()
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	done(t, o.database, "events", "export", with, "--with-keys")
	done(t, o.database, "events", "export", without)
	o.stop()
	for name, args := range map[string][]string{
		"without the keys": {without}, "under another name": {with, "--new-store-id"}, "under another name and without the keys": {without, "--new-store-id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := pgtest.DB(t)
			_, wrong := done(t, copied, append([]string{"events", "import"}, args...)...)
			require.Contains(t, wrong, "They are another installation's; this one signs with a key of its own.")
			c := startOn(t, copied)
			newest := c.signed()
			_, _, err := keys.Open([]byte(newest.Note))
			require.Error(t, err, "who trusts the former keys does not trust this one")
			_, _, err = c.publicKeys().Open([]byte(newest.Note))
			require.NoError(t, err)
			told := c.auditEvents(testOperatorKey, "type=AuditKeyRotated")
			require.Len(t, told, 2)
			require.Contains(t, string(told[1].Data), "the key that signed it before is not in this installation")
			c.rotated()
			c.stop()
			startOn(t, copied).signed()
			out, _ := done(t, copied, "audit", "verify", "--store")
			require.Contains(t, out, "VERIFIED")
		})
	}
}

func TestAKeyOfTheOperatorsOwnIsGivenToAnImportToSignOnWithIt(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 3)
	dir, copied := l.Archive(t, l.Checkpoint(t, 3)), pgtest.DB(t)
	cmd := command(t, t.TempDir(), "events", "import", dir)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+copied, "BAHI_AUDIT_KEY="+base64.StdEncoding.EncodeToString(l.Seed))
	out, wrong, status := execute(t, cmd)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "Checkpoints that hold, and are kept: 1.")
	denied(t, copied, "give it in BAHI_AUDIT_KEY", "audit", "key")
}

func TestAnArchiveWhoseCheckpointsItsEventsDoNotLeadToIsNotImported(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 10)
	forged := l.Forged(func(e []event.Stored) []event.Stored { e[6].Data = []byte(`{"amount":1}`); return e })
	copied := pgtest.DB(t)
	denied(t, copied, "the archive is broken: checkpoints.txt: its events do not lead to the checkpoint of 8 events",
		"events", "import", forged.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 8), l.Checkpoint(t, 10)))
	denied(t, copied, "the archive is broken: checkpoints.txt: checkpoint 1: the checkpoint is not signed by a key that is trusted",
		"events", "import", exchanged(t, l, audittest.New(t, 1).Key.Public(), l.Checkpoint(t, 10)))
	denied(t, copied, "the archive is broken: checkpoints.txt: it has a checkpoint of 10 events, and 9 events",
		"events", "import", exchanged(t, l.Forged(func(e []event.Stored) []event.Stored { return e[:9] }), l.Key.Public(), l.Checkpoint(t, 10)))
	done(t, copied, "events", "import", l.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 10)))
}

// exchanged is an archive into which somebody put a key and checkpoints that Bahi would not.
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

// A restore that was accepted names the checkpoints that it abandons by their numbers, which are others in a copy.
func TestAnImportAbandonsNoCheckpointOfItsOwn(t *testing.T) {
	t.Parallel()
	o := start(t)
	open(o.clerk(home), "HDFC")
	lost, err := audits.Kind.Encode(uuid.New(), audits.RestoreAccepted{LastNumber: 40, Abandoned: 3, Reason: "the disk burnt"}, event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	_, err = o.sys.Store.Append(t.Context(), audits.Kind.Stream(audits.Log), eventstore.Any, lost)
	require.NoError(t, err)
	o.signed()
	dir, copied := filepath.Join(t.TempDir(), "archive"), pgtest.DB(t)
	done(t, o.database, "events", "export", dir)
	o.stop()
	done(t, copied, "events", "import", dir)
	for _, bank := range []string{"SBI", "Axis"} {
		o = startOn(t, copied)
		open(o.clerk(home), bank)
		o.signed()
		for _, c := range o.checkpoints() {
			require.Zero(t, c.Abandoned, "checkpoint %d", c.Number)
			require.Greater(t, c.Number, int64(40))
		}
		o.stop()
	}
}
