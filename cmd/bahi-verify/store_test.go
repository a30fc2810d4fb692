//go:build !js

package main

import (
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
	"bahi/eventstore/vault"
	"bahi/internal/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/audit"
	views "bahi/readmodels/audit"
)

// database is a log of 300 events in Postgres, with its tree and a checkpoint, as a Bahi leaves it.
type database struct {
	url     string
	pool    *pgxpool.Pool
	key     string // a file with the public key
	kept    string // a file with the checkpoint, outside the database
	archive string // written before anything happened
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{url: pgtest.Template(t, "migrated", migrations.Up)}
	var err error
	d.pool, err = pgxpool.New(t.Context(), d.url)
	require.NoError(t, err)
	t.Cleanup(d.pool.Close)
	quiet := slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), d.pool, quiet)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	for i := range 300 {
		_, err := store.Append(t.Context(), fmt.Sprintf("bankrow-%d", i%5), eventstore.Any, event.New{
			ID: uuid.New(), Type: "BankRowEdited", Data: fmt.Appendf(nil, `{"amount": %d.50}`, i), Meta: []byte(`{"schema":1,"occurred_at":"2026-11-21T18:00:00Z"}`),
		})
		require.NoError(t, err)
	}
	require.NoError(t, projections.Build{Store: store, Config: d.pool.Config().ConnConfig.Copy(), Projection: audit.Tree, Log: quiet}.Run(t.Context()))
	v, err := vault.Open(t.Context(), d.pool, make([]byte, 32), quiet)
	require.NoError(t, err)
	ring := &audit.Ring{DB: d.pool, Vault: v, Store: store, Now: time.Now}
	require.NoError(t, ring.Ready(t.Context()))
	signer := &audit.Signer{DB: d.pool, Store: store, Tables: &views.Tree{DB: d.pool, Version: audit.Tree.Version}, Ring: ring, Now: time.Now, Log: quiet}
	signed, err := signer.Sign(t.Context())
	require.NoError(t, err)
	var public string
	require.NoError(t, d.pool.QueryRow(t.Context(), `select verifier from audit.key`).Scan(&public))
	d.key, d.kept = write(t, "key.txt", []byte(public)), write(t, "kept.txt", []byte(signed.Note))
	d.archive = t.TempDir()
	_, err = archive.Create(t.Context(), d.archive, store, archive.Options{UpTo: 300, At: time.Now(), Checkpoints: [][]byte{[]byte(signed.Note)}, PublicKeys: []string{public}})
	require.NoError(t, err)
	return d
}

func (d *database) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := d.pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func TestALogInADatabaseIsVerified(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	out, problems, status := verifyBy(t, "store", "--url", d.url, "--key", d.key, "--checkpoint", d.kept, "--compare", d.archive)
	require.Zero(t, status, out+problems)
	require.Contains(t, out, "It has everything that "+d.archive+" has.\nVERIFIED. The first 300 events are what was signed; 2 checkpoints agree.")
	out, _, status = verifyBy(t, "archive", d.archive, "--key", d.key)
	require.Zero(t, status, out)
	out, _, status = verifyBy(t, "store", "--url", d.url)
	require.Equal(t, 2, status, out)
	_, problems, status = verifyBy(t, "store", "--url", pgtest.DB(t))
	require.Equal(t, 2, status)
	require.Contains(t, problems, "find the log in the database")
}

// Whoever can write the database changes a row with SQL. A checkpoint that was kept outside finds it, and the hashes in
// the database, which the forger forgot, or an older archive, name the event.
func TestWhatSQLChangesIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	const shift = `update log.event set position = position + 1000 where position > 150; update log.event set position = position - 1000 %+d where position > 1000`
	for name, sql := range map[string]string{
		"a byte of a payload": `update log.event set data = '{"amount": 150.50}' where position = 150`,
		"a date in metadata":  `update log.event set meta = '{"schema":1,"occurred_at":"2026-11-20T18:00:00Z"}' where position = 150`,
		"the recorded time":   `update log.event set recorded_at = recorded_at + interval '1 microsecond' where position = 150`,
		"two events swapped": `update log.event set position = -1 where position = 150; update log.event set position = 150 where position = 152;
			update log.event set position = 152 where position = -1`,
		"one deleted":                      `delete from log.event where position = 150`,
		"one deleted, the rest renumbered": `delete from log.event where position = 150; ` + fmt.Sprintf(shift, -1),
		"the tail deleted":                 `delete from log.event where position >= 150`,
		"one inserted": `update log.event set position = position + 1000 where position >= 150; update log.event set position = position - 999 where position > 1000;
			insert into log.event select 150, 0, recorded_at, gen_random_uuid(), false, 'bankrow-99', type, data, meta from log.event where position = 149`,
		"all written anew": `update log.event set data = '{"amount": 1}' where position >= 150`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			d.exec(t, sql)
			out, problems, status := verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept)
			require.Equal(t, 1, status, out+problems)
			require.Contains(t, out, "TAMPERED. The first bad event is event 150")

			// A thorough forger makes the tree anew as well, and signs it: the key is in the vault beside it.
			d.exec(t, `drop schema audit_g1 cascade; delete from projection.generation; delete from audit.checkpoint`)
			out, problems, status = verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept)
			require.Equal(t, 1, status, out+problems)
			out, problems, status = verifyBy(t, "store", "--url", d.url, "--checkpoint", d.kept, "--compare", d.archive)
			require.Equal(t, 1, status, out+problems)
			require.Contains(t, out, "TAMPERED. The first bad event is event 150: until there it is what")
		})
	}
}
