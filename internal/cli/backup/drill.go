package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/vault"
	"bahi/internal/app"
	"bahi/internal/cli/doctor"
	"bahi/internal/cli/events"
	"bahi/internal/cli/progress"
	"bahi/internal/pgcluster"
	"bahi/migrations"
)

// drill restores a backup as a test and removes everything again.
type drill struct {
	RestoreCommand

	manifest Manifest
}

var errDrillFailed = errors.New("the drill found differences")

// findings are the results of a drill.
type findings struct {
	restoring, building, comparing time.Duration
	restored                       int64 // bytes of the database
	events                         uint64
	subjects, erased               int
	differences                    []string
}

// run restores the backup and builds everything from it, in its own cluster in a temporary folder.
func (d drill) run(ctx context.Context) (err error) {
	began := time.Now()
	key, err := d.MasterKeyNamed(d.manifest.MasterKeyID)
	if err != nil && !errors.Is(err, app.ErrNoMasterKey) && !errors.Is(err, app.ErrOtherMasterKey) {
		return err
	}
	if err != nil {
		fmt.Fprintf(d.Shell.Err, "Personal values count as erased, and are not opened: %s\n", err)
	}
	if err := d.manifest.check(ctx, d.Dir, d.Shell.Err); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(d.Shell.Getenv("TMPDIR"), "bahi-drill-")
	if err != nil {
		return fmt.Errorf("create a folder for the drill: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	//nolint:gosec // G302: as root, another user runs Postgres in it; the folders below are closed
	if err := os.Chmod(scratch, 0o711); err != nil {
		return fmt.Errorf("permit Postgres to enter the drill's folder: %w", err)
	}
	db := &app.Database{Log: d.Logger(false)}
	// it need not survive a power cut
	db.Cluster, err = pgcluster.Start(ctx, pgcluster.Options{Dir: scratch, Log: d.Logger(false), Ephemeral: true})
	if err != nil {
		return err
	}
	defer db.Close()
	db.Url = db.Cluster.URL()

	found := &findings{}
	if err := d.restoreInto(ctx, db, found); errors.Is(err, errOtherHead) {
		found.differences = append(found.differences, err.Error())
	} else if err != nil {
		return err
	}
	s := d.Settings
	s.Data, s.DatabaseURL, s.MasterKey, s.EventStore = scratch, db.Url, key, ""
	if key == "" {
		if err := forgetKeys(ctx, db, scratch); err != nil {
			return err
		}
	}
	if err := d.examine(ctx, s, key != "", found); err != nil {
		return err
	}
	if found.restored, err = folderSize(scratch); err != nil {
		return err
	}
	d.report(found, time.Since(began))
	if len(found.differences) > 0 {
		return errDrillFailed
	}
	return nil
}

func (d drill) restoreInto(ctx context.Context, db *app.Database, found *findings) error {
	began := time.Now()
	err := load(ctx, db, d.Settings, d.manifest, d.Dir)
	found.restoring = time.Since(began)
	if err != nil && !errors.Is(err, errOtherHead) {
		return err
	}
	return errors.Join(err, leaveJournal(ctx, db))
}

// leaveJournal separates the restored log from the original's journal.
func leaveJournal(ctx context.Context, db *app.Database) error {
	if err := migrations.Up(ctx, db.Url); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, db.Url)
	if err != nil {
		return fmt.Errorf("connect to the restored database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if _, err := conn.Exec(ctx, `update log.identity set journal = null`); err != nil {
		return fmt.Errorf("separate the restored log from its journal: %w", err)
	}
	return nil
}

// examine builds every projection, reads the log to its end, and runs doctor to compare the tables with it.
func (d drill) examine(ctx context.Context, s app.Settings, open bool, found *findings) error {
	sys, err := s.OpenBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	began := time.Now()
	if err := sys.CatchUp(ctx); err != nil {
		return err
	}
	found.building = time.Since(began)
	if err := d.read(ctx, sys, open, found); err != nil {
		return err
	}
	began = time.Now()
	err = doctor.Command{Settings: s}.Run(ctx, sys)
	found.comparing = time.Since(began)
	if errors.Is(err, app.ErrDifferent) {
		found.differences = append(found.differences, err.Error())
		err = nil
	}
	return err
}

// read reads the log to its end and opens one value of each key.
func (d drill) read(ctx context.Context, sys *app.System, open bool, found *findings) error {
	type key struct {
		subject string
		version int
	}
	seen := map[key]bool{}
	bar := progress.NewBar(d.Shell.Err, "reading the log", "events")
	defer bar.End()
	for e, err := range sys.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return err
		}
		found.events++
		if uint64(e.Position) != found.events {
			found.differences = append(found.differences, fmt.Sprintf("the log has no event at position %d", found.events))
			return nil
		}
		bar.Show(int64(e.Position), int64(d.manifest.Head))
		for _, s := range events.SealedIn(e.Data) {
			version, _, _ := s.Box()
			of := key{s.Subject(), version}
			if seen[of] {
				continue
			}
			seen[of] = true
			_, err := sys.Vault.OpenValue(ctx, s)
			switch {
			case errors.Is(err, event.ErrErased):
				found.erased++
			case errors.Is(err, vault.ErrNoKey), errors.Is(err, vault.ErrChanged):
				found.differences = append(found.differences, fmt.Sprintf("position %d: %s", e.Position, err))
			case err != nil:
				return err
			}
		}
	}
	found.subjects = len(seen)
	if !open {
		found.subjects = -1
	}
	if found.events != uint64(d.manifest.Head) {
		found.differences = append(found.differences,
			fmt.Sprintf("the log has %d events, and the manifest has %d", found.events, d.manifest.Head))
	}
	return nil
}

func (d drill) report(found *findings, took time.Duration) {
	m := d.manifest
	out := tabwriter.NewWriter(d.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "backup\t%s, taken %s by Bahi %s from Postgres %s\n", d.Dir, m.TakenAt.Format(time.RFC3339), m.Program, m.Postgres)
	fmt.Fprintf(out, "log\t%s, %d events, the newest %s\n", m.StoreID, found.events, nameOf(m.HeadID))
	fmt.Fprintf(out, "size\t%d bytes in %d files; restored and built %d bytes\n", m.bytes(), len(m.Files), found.restored)
	values := "not opened: the master key is missing"
	if found.subjects >= 0 {
		values = strconv.Itoa(found.subjects) + " keys tried on a value each, of which " + strconv.Itoa(found.erased) +
			" were destroyed by erasures"
	}
	fmt.Fprintf(out, "values\t%s\n", values)
	fmt.Fprintf(out, "took\t%s: restoring %s, building %s, comparing %s\n", took.Round(time.Millisecond),
		found.restoring.Round(time.Millisecond), found.building.Round(time.Millisecond), found.comparing.Round(time.Millisecond))
	fmt.Fprintf(out, "differences\t%d\n", len(found.differences))
	_ = out.Flush() // a closed terminal is no failure
	for _, difference := range found.differences {
		fmt.Fprintln(d.Shell.Out, difference)
	}
}

// forgetKeys gives the vault another master key and marks all subjects' keys as destroyed. Without the right master key they cannot be
// opened, and a reader of the log must see them as erased.
func forgetKeys(ctx context.Context, db *app.Database, scratch string) error {
	key, err := vault.LoadOrMakeMasterKey(scratch, "")
	if err != nil {
		return err
	}
	id, err := vault.MasterKeyID(key)
	if err != nil {
		return err
	}
	pool, err := db.Pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, sql := range []string{
		`update vault.key set wrapped = null, destroyed_at = coalesce(destroyed_at, now())`,
		`delete from vault.named`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("mark the keys as destroyed: %w", err)
		}
	}
	if _, err := pool.Exec(ctx, `update vault.master set key_id = $1`, id); err != nil {
		return fmt.Errorf("replace the master key: %w", err)
	}
	return nil
}

// folderSize returns the bytes of a folder's files. Files may change meanwhile.
func folderSize(dir string) (sum int64, err error) {
	err = eachFile(dir, func(name string) error {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		sum += info.Size()
		return nil
	})
	return sum, err
}
