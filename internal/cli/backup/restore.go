package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/internal/app"
)

type RestoreCommand struct {
	app.Settings

	Dir      string `arg:"" help:"The backup's folder."`
	Erasures string `placeholder:"FILE" help:"The list of erased users, to erase them again: see bahi vault erasures."`
	Drill    bool   `help:"Change nothing. Restore into a temporary database, build and compare all tables, and report."`
	BlobURL  string `env:"BLOB_URL" name:"blob-url" placeholder:"URL" help:"Bucket of the images, to delete those of erased users."`
}

// Run restores the backup, or runs a drill. The data folder or database must be empty except for the master key.
func (c RestoreCommand) Run(ctx context.Context) error {
	m, err := OpenBackup(c.Dir)
	if err != nil {
		return err
	}
	if c.Drill {
		if c.Erasures != "" {
			return errors.New("a drill erases nobody: omit --erasures")
		}
		return drill{RestoreCommand: c, manifest: m}.run(ctx)
	}
	began := time.Now()
	if _, err := c.MasterKeyNamed(m.MasterKeyID); err != nil {
		return err
	}
	if c.Erasures != "" {
		if _, err := (ErasureList{File: c.Erasures}).Read(); err != nil {
			return err
		}
	}
	if err := m.check(ctx, c.Dir, c.Shell.Err); err != nil {
		return err
	}
	if err := c.restore(ctx, m); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d events of the log %s are there again, as of %s (%s); tables are built at the next start\n",
		m.Head, m.StoreID, m.TakenAt.Format(time.RFC3339), time.Since(began).Round(time.Millisecond))
	if m.Blobs == blobsInBucket {
		fmt.Fprintln(c.Shell.Err, "The images were in a bucket, and the backup has none of them.")
	}
	if c.Erasures == "" {
		fmt.Fprintln(c.Shell.Err, "WARNING: no list of erasures was given. Users who were erased after the backup exist again.\n"+
			"Before you start the server, run bahi vault erasures apply FILE with the newest list.")
		return nil
	}
	s := c.Settings
	s.Outside.BlobURL = c.BlobURL
	return applyErasures{ErasureList{Settings: s, File: c.Erasures}}.Run(ctx)
}

// restore fills the database and the folder of images.
func (c RestoreCommand) restore(ctx context.Context, m Manifest) error {
	blobs := filepath.Join(c.Data, "blobs")
	if err := eachFile(blobs, func(name string) error {
		return fmt.Errorf("there are images already, such as %s: restore into an empty data folder", name)
	}); err != nil {
		return err
	}
	db, err := c.AttachAlone(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := load(ctx, db, c.Settings, m, c.Dir); err != nil {
		return err
	}
	if err := copyFolder(ctx, filepath.Join(c.Dir, blobsFolder), blobs); err != nil {
		return fmt.Errorf("the database is restored, but not all images: %w", err)
	}
	if _, err := os.Stat(blobs); err != nil {
		return nil // no images
	}
	return syncTree(blobs)
}

// load restores a backup into an empty database, and compares the log's end with the manifest.
func load(ctx context.Context, db *app.Database, s app.Settings, m Manifest, dir string) error {
	conn, err := pgx.Connect(ctx, db.Url)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection only read
	server, err := checkEmpty(ctx, conn)
	if err != nil {
		return err
	}
	if made := app.MajorOf(m.Postgres); app.MajorOf(server) < made {
		return fmt.Errorf("the backup is of Postgres %s, and the one here is %s: restoring requires %d or newer", m.Postgres, server, made)
	}
	tools, err := db.Tools(ctx, s.Logger(false), max(app.MajorOf(m.Postgres), app.MajorOf(server)))
	if err != nil {
		return err
	}
	done := watchCopy(ctx, db, s.Shell.Err, "restoring the log", int64(m.Head))
	defer done()
	// The schemas are last, all in one transaction: if they exist, everything exists.
	for _, args := range [][]string{{"--clean", "--if-exists", filepath.Join(dir, MigrationDump)}, {filepath.Join(dir, DatabaseDump)}} {
		args = append([]string{"--no-owner", "--no-privileges", "--single-transaction"}, args...)
		if err := tools.Run(ctx, "pg_restore", args...); err != nil {
			return err
		}
	}
	return checkHead(ctx, conn, m)
}

// checkEmpty refuses a database that Bahi has used, and returns its server's version.
func checkEmpty(ctx context.Context, conn *pgx.Conn) (server string, err error) {
	var schemas []string
	err = conn.QueryRow(ctx, `
		select current_setting('server_version'),
			array(select nspname::text from pg_namespace where nspname = any($1) order by nspname)`, backedUp()).Scan(&server, &schemas)
	if err != nil {
		return "", fmt.Errorf("query the database: %w", err)
	}
	if len(schemas) > 0 {
		return "", fmt.Errorf("the database is not empty: it has the schemas %s. Restore into an empty one, or into another data folder "+
			"(BAHI_DATA)",
			strings.Join(schemas, ", "))
	}
	return server, nil
}

// checkHead compares the log's end with the manifest.
func checkHead(ctx context.Context, conn *pgx.Conn, m Manifest) error {
	var (
		store  uuid.UUID
		head   event.Position
		headID *uuid.UUID
	)
	err := conn.QueryRow(ctx, `
		select (select store_id from log.identity), log.head(), (select id from log.event where position = log.head())`).
		Scan(&store, &head, &headID)
	if err != nil {
		return fmt.Errorf("query the restored log: %w", err)
	}
	if store != m.StoreID || head != m.Head || nameOf(headID) != nameOf(m.HeadID) {
		return fmt.Errorf("%w: it is the log %s and ends at position %d with the event %s, and the manifest has %s, %d and %s",
			errOtherHead, store, head, nameOf(headID), m.StoreID, m.Head, nameOf(m.HeadID))
	}
	return nil
}

var errOtherHead = errors.New("the restored log is not the one of the backup's manifest")

func nameOf(id *uuid.UUID) string {
	if id == nil {
		return "none"
	}
	return id.String()
}
