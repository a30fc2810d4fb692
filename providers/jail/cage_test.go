package jail_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/providers/jail"
)

// open returns a jail that the test closes, and the path of sh, the program of these tests.
func open(t *testing.T, l jail.Limits) (*jail.Jail, string) {
	t.Helper()
	c, err := jail.Open(t.Context(), jail.Owner{}, l)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	return c, sh
}

func TestProgramReadsAndWritesItsFolderAlone(t *testing.T) {
	t.Parallel()
	c, sh := open(t, jail.Limits{})
	require.NoError(t, c.Put("in", []byte("page")))
	out, err := c.Run(t.Context(), sh, "-c", "cat in; cat in > out; pwd > where; id -u > who; env > env")
	require.NoError(t, err)
	require.Equal(t, "page", string(out))
	out, err = c.ReadFile("out")
	require.NoError(t, err)
	require.Equal(t, "page", string(out))
	where, err := c.ReadFile("where")
	require.NoError(t, err)
	info, err := os.Stat(strings.TrimSpace(string(where)))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	who, err := c.ReadFile("who")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		require.Equal(t, "65534\n", string(who))
	} else {
		require.Equal(t, strconv.Itoa(os.Geteuid())+"\n", string(who))
	}
	env, err := c.ReadFile("env")
	require.NoError(t, err)
	require.NotContains(t, string(env), "GOFLAGS")
	require.NotContains(t, string(env), "BAHI_")
	require.NoError(t, c.Close())
	_, err = os.Stat(strings.TrimSpace(string(where)))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLinksOutOfTheFolderAreNotRead(t *testing.T) {
	t.Parallel()
	c, sh := open(t, jail.Limits{})
	_, err := c.Run(t.Context(), sh, "-c", "ln -s /etc/passwd out; mkfifo pipe; mkdir dir")
	require.NoError(t, err)
	for _, name := range []string{"out", "pipe", "dir", "none", "../../etc/passwd"} {
		_, err = c.ReadFile(name)
		require.Error(t, err, name)
	}
}

func TestLimitsEndAProgram(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		limits jail.Limits
		script string
		want   error // nil: an ExitError
	}{
		"memory":      {jail.Limits{Memory: 64 << 20}, "dd if=/dev/zero of=/dev/null bs=128M count=1", nil},
		"a file":      {jail.Limits{FileSize: 1 << 20}, "dd if=/dev/zero of=big bs=1M count=3", nil},
		"processes":   {jail.Limits{Processes: 6}, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 30 & done; wait", nil},
		"output":      {jail.Limits{Output: 1000}, "cat /dev/zero", jail.ErrOutput},
		"time":        {jail.Limits{Time: 200 * time.Millisecond}, "while :; do :; done", jail.ErrTime},
		"processor":   {jail.Limits{Processor: time.Second}, "while :; do :; done", jail.ErrTime},
		"an idle one": {jail.Limits{Time: 200 * time.Millisecond}, "sleep 600 & sleep 600", jail.ErrTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, sh := open(t, of.limits)
			_, err := c.Run(t.Context(), sh, "-c", of.script)
			if of.want != nil {
				require.ErrorIs(t, err, of.want)
				return
			}
			failed, ok := errors.AsType[*jail.ExitError](err)
			require.True(t, ok, "%v", err)
			require.NotZero(t, failed.Code)
		})
	}
}

func TestOneWorkspacesFilesAreReadOneAfterTheOther(t *testing.T) {
	t.Parallel()
	mine, theirs := uuid.New(), uuid.New()
	first, err := jail.Open(t.Context(), jail.Owner{ID: mine}, jail.Limits{})
	require.NoError(t, err)
	_, err = jail.Open(t.Context(), jail.Owner{ID: mine, Wait: time.Millisecond}, jail.Limits{})
	require.ErrorIs(t, err, jail.ErrBusy)
	other, err := jail.Open(t.Context(), jail.Owner{ID: theirs, Wait: time.Minute}, jail.Limits{})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = jail.Open(ended, jail.Owner{ID: mine}, jail.Limits{})
	require.ErrorIs(t, err, context.Canceled)
	next := make(chan error, 1)
	go func() {
		c, err := jail.Open(t.Context(), jail.Owner{ID: mine}, jail.Limits{})
		if err == nil {
			err = c.Close()
		}
		next <- err
	}()
	require.NoError(t, first.Close())
	require.NoError(t, <-next)
}

func TestProgramAndItsChildrenEndWithTheCaller(t *testing.T) {
	t.Parallel()
	c, sh := open(t, jail.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	pids := filepath.Join(dirOf(t, c, sh), "pids")
	go func() {
		_, err := c.Run(ctx, sh, "-c", "sleep 600 & echo $! $$ > tmp; mv tmp pids; wait")
		ended <- err
	}()
	var found []byte
	require.Eventually(t, func() bool {
		found, _ = os.ReadFile(pids) // until it is there
		return len(found) > 0
	}, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	for pid := range bytes.FieldsSeq(found) {
		n, err := strconv.Atoi(string(pid))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return gone(n) }, time.Minute, time.Millisecond)
	}
}

// gone reports whether a process has ended, even as a zombie.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

func dirOf(t *testing.T, c *jail.Jail, sh string) string {
	t.Helper()
	dir, err := c.Run(t.Context(), sh, "-c", "pwd")
	require.NoError(t, err)
	return strings.TrimSpace(string(dir))
}

//nolint:paralleltest // it takes all places
func TestProgramsOfAllWorkspacesTogetherAreLimited(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	places := max(2, runtime.NumCPU()/2)
	running, ended := make(chan struct{}, places), make(chan error, places)
	for range places {
		c, sh := open(t, jail.Limits{})
		go func() { ended <- c.Stream(ctx, notice(running), sh, "-c", "echo; exec sleep 600") }()
	}
	for range places {
		<-running
	}
	c, sh := open(t, jail.Limits{})
	late, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.Run(late, sh, "-c", "touch began")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.ReadFile("began")
	require.ErrorIs(t, err, os.ErrNotExist)
	stop()
	for range places {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	_, err = c.Run(t.Context(), sh, "-c", "touch began")
	require.NoError(t, err)
}

// notice gets a value for each output of a program.
type notice chan struct{}

func (n notice) Write(text []byte) (int, error) {
	n <- struct{}{}
	return len(text), nil
}

func TestMissingProgramIsAnError(t *testing.T) {
	t.Parallel()
	c, _ := open(t, jail.Limits{})
	_, err := c.Run(t.Context(), "/nonexistent/tesseract")
	require.Error(t, err)
}

func TestProgramHasNoNetworkWhereTheKernelAllowsThat(t *testing.T) {
	t.Parallel()
	ours, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	c, sh := open(t, jail.Limits{})
	theirs, err := c.Run(t.Context(), sh, "-c", "readlink -n /proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, jail.Isolated(), ours != string(theirs), "%s %s", ours, theirs)
}
