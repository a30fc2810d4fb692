package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
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

// Proofs show that events are unchanged, not that they keep the rules.
func TestAnArchiveWhoseEventsBreakARuleIsNamed(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	verify := func() (string, int) {
		o.Signed()
		dir := t.TempDir()
		key := filepath.Join(dir, "bahi.keys")
		require.NoError(t, os.WriteFile(key, []byte(o.Operator().GET("/audit/key?format=text").Status(200).Text), 0o600))
		dir = filepath.Join(dir, "archive")
		apptest.Done(t, o.Database, "audit", "export", dir)
		out, wrong, status := apptest.Attached(t, o, "audit", "verify", dir, "--key", key)
		require.Contains(t, out, "VERIFIED. ", wrong)
		return out, status
	}
	out, status := verify()
	require.Zero(t, status, out)
	require.Contains(t, out, "\nlaws: the log keeps the rules between records up to position ")

	released, err := claim.Email.Encode(uuid.New(), claim.Released{User: uuid.New()}, event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	done, err := o.Sys.Store.Append(t.Context(), eventstore.To(claim.Email.Stream("k"), eventstore.NoStream, released))
	require.NoError(t, err)
	out, status = verify()
	require.Equal(t, 3, status, out)
	require.Contains(t, out, fmt.Sprintf("laws: position %d, emailclaim-k: a claim is released by its holder\n", done.Position))
	out, _, status = apptest.Attached(t, o, "doctor")
	require.Equal(t, 1, status)
	require.Contains(t, out, "laws: broken 1 times up to position ")
}

// victim is a database whose log has two signed checkpoints, and a copy of the newest elsewhere.
type victim struct {
	t        *testing.T
	url      string
	kept     string // file with the newest checkpoint
	keys     string // file with the public keys
	database *pgx.Conn

	signed
}

// signed has the evidence of every victim's log.
type signed struct {
	first, last apptest.AuditCheckpoint
	public      string // keys
	rows        []int64
	sizes       []int64 // of all checkpoints
}

// victims is a signed log. Each test changes a copy, because signing one per test is slow.
var victims signed

func sign(t *testing.T, url string) (s signed) {
	t.Helper()
	o := apptest.StartOn(t, url)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	posts := func(date string, count int) apptest.AuditCheckpoint {
		for i := range count {
			s.rows = append(s.rows, apptest.Post(clerk, account, apptest.Deposit(date, strconv.Itoa(i+1))).ID)
		}
		return o.Signed()
	}
	s.first, s.last = posts("2025-03-01", 3), posts("2025-03-02", 6)
	s.public = o.Operator().GET("/audit/key?format=text").Status(200).Text
	for _, c := range o.Checkpoints() {
		s.sizes = append(s.sizes, int64(c.Size))
	}
	o.Stop()
	return s
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, url: pgtest.Template(t, "victim", func(ctx context.Context, url string) error {
		if err := migrations.Up(ctx, url); err != nil {
			return err
		}
		victims = sign(t, url)
		return nil
	})}
	v.signed = victims
	v.kept, v.keys = audittest.File(t, "kept.checkpoint", []byte(v.last.Note)), audittest.File(t, "bahi.keys", []byte(v.public))
	var err error
	v.database, err = pgx.Connect(t.Context(), v.url)
	require.NoError(t, err)
	t.Cleanup(func() { v.database.Close(context.Background()) })
	return v
}

// at returns the position of the nth row's event, from 0.
func (v *victim) at(nth int) (position int64) {
	v.t.Helper()
	require.NoError(v.t, v.database.QueryRow(v.t.Context(), `select position from log.event where stream = $1 and revision = 0`,
		fmt.Sprintf("bankrow-%d", v.rows[nth])).Scan(&position))
	return position
}

func (v *victim) run(args ...string) (stdout, stderr string, status int) {
	v.t.Helper()
	cmd := apptest.Command(v.t, v.t.TempDir(), append([]string{"audit"}, args...)...).With("DATABASE_URL=" + v.url)
	return apptest.Execute(v.t, cmd)
}

func (v *victim) verify(args ...string) (stdout, stderr string, status int) {
	v.t.Helper()
	return v.run(append([]string{"verify", "--store"}, args...)...)
}

func (v *victim) accept(args ...string) (stdout, stderr string, status int) {
	v.t.Helper()
	return v.run(append([]string{"accept-restore"}, args...)...)
}

func TestStartWithoutTilesNamesTheWayOut(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	pgtest.Exec(t, v.database, `delete from audit_g1.tile where level = 0`)
	require.Contains(t, v.serveUntilItEnds(), "bahi projections rebuild audit")
}

func (v *victim) serveUntilItEnds() (said string) {
	v.t.Helper()
	cmd := apptest.Command(v.t, v.t.TempDir(), "serve").With("DATABASE_URL=" + v.url)
	p := apptest.Launch(v.t, cmd)
	select {
	case <-p.Done:
	case <-time.After(3 * time.Minute):
		v.t.Fatal("serve has not ended")
	}
	require.Equal(v.t, 1, p.Status)
	return p.Text()
}

// The tests of tlog, auditproj and bahi-verify have the other attacks.
func TestAChangedEventIsNamedAndEndsTheServer(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	out, wrong, status := v.verify("--checkpoint", v.kept)
	require.Equal(t, 0, status, "%s%s", out, wrong)
	require.Contains(t, out, "VERIFIED")
	at := v.at(4)
	pgtest.Exec(t, v.database,
		fmt.Sprintf(`update log.event set data = replace(data::text, '2025-03-02', '2025-03-03')::json where position = %d`, at))
	for _, args := range [][]string{{}, {"--checkpoint", v.kept, "--key", v.keys}} {
		out, wrong, status := v.verify(args...)
		require.Equal(t, 1, status, out)
		require.Contains(t, wrong, "bahi: the log is not verified")
		require.Contains(t, out, fmt.Sprintf("TAMPERED. The first bad event is event %d:", at))
	}
	said := v.serveUntilItEnds()
	require.Contains(t, said, "were rewritten, and hash to")
	require.Contains(t, said, "bahi audit verify --store")

	// Accepting more than a restore prints a warning, and the log records it all the same.
	out, wrong, status = v.accept("--reason", "the disk burnt")
	require.Equal(t, 0, status, wrong)
	require.Contains(t, wrong, "Other events were appended after the restore, or the log was rewritten.")
	require.Contains(t, out, "which is recorded at position")
}

func TestRestoreWithoutItsTailIsRefusedUntilAccepted(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	end := v.at(4)
	pgtest.Exec(t, v.database, fmt.Sprintf(`delete from log.event where position > %d`, end))
	_, err := apptest.Settings(t, v.url).Open(t.Context(), true)
	require.ErrorContains(t, err, "so its newest events are lost. Nothing is served")
	require.ErrorContains(t, err, "bahi audit accept-restore --reason")
	_, wrong, status := v.accept()
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "--reason")
	out, wrong, status := v.accept("--reason", "the disk burnt")
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, wrong, "rewritten")
	// a checkpoint is signed every second
	held := slices.Max(slices.DeleteFunc(slices.Clone(v.sizes), func(size int64) bool { return size > end }))
	require.GreaterOrEqual(t, held, int64(v.first.Size))
	require.Contains(t, out, fmt.Sprintf("The log is compared with the checkpoint of %d events", held))
	_, wrong, status = v.accept("--reason", "once more")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "there is nothing to accept")
}

// The attacker leaves no checkpoint for the newest events, but the tree and the tables of the log still have them.
func TestEventsRemovedWithTheirCheckpointsAreMissed(t *testing.T) {
	t.Parallel()
	const unsign = `delete from audit.checkpoint where position > P;`
	for name, attack := range map[string]struct{ sql, found string }{
		"removed": {`delete from log.event where position > P`, "(the tree beside the log, not signed)"},
		"rewritten": {`update log.event set data = replace(data::text, '2025-03-02', '2025-03-03')::json where position > P
			and type = 'BankRowAdded'`, "(the tree beside the log, not signed)"},
		"removed also from the tree": {
			`delete from log.event where position > P; drop schema audit_g1 cascade; delete from projection.generation where name = 'audit'`,
			"the newest events are gone",
		},
		"removed with the newest tile": {`delete from log.event where position > P; delete from audit_g1.tile where level = 0`,
			"the newest events are gone"},
		"all checkpoints and the tree": {`truncate audit.checkpoint, audit_g1.tree, audit_g1.tile`,
			"signed checkpoints were removed, from number 1 on"},
		"a checkpoint in the middle": {`delete from audit.checkpoint where number = 1`, "from number 1 on"},
		"the numbers as well":        {`delete from audit.numbering`, "signed checkpoints were removed"},
		"renumbered":                 {`update audit.checkpoint set number = number + 100`, "differs from its note"},
		"the tree alone":             {`truncate audit_g1.tree, audit_g1.tile`, "leaves were removed"},
		"a column of a checkpoint":   {`update audit.checkpoint set position = position + 1 where number = 1`, "differs from its note"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			pgtest.Exec(t, v.database, strings.ReplaceAll(unsign+attack.sql, "P", strconv.FormatInt(v.at(4), 10)))
			out, _, status := v.verify()
			require.Equal(t, 1, status, out)
			require.Contains(t, out, "TAMPERED.")
			require.Contains(t, out, attack.found)
		})
	}
}
