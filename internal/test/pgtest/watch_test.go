package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testProcess returns a package's tests with a separate temporary folder, and so a separate cluster.
func testProcess(t *testing.T, tmp string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDatabasesAreEmptyAndApart$")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return cmd
}

// postmasterIn returns the process number of the cluster below tmp, or 0.
func postmasterIn(tmp string) int {
	files, _ := filepath.Glob(filepath.Join(tmp, "bahi-pgtest-*", "postgres", "data", "postmaster.pid"))
	if len(files) != 1 {
		return 0
	}
	text, _ := os.ReadFile(files[0])
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

func TestClusterStaysForTheNextProcessAndThenEnds(t *testing.T) {
	t.Parallel()
	tmp := Dir(t)
	require.NoError(t, os.Chmod(tmp, 0o777)) // like /tmp

	// The first is killed in the middle of its tests, as a timeout of go test does.
	killed := testProcess(t, tmp)
	require.NoError(t, killed.Start())
	require.Eventually(t, func() bool { return postmasterIn(tmp) > 0 }, time.Minute, 5*time.Millisecond)
	pid := postmasterIn(tmp)
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()

	out, err := testProcess(t, tmp).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, pid, postmasterIn(tmp), "the next process uses the same cluster")

	require.Eventually(t, func() bool { return postmasterIn(tmp) == 0 && !alive(pid) }, time.Minute, 50*time.Millisecond,
		"the unused cluster must stop")

	out, err = testProcess(t, tmp).CombinedOutput()
	require.NoError(t, err, "%s", out)
	again := postmasterIn(tmp)
	require.NotZero(t, again, "a cluster that was stopped is started again")
	require.Eventually(t, func() bool { return postmasterIn(tmp) == 0 && !alive(again) }, time.Minute, 50*time.Millisecond)
}

// alive reports whether the process runs; a zombie does not.
func alive(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if os.IsNotExist(err) {
		return false
	}
	return len(text) > 0 && syscall.Kill(pid, 0) == nil
}
