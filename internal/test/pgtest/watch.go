package pgtest

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
)

//go:embed watch.sh
var watchScript string

// keepWatch starts a watcher that stops the cluster after the last test process has ended. It is a shell script, because a test binary with
// another purpose would need a hook in every package.
func keepWatch(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("watch over the test cluster: %w", err)
	}
	if _, err := exec.LookPath("flock"); err != nil {
		return nil //nolint:nilerr // On macOS the cluster stays, and the next run uses it again.
	}
	cmd := exec.Command("/bin/sh", "-c", watchScript, "bahi-pgtest-watch", dir) // No context: it outlives us.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // A Ctrl-C on go test is not for it.
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watch over the test cluster: %w", err)
	}
	go func() { _ = cmd.Wait() }() // All watchers but one end at once; that one outlives us.
	return nil
}
