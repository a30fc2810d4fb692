package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"bahi/http/api/apitest"
)

// binary builds the program once for the test run, as the tests themselves are built: with the race
// detector or without.
func binary() (string, error) {
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
	return path, goBuild(path, "v0-test")
})

// goBuild builds the program of this folder.
func goBuild(path, version string, flags ...string) error {
	args := append([]string{"build", "-o", path, "-ldflags", "-s -w -X bahi/internal/app.Version=" + version}, flags...)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race")
			}
		}
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.Load() {
		if path, err := build(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// process is a running bahi.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}
	err  error // once done is closed

	mu    sync.Mutex
	said  bytes.Buffer
	url   string
	wrote chan struct{} // closed when it has said more
}

// command is a bahi that is not started yet, in a data folder.
func command(t testing.TB, data string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "BAHI_DATA="+data, "BAHI_ADDR=127.0.0.1:0", "BAHI_ADMIN_API_KEY="+testOperatorKey, "BAHI_MASTER_KEY="+masterKey, "BAHI_READ_WAIT="+testReadWait.String())
	return cmd
}

// execute runs a command of bahi to its end.
func execute(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err := cmd.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return out.String(), wrong.String(), cmd.ProcessState.ExitCode()
}

// launch starts bahi serve, and does not wait for anything.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan struct{}), wrote: make(chan struct{})}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	go func() {
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.hear(lines.Text())
		}
		p.err = cmd.Wait()
		close(p.done)
		read.Close()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			var said strings.Builder
			for line := range strings.Lines(p.said.String()) {
				if !strings.Contains(line, "level=INFO msg=request") {
					said.WriteString(line)
				}
			}
			text := said.String()
			t.Logf("bahi said:\n%s", text[max(0, len(text)-8000):])
		}
	})
	return p
}

var serving = regexp.MustCompile(`msg=serving address=(http://\S+)`)

func (p *process) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.WriteString(line + "\n")
	if m := serving.FindStringSubmatch(line); m != nil {
		p.url = m[1]
	}
	close(p.wrote)
	p.wrote = make(chan struct{})
}

// until waits for the process to have said something.
func (p *process) until(what func(said, url string) bool) {
	p.t.Helper()
	late := time.After(3 * time.Minute)
	for {
		p.mu.Lock()
		ok, more := what(p.said.String(), p.url), p.wrote
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-p.done:
			require.Fail(p.t, "bahi ended", "%v: %s", p.err, p.text())
		case <-late:
			require.Fail(p.t, "bahi did not say what was waited for")
		}
	}
}

// serve starts bahi serve and waits until it does.
func serve(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := launch(t, cmd)
	p.until(func(_, url string) bool { return url != "" })
	return p
}

// ready waits until it has caught up with the log.
func (p *process) ready() {
	p.t.Helper()
	readiness(p.t, p.client())
}

// readiness waits until a server is ready, and answers what it says then. On a busy machine even one that was may for a moment not look so.
func readiness(t testing.TB, c *apitest.Client) (a *apitest.Answer) {
	t.Helper()
	require.Eventually(t, func() bool { a = c.GET("/readyz"); return a.Response.StatusCode == http.StatusOK }, time.Minute, 10*time.Millisecond)
	return a
}

func (p *process) client() *apitest.Client { return apitest.New(p.t, p.url, testOperatorKey) }

// kill ends it as a power cut would.
func (p *process) kill() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	<-p.done
}

// end is like kill, of a command that may have come to its own end by now.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// promptly is how long an end may take on a busy machine: less than the half minute that a server waits for the rest of a request.
const promptly = 25 * time.Second

// stop asks it to end, and answers how long it took.
func (p *process) stop() time.Duration {
	p.t.Helper()
	began := time.Now()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.done
	require.NoError(p.t, p.err)
	return time.Since(began)
}

// text is what it has said so far.
func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// postmaster is the process number of the private cluster in a data folder, 0 when none runs.
func postmaster(data string) int {
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

// endCluster stops what a killed bahi left running, when the test ends.
func endCluster(t testing.TB, data string) {
	t.Cleanup(func() {
		if pid := postmaster(data); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			for postmaster(data) == pid && deadline.Err() == nil {
				select {
				case <-deadline.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	})
}
