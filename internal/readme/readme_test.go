package readme

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

	"bahi/internal/pgtest"
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
		switch command, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case inside && isCommand:
			all = append(all, step{command: command})
		case inside:
			all[len(all)-1].shown += line
		}
	}
	return all
}

func TestSessionsPrintWhatTheirPagesShow(t *testing.T) {
	t.Parallel()
	var all []step
	for _, page := range []string{"README.md", "docs/accounts.md", "docs/marketplace.md", "docs/bots.md"} { // one shell: each page goes on where the one before ends
		text, err := os.ReadFile("../../" + page)
		require.NoError(t, err)
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
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Dir = checkout
	shell.Env = append(os.Environ(), "BAHI_DATA="+data)
	in, err := shell.StdinPipe()
	require.NoError(t, err)
	out, err := shell.StdoutPipe()
	require.NoError(t, err)
	shell.Stderr = os.Stderr
	require.NoError(t, shell.Start())
	lines := bufio.NewScanner(out)
	for _, s := range all {
		_, err := in.Write([]byte(strings.ReplaceAll(s.command, "localhost:8080", address) + "\necho; echo end of step\n"))
		require.NoError(t, err)
		var got strings.Builder
		for lines.Scan() && lines.Text() != "end of step" {
			got.WriteString(lines.Text() + "\n")
		}
		require.NoError(t, lines.Err())
		require.Regexp(t, pattern(s.shown), strings.TrimSpace(got.String()), s.command)
	}
	require.NoError(t, in.Close())
	require.NoError(t, shell.Wait())
}

// pattern is what an output must look like: what the README shows, which writes … for what is another each time.
func pattern(shown string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(shown)), "…", ".+") + "$"
}

// build makes the programs that `make run` and `make verifier` make.
func build(t *testing.T, checkout string) {
	t.Helper()
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(checkout, "bin")+"/", "bahi/cmd/bahi", "bahi/cmd/bahi-verify").CombinedOutput()
	require.NoError(t, err, string(built))
}

// serving is what the program says once it does.
var serving = regexp.MustCompile(`msg=serving address=http://(\S+)`)

// serve runs the program on an empty data folder until the test ends.
func serve(t *testing.T, program string) (address, data string) {
	t.Helper()
	data = pgtest.Dir(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := exec.CommandContext(ctx, program, "serve")
	served.Cancel = func() error { return served.Process.Signal(syscall.SIGTERM) }
	served.WaitDelay = 20 * time.Second
	served.Env = append(os.Environ(), "BAHI_ADDR=127.0.0.1:0", "BAHI_DATA="+data)
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
		_ = served.Wait() // it was told to end
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
