package pgcluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// port names the socket's file; nothing listens on TCP.
const port = "5432"

// longestSocketDir leaves room for the file's name in a socket address, which has at most 104 bytes (107 on Linux).
const longestSocketDir = 103 - len("/.s.PGSQL."+port)

// socketDir returns the folder of the socket: <data>/postgres/run if that is short and plain enough, otherwise a private folder with a
// short random name, recorded in the data folder. The record contains its data folder too, so that a copied data folder does not share its
// original's socket.
func socketDir(f folder, o owner) (string, error) {
	// Postgres accepts a list of folders here, so a name with list syntax is treated like one that is too long.
	if len(f.run()) <= longestSocketDir && !strings.ContainsAny(f.run(), "\",'\\@ \t\r\n") {
		return f.run(), nil
	}
	if record, err := readFile(f.socketAt()); err == nil {
		dir, data, _ := strings.Cut(strings.TrimSuffix(record, "\n"), "\n")
		if data == f.root && private(dir, o) {
			return dir, nil
		}
	}
	dir, err := shortDir()
	if err != nil {
		return "", err
	}
	if err := os.Lchown(dir, int(o.uid), int(o.gid)); err != nil {
		return "", fmt.Errorf("give the socket's folder to %s: %w", o.name, err)
	}
	return dir, f.write(f.socketAt(), dir+"\n"+f.root+"\n", o)
}

// restoreSocketDir creates the folder again after /tmp was cleaned.
func restoreSocketDir(dir string, o owner) error {
	if private(dir, o) {
		return nil
	}
	err := os.Mkdir(dir, 0o700) // Fails if another user has taken the name.
	if err == nil {
		err = os.Lchown(dir, int(o.uid), int(o.gid))
	}
	if err != nil {
		return fmt.Errorf("make the socket's folder again: %w", err)
	}
	return nil
}

func shortDir() (string, error) {
	var errs []error
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp", "/run"} {
		if base == "" || strings.ContainsAny(base, "\",'\\ \t\r\n") {
			continue
		}
		// As root, another user must be able to pass through.
		if info, err := os.Stat(base); err != nil || os.Geteuid() == 0 && info.Mode().Perm()&0o001 == 0 {
			continue
		}
		dir, err := os.MkdirTemp(base, "bahi-")
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(dir) > longestSocketDir:
			errs = append(errs, fmt.Errorf("%s is too long", dir), os.Remove(dir))
		default:
			return dir, nil
		}
	}
	return "", fmt.Errorf("find a folder with a short name for the socket (TMPDIR names one): %w", errors.Join(errs...))
}

// private reports whether the folder is the owner's alone and not a symbolic link.
func private(dir string, o owner) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == o.uid
}

// forgetSocket removes the short folder of a stopped cluster, and its record.
func forgetSocket(f folder, dir string) {
	if dir == f.run() {
		return
	}
	if os.Remove(dir) == nil { // Only if empty: a file in it is not ours.
		_ = os.Remove(f.socketAt()) // A record that stays is checked before use.
	}
}
