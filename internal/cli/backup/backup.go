// Package backup has the commands for backups, restores and the list of erasures.
package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/signal"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
)

// These are the names in a backup's folder. A dump has the schemas that cannot be computed from others. Projections are folded from the log
// again, so their schemas are omitted, and their registry is dumped without rows.
const (
	backupFormat    = "bahi-backup"
	backupVersion   = 1
	BackupManifest  = "manifest.json"
	DatabaseDump    = "database.dump"
	MigrationDump   = "migrations.dump" // the applied migrations; a separate dump, because pg_dump takes either schemas or a table
	migrationTables = "public.bahi_schema"
	blobsFolder     = "blobs"
	withoutRows     = "projection.*"
	blobsInFolder   = "folder"
	blobsInBucket   = "bucket"
	dumpCompression = "1" // higher levels save little space for much time
)

func backedUp() []string {
	return []string{"log", "vault", "account", "audit", "reactor", "river", "projection", "inbox", "knowledge"}
}

// Manifest describes a backup.
type Manifest struct {
	Format      string         `json:"format"`
	Version     int            `json:"version"`
	StoreID     uuid.UUID      `json:"store_id"`
	Head        event.Position `json:"head"`              // position of the newest event in the dump
	HeadID      *uuid.UUID     `json:"head_id,omitempty"` // id of that event
	MasterKeyID string         `json:"master_key_id"`     // a backup does not have the key itself
	Program     string         `json:"program"`
	Postgres    string         `json:"postgres"`
	TakenAt     time.Time      `json:"taken_at"`
	Blobs       string         `json:"blobs"` // folder: in the backup; bucket: elsewhere
	Files       []BackupFile   `json:"files"`
}

type BackupFile struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (m *Manifest) bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
}

// Commands are `bahi vault`, `bahi backup` and `bahi restore`.
type Commands struct {
	Vault   VaultCommand   `cmd:"" help:"Export the list of erased users, and apply it after a restore."`
	Backup  Command        `cmd:"" help:"Back up into a folder, beside a running server or without one."`
	Restore RestoreCommand `cmd:"" help:"Fill an empty data folder or database from a backup, or test a backup with --drill."`
}

type Command struct {
	app.Settings

	Dir     string `arg:"" help:"The backup's folder: missing or empty."`
	BlobURL string `env:"BLOB_URL" name:"blob-url" placeholder:"URL" help:"Bucket of the images. A bucket is not copied."`
}

// Run writes the backup under a temporary name and renames the complete one.
func (c Command) Run(ctx context.Context) (err error) {
	began := time.Now()
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	if err := mustBeEmpty(dir); err != nil {
		return err
	}
	if err := c.HasRun(); err != nil {
		return fmt.Errorf("there is nothing to back up: %w", err)
	}
	db, err := c.Attach(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("create the folder for the backup: %w", err)
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-unfinished-*")
	if err != nil {
		return fmt.Errorf("create the folder for the backup: %w", err)
	}
	defer os.RemoveAll(partial) //nolint:errcheck // it is there only if a step failed
	m, err := c.take(ctx, db, partial)
	if err != nil {
		return err
	}
	err = os.Remove(dir) // an empty folder would block the rename
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(partial, dir)
	}
	if err != nil {
		return fmt.Errorf("rename the backup: %w", err)
	}
	if err := archive.SyncFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%s: %d events of the log %s, %d files, %d bytes (%s)\n",
		c.Dir, m.Head, m.StoreID, len(m.Files), m.bytes(), time.Since(began).Round(time.Millisecond))
	if m.Blobs == blobsInBucket {
		fmt.Fprintln(c.Shell.Err, "Images are in the bucket that BLOB_URL names, and not in this backup. Let the bucket keep old versions, or "+
			"copy it.")
	}
	fmt.Fprintf(c.Shell.Err, "The master key (id %s) is not in it. Without it no user can sign in and no name is readable: keep a copy "+
		"elsewhere.\n", m.MasterKeyID)
	return nil
}

func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the backup's folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty: name another one", dir)
	}
	return nil
}

// take fills the folder. All dumps of the database are of one snapshot. It copies images before and after the snapshot. Image names are
// never reused, so the backup has each image of the snapshot that was not deleted before.
func (c Command) take(ctx context.Context, db *app.Database, dir string) (m Manifest, err error) {
	m = Manifest{Format: backupFormat, Version: backupVersion, Program: app.Version, Blobs: blobsInFolder, Files: []BackupFile{}}
	blobs := func() error {
		return copyFolder(ctx, filepath.Join(c.Data, "blobs"), filepath.Join(dir, blobsFolder))
	}
	if c.BlobURL != "" {
		m.Blobs, blobs = blobsInBucket, func() error { return nil }
	}
	if err := blobs(); err != nil {
		return m, err
	}
	conn, err := pgx.Connect(ctx, db.Url)
	if err != nil {
		return m, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection only read
	if err := c.dump(ctx, db, conn, dir, &m); err != nil {
		return m, err
	}
	if err := blobs(); err != nil {
		return m, err
	}
	if err := m.list(ctx, dir); err != nil {
		return m, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := os.WriteFile(filepath.Join(dir, BackupManifest), append(text, '\n'), 0o600); err != nil {
		return m, fmt.Errorf("write the backup's manifest: %w", err)
	}
	return m, syncTree(dir)
}

// dump writes the dumps of the database.
func (c Command) dump(ctx context.Context, db *app.Database, conn *pgx.Conn, dir string, m *Manifest) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin the snapshot: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // the transaction only reads
	snapshot, err := m.look(ctx, tx)
	if err != nil {
		return err
	}
	tools, err := db.Tools(ctx, c.Logger(false), app.MajorOf(m.Postgres))
	if err != nil {
		return err
	}
	done := watchCopy(ctx, db, c.Shell.Err, "backing up the log", int64(m.Head))
	defer done()
	args := []string{
		"--format=custom", "--compress=" + dumpCompression, "--no-owner", "--no-privileges", "--snapshot=" + snapshot,
		"--file=" + filepath.Join(dir, DatabaseDump), "--exclude-table-data=" + withoutRows,
	}
	for _, schema := range backedUp() {
		args = append(args, "--schema="+schema)
	}
	if err := tools.Run(ctx, "pg_dump", args...); err != nil {
		return err
	}
	return tools.Run(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--snapshot="+snapshot,
		"--file="+filepath.Join(dir, MigrationDump), "--table="+migrationTables)
}

// look fills in the snapshot's data and returns its name.
func (m *Manifest) look(ctx context.Context, tx pgx.Tx) (snapshot string, err error) {
	var there bool
	err = tx.QueryRow(ctx, `select to_regclass('log.event') is not null and to_regclass('public.bahi_schema') is not null`).Scan(&there)
	if err != nil {
		return "", fmt.Errorf("query the database: %w", err)
	}
	if !there {
		return "", errors.New("there is nothing to back up: no Bahi has run on this database")
	}
	err = tx.QueryRow(ctx, `
		select pg_export_snapshot(), now(), current_setting('server_version'),
			(select store_id from log.identity), log.head(),
			(select id from log.event where position = log.head()), coalesce((select key_id from vault.master), '')`).
		Scan(&snapshot, &m.TakenAt, &m.Postgres, &m.StoreID, &m.Head, &m.HeadID, &m.MasterKeyID)
	if err != nil {
		return "", fmt.Errorf("query the log: %w", err)
	}
	m.TakenAt = m.TakenAt.UTC()
	m.Postgres, _, _ = strings.Cut(m.Postgres, " ") // Debian appends its own version
	return snapshot, nil
}

// list fills in the files.
func (m *Manifest) list(ctx context.Context, dir string) error {
	return eachFile(dir, func(name string) error {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0o600); err != nil { // pg_dump makes it readable for everybody
			return err
		}
		size, sum, err := hashFile(ctx, path, io.Discard)
		m.Files = append(m.Files, BackupFile{File: filepath.ToSlash(name), Bytes: size, SHA256: sum})
		return err
	})
}

// OpenBackup reads the manifest of a backup.
func OpenBackup(dir string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, BackupManifest)) //nolint:gosec // G304: the operator names the folder
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no backup: it has no %s", dir, BackupManifest)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read the backup's manifest: %w", err)
	}
	if m.Format != backupFormat || m.Version != backupVersion {
		return m, fmt.Errorf("%s is a %q of version %d; this program restores a %q of version %d", dir, m.Format, m.Version, backupFormat,
			backupVersion)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(m.Files, func(f BackupFile) bool { return f.File == name })
	}
	if !has(DatabaseDump) || !has(MigrationDump) {
		return m, errors.New("the backup's manifest does not name the database's dumps")
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.File) {
			return m, fmt.Errorf("the backup's manifest names a file outside of the backup: %q", f.File)
		}
	}
	return m, nil
}

// check compares every file with the manifest, and shows its progress on said.
func (m *Manifest) check(ctx context.Context, dir string, said io.Writer) error {
	bar := progress.NewBar(said, "checking the backup", "bytes")
	defer bar.End()
	total, done := m.bytes(), int64(0)
	for _, f := range m.Files {
		size, sum, err := hashFile(ctx, filepath.Join(dir, filepath.FromSlash(f.File)), io.Discard)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the backup is broken: %s is missing", f.File)
		case err != nil:
			return err
		case size != f.Bytes || sum != f.SHA256:
			return fmt.Errorf("the backup is broken: %s has %d bytes with the SHA-256 %s, and the manifest has %d with %s", f.File, size,
				sum, f.Bytes, f.SHA256)
		}
		done += size
		bar.Show(done, total)
	}
	return nil
}

// eachFile calls do with the name of every file below a folder. A missing folder has no files.
func eachFile(dir string, do func(name string) error) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // deleted since the listing
		case err != nil || !d.Type().IsRegular():
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return do(name)
	})
	if err != nil {
		return fmt.Errorf("read the folder %s: %w", dir, err)
	}
	return nil
}

// copyFolder copies the files that are still missing.
func copyFolder(ctx context.Context, from, to string) error {
	return eachFile(from, func(name string) error {
		path := filepath.Join(to, name)
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the operator names the folders
		if err != nil {
			return err
		}
		_, _, err = hashFile(ctx, filepath.Join(from, name), out)
		if err = errors.Join(err, out.Close()); errors.Is(err, fs.ErrNotExist) {
			return os.Remove(path) // just deleted
		}
		return err
	})
}

// hashFile copies a file and returns its size and its SHA-256 in hex.
func hashFile(ctx context.Context, path string, to io.Writer) (size int64, sum string, err error) {
	file, err := os.Open(path) //nolint:gosec // G304: the operator names the folder
	if err != nil {
		return 0, "", err
	}
	defer file.Close()                                          //nolint:errcheck // the file was only read
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // ends the copy
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(h, to), file)
	return size, hex.EncodeToString(h.Sum(nil)), cmp.Or(ctx.Err(), err)
}

// syncTree flushes a folder and everything in it to the disk.
func syncTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return archive.SyncFolder(path)
	})
	if err != nil {
		return fmt.Errorf("flush %s to the disk: %w", dir, err)
	}
	return nil
}

// watchCopy shows the progress of Postgres's copy of the log until done is called.
func watchCopy(ctx context.Context, db *app.Database, said io.Writer, name string, total int64) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		bar := progress.NewBar(said, name, "events")
		defer bar.End()
		conn, err := pgx.Connect(ctx, db.Url)
		if err != nil {
			return // the copy itself reports the error better
		}
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection only read
		for most := int64(0); signal.Sleep(ctx, copyInterval) == nil; {
			var rows int64
			err := conn.QueryRow(ctx, `
				select coalesce(max(tuples_processed), 0) from pg_stat_progress_copy where datname = current_database()`).Scan(&rows)
			if most = max(most, min(rows, total)); err == nil {
				bar.Show(most, total) // small tables follow
			}
		}
	}()
	return func() { cancel(); <-ended }
}

const copyInterval = 250 * time.Millisecond
