package readme

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/pgtest"
	"bahi/internal/test/python"
	"bahi/internal/test/worktest"
)

// step is a command of a console block with the output that the README shows.
type step struct {
	command string
	shown   string
}

// steps reads the console blocks of a Markdown text.
func steps(text string) (all []step) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " ") // as in a list
		switch command, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case inside && isCommand:
			all = append(all, step{command: command})
		case inside && strings.TrimSpace(line) != "":
			all[len(all)-1].shown += line
		}
	}
	return all
}

func TestSessionsPrintWhatTheirPagesShow(t *testing.T) {
	t.Parallel()
	python.Need(t) // docs/auditor.md runs docs/replay.py
	var all []step
	// one shell: each page continues where the previous one ends
	for _, page := range []string{"README.md", "docs/auditor.md", "docs/books.md", "docs/accounts.md", "docs/workshop.md",
		"docs/marketplace.md", "docs/messaging.md", "docs/campaigns.md", "docs/bots.md"} {
		text := worktest.File(t, "../../"+page)
		of := steps(string(text))
		require.NotEmpty(t, of, page)
		all = append(all, of...)
	}

	checkout := t.TempDir()
	build(t, checkout)
	address, data := serve(t, filepath.Join(checkout, "bin", "bahi"))
	require.NoError(t, os.Symlink(data, filepath.Join(checkout, "data")))
	docs, err := filepath.Abs("../../docs")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(docs, filepath.Join(checkout, "docs")))
	sh := openShell(t, checkout, "BAHI_DATA="+data)
	for _, s := range all {
		got := sh.run(strings.ReplaceAll(s.command, "localhost:8080", address))
		require.Regexp(t, pattern(s.shown), got, s.command)
	}
}

// shell is a bash that runs the commands of a page.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner

	group int // of processes
}

// openShell starts a bash in a folder. The shell and its background processes end with the test.
func openShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	bash := exec.CommandContext(context.WithoutCancel(t.Context()), "bash")
	bash.Dir, bash.Env, bash.Stderr = dir, append(os.Environ(), env...), os.Stderr
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := bash.StdinPipe()
	require.NoError(t, err)
	out, err := bash.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bash.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = syscall.Kill(-bash.Process.Pid, syscall.SIGTERM)
		_ = bash.Wait() // it was stopped
	})
	return &shell{t: t, in: in, out: bufio.NewScanner(out), group: bash.Process.Pid}
}

// run runs a command line and returns its output, without empty lines.
func (s *shell) run(command string) string {
	s.t.Helper()
	_, err := io.WriteString(s.in, command+"\necho; echo end of step\n")
	require.NoError(s.t, err)
	bound := time.AfterFunc(10*time.Minute, func() { _ = syscall.Kill(-s.group, syscall.SIGKILL) })
	defer bound.Stop()
	var got strings.Builder
	for s.out.Scan() && s.out.Text() != "end of step" {
		if line := strings.TrimSpace(s.out.Text()); line != "" {
			got.WriteString(line + "\n")
		}
	}
	require.Equal(s.t, "end of step", s.out.Text(), "%s does not end", command)
	return got.String()
}

// pattern matches the output of a command. In the shown output, … is any text, and a line of … any lines.
func pattern(shown string) string {
	var p strings.Builder
	for line := range strings.Lines(shown) {
		if line == "…\n" {
			p.WriteString(`(?:.*\n)*`)
		} else {
			p.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".+"))
		}
	}
	return "^" + p.String() + "$"
}

// build makes the programs that `make run` and `make verifier` make.
func build(t *testing.T, checkout string) {
	t.Helper()
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(checkout, "bin")+"/", "bahi/cmd/bahi",
		"bahi/cmd/bahi-verify").CombinedOutput()
	require.NoError(t, err, string(built))
}

// serving is the log message of a program that serves.
var serving = regexp.MustCompile(`msg=serving address=http://(\S+)`)

// serve runs the program on an empty data folder until the test ends.
func serve(t *testing.T, program string) (address, data string) {
	t.Helper()
	data = pgtest.Dir(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := exec.CommandContext(ctx, program, "serve")
	served.Cancel = func() error { return served.Process.Signal(syscall.SIGTERM) }
	served.WaitDelay = 20 * time.Second
	// as docs/workshop.md has it
	served.Env = append(os.Environ(), "BAHI_ADDR=127.0.0.1:0", "BAHI_DATA="+data, "GATEWAY_ALLOWED_PHONES=+919812345678")
	said, err := served.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, served.Start())
	addresses, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				addresses <- m[1]
			}
			if !strings.Contains(lines.Text(), "level=INFO") {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = served.Wait() // it was stopped
	})
	select {
	case address = <-addresses:
	case <-ended:
		require.Fail(t, "it does not serve")
	}
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var state struct{ Ready bool }
		return json.NewDecoder(answer.Body).Decode(&state) == nil && state.Ready
	}, time.Minute, 20*time.Millisecond)
	return address, data
}
