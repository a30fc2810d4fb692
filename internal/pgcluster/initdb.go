package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// superuser is the only database user. People and keys are in Bahi, not in Postgres.
const superuser = "bahi"

// database is Bahi's database.
const database = "bahi"

// create creates a missing cluster. It works under another name and renames the complete folder, so that a crash half-way does not leave a
// folder that looks like a cluster. The next start removes the incomplete one.
func create(ctx context.Context, log *slog.Logger, p *Programs, f folder, o owner, ephemeral bool) error {
	leftovers, err := filepath.Glob(filepath.Join(f.postgres(), "init-*"))
	if err != nil {
		return fmt.Errorf("look for unfinished clusters: %w", err)
	}
	for _, dir := range leftovers {
		log.Warn("removing an unfinished cluster", "folder", dir)
		if err := removeUnfinished(ctx, dir); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(f.pgdata()); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for the cluster: %w", err)
	}
	tmp, err := os.MkdirTemp(f.postgres(), "init-")
	if err != nil {
		return fmt.Errorf("create a folder for the cluster: %w", err)
	}
	if err := os.Lchown(tmp, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give the cluster's folder to %s: %w", o.name, err)
	}
	args := []string{
		"--pgdata=" + tmp, "--username=" + superuser, "--encoding=UTF8", "--locale=C",
		"--auth-local=peer", "--auth-host=reject", "--no-instructions",
	}
	if ephemeral {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums") // detect a bad disk
	}
	log.Info("creating a Postgres cluster", "folder", f.pgdata(), "version", p.Version, "user", o.name)
	cmd := exec.CommandContext(ctx, p.path("initdb"), args...) //nolint:gosec // G204: the program was found or installed by us.
	cmd.Dir = "/"
	cmd.Env = append(p.env(), "HOME="+f.postgres(), "TZ=GMT")
	cmd.SysProcAttr = o.process()
	err = slowly(ctx, log, "creating a Postgres cluster", func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(filepath.Join(tmp, "postgresql.conf"), filepath.Join(tmp, triedOut)); err != nil {
		return fmt.Errorf("rename initdb's configuration: %w", err)
	}
	if err := os.Rename(tmp, f.pgdata()); err != nil {
		return fmt.Errorf("put the new cluster in its place: %w", err)
	}
	return syncFolder(f.postgres())
}

// removeUnfinished removes the folder of an initdb, which may outlive a killed Bahi for a moment and continue to write.
func removeUnfinished(ctx context.Context, dir string) error {
	for {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) || pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("remove an unfinished cluster: %w", err)
		}
	}
}

// syncFolder syncs a folder, so that a rename in it survives a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: a fixed name in the data folder.
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
