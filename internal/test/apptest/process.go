package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/browsertest"
	"bahi/internal/test/starter"
)

// Binary returns the program's path: BAHI_TEST_PROGRAM, which scripts/test.sh builds once for all packages. Without it, Binary builds the
// program once for this package, with the race detector if its tests have it. Main removes it.
func Binary() (string, error) {
	if path := os.Getenv("BAHI_TEST_PROGRAM"); path != "" {
		return path, nil
	}
	built.Store(true)
	return build()
}

var built atomic.Bool

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bahi-binary-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bahi")
	return path, GoBuild(path, "v0-test")
})

// shell runs a command of bahi in the test's own process.
var shell func(context.Context, app.Shell, ...string) int

// Main runs the tests of a package that serves, or starts the program. A package that runs commands in the test's own process passes
// cli.Run. The other packages then compile and link without the shell's packages.
func Main(m *testing.M, run ...func(context.Context, app.Shell, ...string) int) {
	if len(run) > 0 {
		shell = run[0]
	}
	app.Version = "v0-test"
	app.TuneCollector() // as the program does
	code := m.Run()
	if !ended() {
		code = max(code, 1)
	}
	browsertest.End()
	if built.Load() {
		if path, err := build(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// GoBuild builds the program.
func GoBuild(path, version string, flags ...string) error {
	args := append([]string{"build", "-o", path, "-ldflags", "-s -w -X bahi/internal/app.Version=" + version}, flags...)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race")
			}
		}
	}
	if out, err := exec.Command("go", append(args, "bahi/cmd/bahi")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Cmd is a bahi before its start: a command or a server in the test's own process, or a process.
type Cmd struct {
	Args    []string
	Env     []string // name=value; the last of equal names counts
	Stdin   io.Reader
	Program string // the file of a process; "": the test's own process
}

// With adds settings, each name=value.
func (c *Cmd) With(settings ...string) *Cmd {
	c.Env = append(c.Env, settings...)
	return c
}

// Command returns a bahi in the test's own process, with a data folder.
func Command(t testing.TB, data string, args ...string) *Cmd {
	t.Helper()
	return &Cmd{Args: args, Stdin: strings.NewReader(""),
		Env: starter.Env(data, "BAHI_READ_WAIT="+ReadWait.String(), "BAHI_AUDIT_EVERY="+signInterval.String())}
}

// Program returns [Command] as a process.
func Program(t testing.TB, data string, args ...string) *Cmd {
	t.Helper()
	return Command(t, data, args...).asProcess(t)
}

// asProcess makes the command a process, for tests that kill it, or make it hang or hold locks.
func (c *Cmd) asProcess(t testing.TB) *Cmd {
	t.Helper()
	var err error
	c.Program, err = Binary()
	require.NoError(t, err)
	return c
}

// Exec returns the command as a process before its start.
func (c *Cmd) Exec(t testing.TB) *exec.Cmd {
	t.Helper()
	require.NotEmpty(t, c.Program, "the command runs in the test's own process")
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Env, cmd.Stdin = c.Env, c.Stdin
	return cmd
}

func shellOf(t testing.TB) func(context.Context, app.Shell, ...string) int {
	t.Helper()
	require.NotNil(t, shell, "the package's TestMain passes no cli.Run to apptest.Main")
	return shell
}

// Execute runs a command of bahi to its end.
func Execute(t testing.TB, c *Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, wrong bytes.Buffer
	if c.Program == "" {
		status = shellOf(t)(t.Context(), app.Shell{In: c.Stdin, Out: &out, Err: &wrong, Env: c.Env}, c.Args...)
		return out.String(), wrong.String(), status
	}
	cmd := c.Exec(t)
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err := cmd.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return out.String(), wrong.String(), cmd.ProcessState.ExitCode()
}

// Process is a running bahi.
type Process struct {
	*starter.Process

	t testing.TB
}

// Launch starts bahi serve, without waiting.
func Launch(t testing.TB, c *Cmd) *Process {
	t.Helper()
	p := &Process{t: t}
	if c.Program == "" {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		run := shellOf(t)
		p.Process = starter.Run(cancel, func(log io.Writer) int {
			return run(ctx, app.Shell{In: c.Stdin, Out: io.Discard, Err: log, Env: c.Env}, c.Args...)
		})
	} else {
		var err error
		p.Process, err = starter.Start(c.Exec(t), nil)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		p.End()
		if t.Failed() {
			text := requests.ReplaceAllString(p.Text(), "")
			t.Logf("bahi said:\n%s", text[max(0, len(text)-8000):])
		}
	})
	return p
}

var requests = regexp.MustCompile(`(?m)^.*level=INFO msg=request.*\n`)

// Until waits for output of the process.
func (p *Process) Until(what func(said, url string) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), 3*time.Minute)
	defer cancel()
	require.NoError(p.t, p.Await(ctx, func(said string) bool { return what(said, p.URL) }), "%s", p.Text())
}

// Serve starts bahi serve and waits until it serves.
func Serve(t testing.TB, c *Cmd) *Process {
	t.Helper()
	p := Launch(t, c)
	p.Until(func(_, url string) bool { return url != "" })
	return p
}

// Ready waits until the server has caught up with the log.
func (p *Process) Ready() {
	p.t.Helper()
	Readiness(p.t, p.Client())
}

// Readiness waits until a server is ready, and returns its response. On a busy machine, readiness may also stop for a moment.
func Readiness(t testing.TB, c *apitest.Client) (a *apitest.Answer) {
	t.Helper()
	require.Eventually(t, func() bool { a = c.GET("/readyz"); return a.Response.StatusCode == http.StatusOK }, time.Minute,
		10*time.Millisecond)
	return a
}

func (p *Process) Client() *apitest.Client { return apitest.New(p.t, p.URL, OperatorKey) }

// Kill ends it like a power cut.
func (p *Process) Kill() {
	p.t.Helper()
	require.NotNil(p.t, p.Cmd, "only a process can be killed")
	require.NoError(p.t, p.Cmd.Process.Kill())
	<-p.Done
}

// Promptly is the limit of a shutdown on a busy machine. It is less than the half minute that a server waits for the rest of a request.
const Promptly = 25 * time.Second

// Stop requests the end, and returns how long it took.
func (p *Process) Stop() time.Duration {
	p.t.Helper()
	began := time.Now()
	require.Zero(p.t, p.Interrupt(), p.Text())
	return time.Since(began)
}

// Postmaster returns the process id of a data folder's embedded Postgres, or 0.
func Postmaster(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// EndCluster stops, at the end of the test, the cluster that a killed bahi has left.
func EndCluster(t testing.TB, data string) {
	t.Cleanup(func() {
		if pid := Postmaster(data); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			for Postmaster(data) == pid && deadline.Err() == nil {
				select {
				case <-deadline.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	})
}
