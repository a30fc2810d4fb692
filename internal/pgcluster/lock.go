package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// InUseError is the error of a data folder that another bahi serves.
type InUseError struct {
	Dir string
	PID int // 0 if unknown
}

func (e *InUseError) Error() string {
	holder := "another bahi"
	if e.PID != 0 {
		holder += " (pid " + strconv.Itoa(e.PID) + ")"
	}
	return fmt.Sprintf("the data folder %s is in use by %s: stop it, or name another folder in BAHI_DATA", e.Dir, holder)
}

// FolderLock is the right to serve a data folder. It ends with its process, however the process ends. Child processes do not inherit it.
type FolderLock struct{ file *os.File }

// Lock acquires the right to serve a data folder, and creates a missing folder. It never waits: if another process has the right, it
// returns an *InUseError with that process's number.
func Lock(dir string) (*FolderLock, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	file, err := openLock(f.lock())
	if err != nil {
		return nil, err
	}
	switch ok, err := flock(file, syscall.LOCK_EX); {
	case err != nil:
		return nil, errors.Join(err, file.Close())
	case !ok:
		text, _ := io.ReadAll(io.LimitReader(file, 32)) // The message is right without the pid too.
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, errors.Join(&InUseError{Dir: f.root, PID: pid}, file.Close())
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the pid into %s: %w", f.lock(), err), file.Close())
	}
	return &FolderLock{file: file}, nil
}

// Release releases the lock. The file stays: without it, two processes could hold locks on two files of one name.
func (l *FolderLock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release the data folder: %w", err)
	}
	return nil
}

// openLock opens a lock file. Go opens files close-on-exec, so Postgres does not inherit the lock.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // G304: a fixed name in the data folder.
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	return file, nil
}

// flock tries to take a lock of the given kind and reports whether it did.
func flock(file *os.File, kind int) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), kind|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
}

// flockWait waits for an exclusive lock. It polls, because the context could not interrupt a wait in the kernel.
func flockWait(ctx context.Context, file *os.File) error {
	for {
		if ok, err := flock(file, syscall.LOCK_EX); ok || err != nil {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s, held by another process that starts or stops Postgres: %w", file.Name(), err)
		}
	}
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
