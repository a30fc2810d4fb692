package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postmaster is the cluster's first process.
type postmaster struct {
	pid  int
	gone chan struct{} // closed when it has ended
}

// launch starts the postmaster. It returns once the process runs, before the cluster accepts connections.
func launch(p *Programs, f folder, o owner) (*postmaster, error) {
	out, err := os.OpenFile(f.output(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open postgres's log: %w", err)
	}
	defer func() { _ = out.Close() }() // Postgres has its own descriptor by then.
	if err := out.Chown(int(o.uid), int(o.gid)); err != nil {
		return nil, fmt.Errorf("give postgres its log: %w", err)
	}
	// Not CommandContext: the cluster outlives every context of this process.
	cmd := exec.Command(p.path("postgres"), "-D", f.pgdata()) //nolint:gosec,noctx // G204: the program was found or installed by us.
	cmd.Dir = "/"
	cmd.Env = append(p.env(), "HOME="+f.postgres())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = o.process()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start postgres as %s: %w", o.name, err)
	}
	pm := &postmaster{pid: cmd.Process.Pid, gone: make(chan struct{})}
	go func() {
		defer close(pm.gone)
		_ = cmd.Wait() // its log has the reason.
	}()
	return pm, nil
}

// findPostmaster returns the cluster's live postmaster, or nil.
func findPostmaster(f folder) (*postmaster, error) {
	pid, err := pidIn(f, filepath.Join(f.pgdata(), "postmaster.pid"))
	if pid == 0 || err != nil {
		return nil, err
	}
	return &postmaster{pid: pid}, nil
}

// removeStaleSocket removes the socket's lock file unless it names our postmaster.
func removeStaleSocket(f folder, dir string) error {
	_, err := pidIn(f, filepath.Join(dir, ".s.PGSQL."+port+".lock"))
	return err
}

// pidIn reads one of Postgres's pid files and returns the process number if it is our postmaster, otherwise 0. It removes a file that names
// another process: after a reboot, in a container (where the same few numbers recur) or in a copied data folder it would keep Postgres from
// starting. Postgres itself handles a file that names no process.
func pidIn(f folder, path string) (int, error) {
	text, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("look for a running postgres: %w", err)
	}
	first, _, _ := strings.Cut(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	switch {
	case err == nil && pid > 1 && runs(f, pid):
		return pid, nil
	// A crash between creating and filling the file leaves it empty, and Postgres does not start then.
	case err != nil || pid <= 1 || processExists(pid):
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("remove a stale pid file: %w", err)
		}
	}
	return 0, nil
}

// watch closes gone when a postmaster ends that is not our child.
func (pm *postmaster) watch(ctx context.Context, f folder, every time.Duration) {
	pm.gone = make(chan struct{})
	go func() {
		for runs(f, pm.pid) {
			if pause(ctx, every) != nil {
				return
			}
		}
		close(pm.gone)
	}()
}

// runs reports whether the process is the cluster's postmaster: it has the cluster's folder as its working directory, whatever the folder's
// name at its start. If that is invisible, as to root in a container, the command line decides.
func runs(f folder, pid int) bool {
	args := commandLine(pid)
	i := slices.Index(args, "-D")
	if i < 0 || i+1 == len(args) {
		return false
	}
	works, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	data, missing := os.Stat(f.pgdata())
	if err != nil || missing != nil {
		return args[i+1] == f.pgdata()
	}
	return os.SameFile(works, data)
}

// commandLine returns a process's arguments; none without such a process, and none for a zombie.
func commandLine(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err == nil {
		return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return nil
	}
	//nolint:gosec,noctx // G204: a number; ps ends at once.
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// endOrphans ends the children of a killed postmaster. They end by themselves, but a running query takes time, and no new postmaster starts
// while they hold the old shared memory. Crash recovery follows in any case, so nothing is lost.
func endOrphans(f folder, signal syscall.Signal) {
	for _, pid := range processes(f) {
		_ = syscall.Kill(pid, signal) // It may have ended meanwhile.
	}
}

// processes returns the cluster's processes; none without /proc.
func processes(f folder) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	title := "postgres: " + clusterName(f) + ": " // A new child still has the postmaster's arguments.
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if args := commandLine(pid); len(args) > 0 && strings.HasPrefix(args[0], title) || runs(f, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop requests a fast shutdown, and after a delay an immediate one. It returns when no process of the cluster remains: the logger ends
// after the postmaster, and may write into the folder until then.
func (pm *postmaster) stop(ctx context.Context, log *slog.Logger, f folder, delay time.Duration) error {
	if err := pm.shutDown(ctx, log, delay); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); len(processes(f)) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func (pm *postmaster) shutDown(ctx context.Context, log *slog.Logger, delay time.Duration) error {
	if err := pm.signal(syscall.SIGINT); err != nil {
		return err
	}
	fast, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	select {
	case <-pm.gone:
		return nil
	case <-fast.Done():
	}
	log.Warn("Postgres takes too long to stop; stopping it immediately, its next start will recover", "pid", pm.pid)
	if err := pm.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	// An immediate shutdown kills its children after five seconds, so the caller's deadline does not limit it.
	select {
	case <-pm.gone:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("postgres (pid %d) does not stop", pm.pid)
	}
}

func (pm *postmaster) signal(s syscall.Signal) error {
	if err := syscall.Kill(pm.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal postgres (pid %d): %w", pm.pid, err)
	}
	return nil
}

// lastWords returns Postgres's last output: its standard error until its log collector runs, then its log.
func lastWords(f folder) string {
	text, err := readFile(f.output())
	if err == nil && !strings.Contains(text, "redirecting log output") {
		return strings.TrimSpace(text)
	}
	return lastLogLine(f)
}

// lastLogLine returns the last line of the newest log file.
func lastLogLine(f folder) string {
	files, _ := filepath.Glob(filepath.Join(f.logs(), "postgres-*.log")) // The pattern is constant, so never bad.
	var newest string
	var when time.Time
	for _, file := range files {
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && info.ModTime().After(when) {
			newest, when = file, info.ModTime()
		}
	}
	if newest == "" {
		return ""
	}
	text, err := readFile(newest)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// readFile returns the last 8 KiB of a file in another user's folder. It follows no symbolic link.
func readFile(path string) (string, error) {
	//nolint:gosec // G304: fixed names in the data folder.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err //nolint:wrapcheck // It names the file, and callers compare it.
	}
	defer func() { _ = file.Close() }()
	const most = 8 << 10
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return "", err //nolint:wrapcheck // as above
		}
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(file, most))
	return b.String(), err //nolint:wrapcheck // as above
}
