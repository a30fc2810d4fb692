package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// folder names the files of a data folder.
type folder struct {
	root string // absolute, without symbolic links
}

func (f folder) postgres() string  { return filepath.Join(f.root, "postgres") }
func (f folder) pgdata() string    { return filepath.Join(f.postgres(), "data") }
func (f folder) logs() string      { return filepath.Join(f.postgres(), "log") }
func (f folder) output() string    { return filepath.Join(f.logs(), "start.log") }
func (f folder) run() string       { return filepath.Join(f.postgres(), "run") }
func (f folder) socketAt() string  { return filepath.Join(f.postgres(), "socket") }
func (f folder) lock() string      { return filepath.Join(f.root, "lock") }
func (f folder) startLock() string { return filepath.Join(f.root, "postgres.start") }
func (f folder) userLock() string  { return filepath.Join(f.root, "postgres.users") }

// openFolder creates a missing data folder. As root, others may enter the folder (0711), because another user runs Postgres in a
// sub-folder; otherwise it is private (0700). An existing folder keeps its mode, plus the bits that root needs.
func openFolder(dir string) (folder, error) {
	if dir == "" {
		return folder{}, errors.New("no data folder is named: set BAHI_DATA")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return folder{}, fmt.Errorf("data folder %s: %w", dir, err)
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil { //nolint:gosec // G301: the parents of the data folder are not ours to close.
		return folder{}, fmt.Errorf("create the parents of the data folder (BAHI_DATA names another): %w", err)
	}
	if err := os.Mkdir(abs, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return folder{}, fmt.Errorf("create the data folder (BAHI_DATA names another): %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return folder{}, fmt.Errorf("data folder: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return folder{}, fmt.Errorf("data folder: %w", err)
	}
	if !info.IsDir() {
		return folder{}, fmt.Errorf("the data folder %s is not a folder; name another in BAHI_DATA", abs)
	}
	if os.Geteuid() == 0 && info.Mode().Perm()&0o011 != 0o011 {
		if err := os.Chmod(abs, info.Mode().Perm()|0o011); err != nil {
			return folder{}, fmt.Errorf("let Postgres pass through the data folder: %w", err)
		}
	}
	return folder{root: abs}, nil
}

// own creates the cluster's folders and gives them to its owner.
func (f folder) own(o owner) error {
	for _, dir := range []string{f.postgres(), f.logs(), f.run()} {
		err := os.Mkdir(dir, 0o700)
		switch {
		case errors.Is(err, os.ErrExist):
			continue
		case err != nil:
			return fmt.Errorf("create the cluster's folder: %w", err)
		}
		if err := os.Lchown(dir, int(o.uid), int(o.gid)); err != nil {
			return fmt.Errorf("give the cluster's folder to %s: %w", o.name, err)
		}
	}
	return nil
}

// reachable returns an error unless the owner can reach the data folder.
func (f folder) reachable(ctx context.Context, o owner) error {
	if !o.other {
		return nil
	}
	var above []string
	for dir := f.root; dir != "/"; dir = filepath.Dir(dir) {
		above = append([]string{dir}, above...)
	}
	args := append([]string{"-c", `for d; do cd "$d" 2>/dev/null || { printf %s "$d"; exit 1; }; done`, "sh"}, above...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...) //nolint:gosec // G204: the folders are arguments, not part of the script.
	cmd.Dir = "/"
	cmd.SysProcAttr = o.process()
	out, err := cmd.Output()
	if err == nil {
		return nil
	}
	closed := strings.TrimSpace(string(out))
	if closed == "" {
		return fmt.Errorf("run a program as %s, the user that runs Postgres because Postgres refuses to run as root: %w", o.name, err)
	}
	return fmt.Errorf("user %s, who runs Postgres because it refuses to run as root, cannot enter %s above the data folder %s: "+
		"name another data folder (BAHI_DATA=/var/lib/bahi), or run bahi as an ordinary user", o.name, closed, f.root)
}

// write writes a file atomically and gives it to the owner. The rename replaces a symbolic link instead of following it, because root
// writes into another user's folder.
func (f folder) write(path, text string, o owner) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // After the rename it does not exist.
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Chown(int(o.uid), int(o.gid)), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
