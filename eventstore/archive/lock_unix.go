//go:build unix

package archive

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock prevents two processes from writing to one archive.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir) //nolint:gosec // G304: the operator names the folder
	if err != nil {
		return nil, fmt.Errorf("lock the archive: %w", err)
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another process writes to the archive %s: %w", dir, err), d.Close())
	}
	return func() { _ = d.Close() }, nil // closing releases the lock
}
