// Package jail runs external programs on users' files: without a shell, without our environment, as the user nobody if this process is
// root, in a private folder, without a network if the kernel allows that, and with limits on time, memory, file size and processes. Few
// programs run at once, and one workspace's files are processed one after another.
//
// The kernel enforces the limits (setrlimit(2)). Go cannot set them for a child, so the program prlimit of util-linux sets them and becomes
// the jailed program. A network namespace removes the network. Root and users who may create namespaces can have one, but not the root of
// most containers: see [Isolated]. A sandbox with further namespaces would have to copy the programs' libraries.
package jail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
)

// Limits limit a program. Zero values are replaced by those of [defaultLimits].
type Limits struct {
	Time      time.Duration // time of one run
	Processor time.Duration // processor time of one process in one run, in whole seconds
	Memory    int64         // bytes of address space of a process
	FileSize  int64         // bytes of a file that it writes
	Output    int64         // bytes of its standard output
	Processes int           // processes and threads, in addition to those that its user has
}

// defaultLimits are limits for a page of a document.
var defaultLimits = Limits{Time: 60 * time.Second, Processor: 20 * time.Second, Memory: 1 << 30, FileSize: 256 << 20, Output: 16 << 20,
	Processes: 32}

// ErrTime is the error of a run that exceeded its time.
var ErrTime = errors.New("the program took too long")

// ErrBusy reports that another jail of the owner is still open.
var ErrBusy = &fault.Error{Kind: fault.Unavailable, Detail: "Another file of this workspace is being read. Try again later.", RetryAfter: 5}

// ErrOutput is the error of a run with more output than allowed.
var ErrOutput = errors.New("the program wrote too much")

// ExitError is the error of a program that failed, or was killed by a limit.
type ExitError struct {
	Program string
	Code    int    // -1: killed by a signal
	Said    string // the end of its standard error, which may quote the file
}

// Error implements error. It does not quote the program's output.
func (f *ExitError) Error() string { return fmt.Sprintf("%s ended with code %d", f.Program, f.Code) }

// nobody is the user and group of programs that root starts.
const nobody = 65534

// Owner is the workspace of the file.
type Owner struct {
	ID   uuid.UUID     // uuid.Nil: no workspace
	Wait time.Duration // wait for the owner's other file; 0: unlimited
}

// running limits the concurrent programs of this process.
var running = semaphore.NewWeighted(int64(max(2, runtime.NumCPU()/2)))

// turns has the owners with open jails. Each owner has one jail at a time.
var turns = struct {
	sync.Mutex
	of map[uuid.UUID]*turn
}{of: map[uuid.UUID]*turn{}}

type turn struct {
	one   *semaphore.Weighted
	users int // number that have it or wait for it
}

// take waits for the owner's turn and returns the function that ends it.
func (o Owner) take(ctx context.Context) (end func(), err error) {
	if o.ID == uuid.Nil {
		return func() {}, nil
	}
	turns.Lock()
	t := turns.of[o.ID]
	if t == nil {
		t = &turn{one: semaphore.NewWeighted(1)}
		turns.of[o.ID] = t
	}
	t.users++
	turns.Unlock()
	leave := func() {
		turns.Lock()
		defer turns.Unlock()
		if t.users--; t.users == 0 {
			delete(turns.of, o.ID)
		}
	}
	waiting, cancel := ctx, func() {}
	if o.Wait > 0 {
		waiting, cancel = context.WithTimeout(ctx, o.Wait)
	}
	defer cancel()
	if err := t.one.Acquire(waiting, 1); err != nil {
		leave()
		if ctx.Err() == nil {
			err = ErrBusy
		}
		return nil, err
	}
	return sync.OnceFunc(func() { t.one.Release(1); leave() }), nil
}

// Jail is a private folder and the programs that run in it. Only one goroutine may use it.
type Jail struct {
	Env []string // beside the jail's own

	dir    string
	limits Limits
	user   *syscall.Credential // nil: this process's own
	end    func()              // ends the owner's turn
}

// Open creates a jail for a file of an owner. An owner may have one jail at a time. Until the owner closes an earlier one, Open waits, and
// returns [ErrBusy] after Owner.Wait. Close removes the jail.
func Open(ctx context.Context, of Owner, l Limits) (*Jail, error) {
	end, err := of.take(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bahi-cage-")
	if err != nil {
		end()
		return nil, fmt.Errorf("create a jail: %w", err)
	}
	c := &Jail{dir: dir, limits: l.withDefaults(), user: credential(), end: end}
	if c.user != nil {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, errors.Join(fmt.Errorf("create a jail: %w", err), c.Close())
		}
	}
	return c, nil
}

func (l Limits) withDefaults() Limits {
	d := defaultLimits
	return Limits{
		Time: cmp.Or(l.Time, d.Time), Processor: cmp.Or(l.Processor, d.Processor), Memory: cmp.Or(l.Memory, d.Memory),
		FileSize: cmp.Or(l.FileSize, d.FileSize), Output: cmp.Or(l.Output, d.Output), Processes: cmp.Or(l.Processes, d.Processes),
	}
}

// Close removes the folder and all that is in it.
func (c *Jail) Close() error {
	defer c.end()
	return os.RemoveAll(c.dir)
}

// Put writes a file for the programs. The name has no folder.
func (c *Jail) Put(name string, content []byte) error {
	path := c.path(name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write into the jail: %w", err)
	}
	if c.user == nil {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}

// ReadFile returns and removes a file that a program wrote. It refuses links and files larger than Limits.FileSize.
func (c *Jail) ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(c.path(name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read from the jail: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > c.limits.FileSize {
		return nil, errors.Join(fmt.Errorf("read from the jail: %s is not a file of at most %d bytes", name, c.limits.FileSize), err)
	}
	content, err := io.ReadAll(io.LimitReader(f, c.limits.FileSize))
	return content, errors.Join(err, os.Remove(f.Name()))
}

func (c *Jail) path(name string) string { return filepath.Join(c.dir, filepath.Base(name)) }

// Run runs a program, whose path is absolute, in the folder, and returns its standard output. When the context or the time ends, Run kills
// the program and its children. Errors are [ErrTime], [ErrOutput], a [*ExitError], the context's, or the failure to start the program.
func (c *Jail) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	var kept bytes.Buffer
	if err := c.Stream(ctx, &kept, program, args...); err != nil {
		return nil, err
	}
	return kept.Bytes(), nil
}

// Stream is Run with a writer that gets the standard output while the program runs. The writer MUST NOT block: the program's time
// continues.
func (c *Jail) Stream(ctx context.Context, to io.Writer, program string, args ...string) error {
	if err := running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer running.Release(1)
	timed, cancel := context.WithTimeoutCause(ctx, c.limits.Time, ErrTime)
	defer cancel()
	limits, err := c.prlimit()
	if err != nil {
		return err
	}
	out, said := &output{to: to, most: c.limits.Output, full: cancel}, &tail{}
	//nolint:gosec // G204: the caller chooses the program
	cmd := exec.CommandContext(timed, limits[0], append(append(limits[1:], program), args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, said
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + c.dir, "TMPDIR=" + c.dir}, c.Env...)
	// The whole group is killed. Pdeathsig covers the death of this process.
	cmd.SysProcAttr = within(chosen(), c.user)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // children that it left
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	status, killed := syscall.WaitStatus(0), false
	if ended {
		status, killed = exit.Sys().(syscall.WaitStatus)
	}
	switch {
	case out.over:
		return ErrOutput
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil, ended && killed && status.Signal() == syscall.SIGXCPU:
		return ErrTime
	case ended:
		return &ExitError{Program: filepath.Base(program), Code: exit.ExitCode(), Said: said.String()}
	case err != nil:
		return fmt.Errorf("run %s: %w", filepath.Base(program), err)
	}
	return nil
}

// namespaces are flags to run without a network, in the order in which they are tried. The last, 0, keeps the network.
var namespaces = []uintptr{syscall.CLONE_NEWNET, syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER, 0}

// chosen returns the first of the namespaces that the kernel allows.
var chosen = sync.OnceValue(func() uintptr {
	for _, flags := range namespaces {
		cmd := exec.CommandContext(context.Background(), "true")
		cmd.SysProcAttr = within(flags, credential())
		if flags == 0 || cmd.Run() == nil {
			return flags
		}
	}
	return 0
})

// Isolated reports whether programs have no network. If not, the machine's firewall can block the user nobody.
func Isolated() bool { return chosen() != 0 }

// within returns the attributes of a program: its own process group, another user, and the namespaces of the flags.
func within(flags uintptr, user *syscall.Credential) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Credential: user, Pdeathsig: syscall.SIGKILL, Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		uid, gid := os.Geteuid(), os.Getegid()
		if user != nil {
			uid, gid, attr.GidMappingsEnableSetgroups = nobody, nobody, true
		}
		attr.UidMappings, attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			[]syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	return attr
}

// credential returns the user of programs, nil: this process's own.
func credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// prlimit returns the command that sets the limits.
func (c *Jail) prlimit() ([]string, error) {
	path, err := exec.LookPath("prlimit")
	if err != nil {
		return nil, fmt.Errorf("limit a program (apt-get install util-linux): %w", err)
	}
	args := []string{
		path, "--as=" + strconv.FormatInt(c.limits.Memory, 10), "--fsize=" + strconv.FormatInt(c.limits.FileSize, 10),
		fmt.Sprintf("--cpu=%d:%d", int(c.limits.Processor/time.Second), int(c.limits.Processor/time.Second)+1), "--core=0", "--nofile=64",
	}
	if others, err := c.threads(); err == nil { // without /proc there is no such limit
		args = append(args, "--nproc="+strconv.Itoa(others+c.limits.Processes))
	}
	return append(args, "--"), nil
}

// threads counts the threads of the programs' user, which count towards the kernel's limit.
func (c *Jail) threads() (count int, err error) {
	uid := os.Geteuid()
	if c.user != nil {
		uid = nobody
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range all {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // it has ended
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != uid {
			continue
		}
		status, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "status")) // none if the process has ended
		_, rest, _ := strings.Cut(string(status), "\nThreads:\t")
		number, _, _ := strings.Cut(rest, "\n")
		if n, err := strconv.Atoi(number); err == nil {
			count += n
		}
	}
	return count, nil
}

// output passes the standard output on up to a limit, and ends the program at the limit.
type output struct {
	to   io.Writer // not embedded: a ReadFrom would bypass the limit
	most int64     // bytes still allowed
	over bool
	full func()
}

func (o *output) Write(p []byte) (int, error) {
	if o.most -= int64(len(p)); o.most < 0 {
		o.over = true
		o.full()
		return 0, ErrOutput
	}
	return o.to.Write(p)
}

// tail keeps the end of the standard error.
type tail struct{ text []byte }

const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "") }
