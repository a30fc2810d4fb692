package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// owner is the user that runs Postgres and owns its files.
type owner struct {
	name     string
	uid, gid uint32
	other    bool // not the user of this process
}

// process returns the attributes of a program that runs as the owner, in its own session: a Ctrl-C at the terminal must reach Bahi alone,
// which then stops Postgres.
func (o owner) process() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if o.other {
		attr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return attr
}

// ownerOf returns the owner of a data folder's cluster: its owner so far, otherwise the user of this process. Postgres refuses to run as
// root. Instead of root, the owner is the user postgres or bahi. If both are missing, ownerOf creates one.
func ownerOf(ctx context.Context, f folder) (owner, error) {
	self := os.Geteuid()
	uid := self
	if info, err := os.Lstat(f.postgres()); err == nil {
		if !info.IsDir() {
			return owner{}, fmt.Errorf("%s is not a folder", f.postgres())
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			uid = int(sys.Uid)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return owner{}, fmt.Errorf("look at the cluster's folder: %w", err)
	}
	switch {
	case self != 0 && uid != self:
		return owner{}, fmt.Errorf("%s belongs to the user %s: run bahi as that user or as root, or name another folder in BAHI_DATA",
			f.postgres(), userName(uid))
	case uid != 0:
		u, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return owner{}, fmt.Errorf("the user number %d has no name, and Postgres needs one (a line in /etc/passwd): %w", uid, err)
		}
		return newOwner(u)
	}
	for _, name := range []string{"postgres", "bahi"} {
		if u, err := user.Lookup(name); err == nil {
			return newOwner(u)
		}
	}
	return addUser(ctx)
}

// addUser creates the system user bahi, with the tool of Debian and Red Hat or with Alpine's.
func addUser(ctx context.Context) (owner, error) {
	var errs []error
	for _, line := range []string{
		"useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin bahi",
		"adduser -S -D -H bahi",
	} {
		args := strings.Fields(line)
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput() //nolint:gosec // G204: two constant command lines.
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out))))
			continue
		}
		u, err := user.Lookup("bahi")
		if err != nil {
			return owner{}, fmt.Errorf("find the new user: %w", err)
		}
		return newOwner(u)
	}
	return owner{}, fmt.Errorf("create a user to run Postgres, which refuses to run as root (create a user named postgres, or run bahi as an "+
		"ordinary user): %w", errors.Join(errs...))
}

func newOwner(u *user.User) (owner, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return owner{name: u.Username, uid: uint32(uid), gid: uint32(gid), other: int(uid) != os.Geteuid()}, nil
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
