//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/postgres"
	"bahi/eventstore/tlog"
	"bahi/eventstore/vault"
	"bahi/internal/test/audittest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/auditproj"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
)

// evidence has an auditor's evidence about a log of 300 events in Postgres, from before each attack.
type evidence struct {
	key     string // file with the public key
	early   string // file with a checkpoint of the first 100 events, kept outside the database
	short   string // file with a checkpoint of the first 200 events
	kept    string // file with the newest checkpoint, of all events
	archive string
}

// database is a copy of the log with its tree and a checkpoint, as Bahi leaves it.
type database struct {
	*evidence

	url   string
	pool  *pgxpool.Pool
	reads *readmodels.Pool
	ring  *auditproj.Ring
}

// open opens a copy of the log. The first one makes it.
func (e *evidence) open(t *testing.T) *database {
	t.Helper()
	d := &database{evidence: e, url: pgtest.Template(t, "audited", func(ctx context.Context, url string) error {
		if err := migrations.Up(ctx, url); err != nil {
			return err
		}
		made := &database{evidence: e, url: url}
		return made.make(t)
	})}
	var err error
	d.pool, err = pgxpool.New(t.Context(), d.url)
	require.NoError(t, err)
	t.Cleanup(d.pool.Close)
	d.reads = logtest.Snapshots(t, d.pool)
	return d
}

func (d *database) make(t *testing.T) (err error) {
	t.Helper()
	d.pool, err = pgxpool.New(t.Context(), d.url)
	require.NoError(t, err)
	defer d.pool.Close()
	d.reads, err = readmodels.OpenPool(t.Context(), d.pool.Config())
	require.NoError(t, err)
	defer d.reads.Close() // a database with connections cannot be copied
	store, err := postgres.Open(t.Context(), d.pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer store.Close()
	for i := range 300 {
		_, err := store.Append(t.Context(), eventstore.To(fmt.Sprintf("bankrow-%d", i%5), eventstore.Any, event.Proposed{
			ID: uuid.New(), Type: "BankRowEdited", Data: fmt.Appendf(nil, `{"amount": %d.50}`, i),
			Meta: []byte(`{"schema":1,"occurred_at":"2026-11-21T18:00:00Z"}`),
		}))
		require.NoError(t, err)
	}
	signed := d.sign(t)
	public := pgtest.Value[string](t, d.pool, `select verifier from audit.key`)
	d.key, d.kept = audittest.File(t, "key.txt", []byte(public)), audittest.File(t, "kept.txt", []byte(signed.Note))
	d.early, d.short = audittest.File(t, "early.txt", d.signed(t, 100)), audittest.File(t, "short.txt", d.signed(t, 200))
	d.archive = t.TempDir()
	_, err = archive.Create(t.Context(), d.archive, store,
		archive.Options{UpTo: 300, At: time.Now(), Checkpoints: [][]byte{[]byte(signed.Note)}, PublicKeys: []string{public}})
	return err
}

// sign updates the tree and signs it, as anybody who runs Bahi can.
func (d *database) sign(t *testing.T) *auditproj.Signed {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), d.pool, quiet)
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, projections.Build{Store: store, Config: d.pool.Config().ConnConfig.Copy(), Projection: auditproj.Tree,
		Log: quiet}.Run(t.Context()))
	v, err := vault.Open(t.Context(), d.pool, make([]byte, 32), quiet)
	require.NoError(t, err)
	d.ring = &auditproj.Ring{DB: d.pool, Vault: v, Store: store, Now: time.Now}
	require.NoError(t, d.ring.Ready(t.Context()))
	signer := &auditproj.Signer{DB: d.pool, Store: store, Tables: d.tree(),
		Ring: d.ring, Now: time.Now, Log: quiet}
	signed, err := signer.Sign(t.Context())
	require.NoError(t, err)
	require.NotNil(t, signed)
	return signed
}

func (d *database) tree() *auditview.Tree {
	return &auditview.Tree{Reader: readmodels.NewReader(d.reads, map[string]int{"audit": auditproj.Tree.Version}, nil)}
}

// forge builds the tree and the checkpoints again.
func (d *database) forge(t *testing.T) {
	t.Helper()
	pgtest.Exec(t, d.pool, `drop schema audit_g1 cascade; delete from projection.generation; delete from audit.checkpoint`)
	d.sign(t)
}

// signed returns a checkpoint of the log at an earlier size.
func (d *database) signed(t *testing.T, size uint64) []byte {
	t.Helper()
	tree, err := tlog.TreeAt(t.Context(), d.tree(), size)
	require.NoError(t, err)
	key, _, err := d.ring.InUse(t.Context())
	require.NoError(t, err)
	text, err := tlog.Checkpoint{Origin: key.Name(), Size: size, Root: tree.Root(), At: time.Now(), Position: event.Position(size)}.Sign(key)
	require.NoError(t, err)
	return text
}

func TestLogInADatabase(t *testing.T) {
	t.Parallel()
	var e evidence
	e.open(t)
	t.Run("is verified", e.verified)
	t.Run("that is lost is not called empty", e.lost)
	t.Run("is found changed by SQL", e.changed)
	t.Run("has a bad event that wrong checkpoints do not hide", e.wrongCheckpoints)
	t.Run("is shorter than its copy", e.truncated)
	t.Run("has invalid rows", e.invalidRows)
	t.Run("alone abandons a checkpoint", e.abandoned)
}

func (e *evidence) verified(t *testing.T) {
	t.Parallel()
	d := e.open(t)
	out, problems, status := verifyBy(t, "store", "--url", d.url, "--key", d.key, "--checkpoint", d.kept, "--compare", d.archive)
	require.Zero(t, status, out+problems)
	require.Contains(t, out, "It has everything that "+d.archive+
		" has.\nVERIFIED. The first 300 events are what was signed; 2 checkpoints agree.")
	out, _, status = verifyBy(t, "archive", d.archive, "--key", d.key)
	require.Zero(t, status, out)
	out, _, status = verifyBy(t, "store", "--url", d.url)
	require.Equal(t, 2, status, out)
	_, problems, status = verifyBy(t, "store", "--url", pgtest.DB(t))
	require.Equal(t, 2, status)
	require.Contains(t, problems, "find the log in the database")
}

// The tables of a log may outlive its events.
func (e *evidence) lost(t *testing.T) {
	t.Parallel()
	d := e.open(t)
	pgtest.Exec(t, d.pool, `delete from log.event; update log.identity set store_id = gen_random_uuid()`)
	out, problems, status := verifyBy(t, "store", "--url", d.url, "--key", d.key)
	require.Equal(t, 2, status, out+problems)
	require.Contains(t, problems, "which is not in this database: its log is empty")
}

// A forger changes a row with SQL. A checkpoint kept elsewhere detects the change. The hashes in the database name the event
// unless they are forged too; an older archive also names it.
func (e *evidence) changed(t *testing.T) {
	t.Parallel()
	const shift = `update log.event set position = position + 1000 where position > 150; update log.event set position = position - 1000 %+d
		where position > 1000`
	for name, sql := range map[string]string{
		"a byte of a payload": `update log.event set data = '{"amount": 150.50}' where position = 150`,
		"a date in metadata":  `update log.event set meta = '{"schema":1,"occurred_at":"2026-11-20T18:00:00Z"}' where position = 150`,
		"the recorded time":   `update log.event set recorded_at = recorded_at + interval '1 microsecond' where position = 150`,
		"two events swapped": `update log.event set position = -1 where position = 150; update log.event set position = 150 where position = 152;
			update log.event set position = 152 where position = -1`,
		"one deleted":                      `delete from log.event where position = 150`,
		"one deleted, the rest renumbered": `delete from log.event where position = 150; ` + fmt.Sprintf(shift, -1),
		"the tail deleted":                 `delete from log.event where position >= 150`,
		"one inserted": `update log.event set position = position + 1000 where position >= 150; update log.event set position = position - 999
			where position > 1000;
			insert into log.event select 150, 0, recorded_at, gen_random_uuid(), false, 'bankrow-99', type, data, meta from log.event
				where position = 149`,
		"all from there on rewritten": `update log.event set data = '{"amount": 1}' where position >= 150`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := e.open(t)
			pgtest.Exec(t, d.pool, sql)
			out, problems, status := verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept)
			require.Equal(t, 1, status, out+problems)
			require.Contains(t, out, "TAMPERED. The first bad event is event 150")
			asDocumented(t, name, 1, out)

			// A thorough forger also rebuilds and signs the tree: the key is in the vault next to it.
			d.forge(t)
			out, problems, status = verifyBy(t, "store", "--url", d.url, "--key", d.key, "--checkpoint", d.early, "--checkpoint", d.kept)
			require.Equal(t, 1, status, out+problems)
			asDocumented(t, name, 2, out)
			out, problems, status = verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept, "--compare", d.archive)
			require.Equal(t, 1, status, out+problems)
			require.Contains(t, out, "TAMPERED. The first bad event is event 150: the events before it are those of")
			asDocumented(t, name, 3, out)
		})
	}
}

// A changed checkpoint in the database is reported, and hides no change of the log.
func (e *evidence) wrongCheckpoints(t *testing.T) {
	t.Parallel()
	d := e.open(t)
	pgtest.Exec(t, d.pool, `update log.event set data = '{"amount": 1}' where position = 150`)
	pgtest.Exec(t, d.pool, `update audit.checkpoint set note = replace(note, 'position 300', 'position 301')`)
	out, problems, status := verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept, "--key", d.key)
	require.Equal(t, 1, status, out+problems)
	require.Contains(t, out, "TAMPERED. The first bad event is event 150")
	require.Contains(t, out, "A signed checkpoint was changed: the database's own, checkpoint 1:")
	out, problems, status = verifyBy(t, "store", "--url", d.url, "--key", d.key)
	require.Equal(t, 1, status, out+problems)
	require.Contains(t, out, "TAMPERED. A signed checkpoint was changed")
}

// No copy can be newer than the log in its database: if the copy is longer, the log was truncated, whatever the checkpoints cover.
func (e *evidence) truncated(t *testing.T) {
	t.Parallel()
	d := e.open(t)
	pgtest.Exec(t, d.pool, `delete from audit.checkpoint; delete from log.event where position > 250`)
	out, problems, status := verifyBy(t, "store", "--url", d.url, "--checkpoint", d.short, "--key", d.key, "--compare", d.archive)
	require.Equal(t, 1, status, out+problems)
	require.Contains(t, out, "TAMPERED. The first bad event is event 251: the events before it are those of "+d.archive+", which is proven.")
	out, problems, status = verifyBy(t, "store", "--url", d.url, "--checkpoint", d.short, "--compare", d.archive)
	require.Equal(t, 1, status, out+problems)
	require.Contains(t, out, "TAMPERED, one or the other")
}

// Rows that Bahi never writes are found and named, in words and in JSON.
func (e *evidence) invalidRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		event uint64
	}{
		"before the first position": {`insert into log.event select -7, 0, recorded_at, gen_random_uuid(), false, 'bankrow-99', type, data, meta
			from log.event where position = 1`, 1},
		"at position 0": {`insert into log.event select 0, 0, recorded_at, gen_random_uuid(), false, 'bankrow-99', type, data, meta
			from log.event where position = 1`, 1},
		"recorded for ever":       {`update log.event set recorded_at = 'infinity' where position = 150`, 150},
		"recorded never":          {`update log.event set recorded_at = '-infinity' where position = 150`, 150},
		"recorded in another age": {`update log.event set recorded_at = '20000-01-01' where position = 150`, 150},
		"a negative revision":     {`update log.event set revision = -9 where position = 150`, 150},
		"a text with line feeds":  {`update log.event set type = E'X\nVERIFIED.', stream = E'y\rVERIFIED.' where position = 150`, 150},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := e.open(t)
			pgtest.Exec(t, d.pool, c.sql)
			out, problems, status := verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept)
			require.Equal(t, 1, status, out+problems)
			require.Contains(t, out, fmt.Sprintf("TAMPERED. The first bad event is event %d:", c.event))
			require.NotContains(t, out, "\nVERIFIED")
			out, problems, status = verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept, "--json")
			require.Equal(t, 1, status, out+problems)
			var a archive.Report
			require.NoError(t, json.Unmarshal([]byte(out), &a))
			require.Equal(t, c.event, a.Result.Finding.First)
		})
	}
}

func (e *evidence) abandoned(t *testing.T) {
	t.Parallel()
	d := e.open(t)
	pgtest.Exec(t, d.pool, `update log.event set data = '{"amount": 1}' where position = 150; update audit.checkpoint set abandoned = 150`)
	out, _, status := verifyBy(t, "store", "--url", d.url, "--key", d.key)
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "TAMPERED. The first bad event is event 150")
	pgtest.Exec(t, d.pool, `insert into log.event
		select 301, 0, recorded_at, gen_random_uuid(), false, 'audit-log', 'CheckpointRestoreAccepted',
		'{"kept":{"size":0,"root":null},"newest":{"size":300,"root":null},"abandoned":1,"last_number":1,"reason":"x"}', meta from log.event
			where position = 300`)
	out, _, status = verifyBy(t, "store", "--url", d.url, "--key", d.key)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "At position 301 the log records that a restore lost its tail")
}
