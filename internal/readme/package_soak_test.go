//go:build soak

package readme

import (
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

// made runs `make package` in a copy of the source, and returns the folder dist.
func made(t *testing.T, env ...string) (dist string) {
	t.Helper()
	dir := t.TempDir()
	tools, err := filepath.Abs("../../.tools")
	require.NoError(t, err)
	ran(t, "../..", nil, "sh", "-c", "git ls-files -z | tar --null -T - -c | tar x -C "+dir)
	require.NoError(t, os.MkdirAll(tools, 0o750))
	require.NoError(t, os.Symlink(tools, filepath.Join(dir, ".tools")))
	ran(t, dir, append(env, "SOURCE_DATE_EPOCH=1780000000"), "make", "package", "VERSION=v1.2.3")
	return filepath.Join(dir, "dist")
}

// ran runs a program, which must succeed, and returns its output.
func ran(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", program, args, text)
	return string(text)
}

func TestPackageIsTheSameInAnyFolder(t *testing.T) {
	t.Parallel()
	sums := [2]string{}
	for i, dist := range []string{made(t), made(t, "GOCACHE="+t.TempDir())} {
		ran(t, dist, nil, "sha256sum", "--check", "SHA256SUMS")
		text := worktest.File(t, filepath.Join(dist, "SHA256SUMS"))
		sums[i] = string(text)
	}
	require.Equal(t, sums[0], sums[1])
	require.Len(t, strings.Split(strings.TrimSpace(sums[0]), "\n"), 5)
}

func TestDebianPackageIsInstalledAndRemoved(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Log("this machine has no dpkg, so the test checks nothing")
		return
	}
	dist, root := made(t), t.TempDir()
	for _, dir := range []string{"etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o750))
	}
	for _, file := range []string{"var/lib/dpkg/status", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	in := func(path string) string { return filepath.Join(root, path) }
	dpkg := func(args ...string) string {
		t.Helper()
		return ran(t, root, nil, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless"}, args...)...)
	}
	debs, err := filepath.Glob(filepath.Join(dist, "*.deb"))
	require.NoError(t, err)
	require.Len(t, debs, 1)

	dpkg("--install", debs[0])
	require.Equal(t, "v1.2.3\n", strings.TrimPrefix(ran(t, root, nil, in("usr/bin/bahi"), "version"), "bahi "))
	require.Contains(t, ran(t, root, nil, in("usr/bin/bahi-verify"), "--help"), "archive")
	users := worktest.File(t, in("etc/passwd"))
	require.Regexp(t, `(?m)^bahi:.*:/var/lib/bahi:/usr/sbin/nologin$`, string(users))
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		// 2.0 of 10: "OK" ends at 4.9
		ran(t, root, nil, "systemd-analyze", "security", "--offline=true", "--threshold=20", in("usr/lib/systemd/system/bahi.service"))
	}
	require.NoError(t, os.WriteFile(in("etc/bahi/bahi.env"), []byte("BAHI_ADDR=127.0.0.1:9090\n"), 0o600))
	require.NoError(t, os.MkdirAll(in("var/lib/bahi/keys"), 0o750))
	dpkg("--install", debs[0]) // an upgrade
	settings := worktest.File(t, in("etc/bahi/bahi.env"))
	require.Equal(t, "BAHI_ADDR=127.0.0.1:9090\n", string(settings), "an upgrade keeps settings")

	dpkg("--remove", "bahi")
	require.NoFileExists(t, in("usr/bin/bahi"))
	require.NoFileExists(t, in("usr/lib/systemd/system/bahi.service"))
	require.FileExists(t, in("etc/bahi/bahi.env"))
	require.Contains(t, dpkg("--purge", "bahi"), "the books and their keys stay in /var/lib/bahi")
	require.NoFileExists(t, in("etc/bahi/bahi.env"))
	require.DirExists(t, in("var/lib/bahi/keys"))
}

// The test needs root to enter the container's folder as its user does.
func TestContainerServesWithNothingButBahi(t *testing.T) {
	t.Parallel()
	root := filepath.Join(made(t), "container", "root")
	ran(t, root, nil, "chown", "-R", "65532:65532", ".")
	for dir := filepath.Dir(root); dir != filepath.Dir(os.TempDir()); dir = filepath.Dir(dir) { // t.TempDir is for the test's user alone
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(dir, info.Mode()|0o111))
	}
	inside := func(env []string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/bin/bahi", args...)
		cmd.Dir, cmd.Env = "/", slices.Concat(env, []string{"BAHI_DATA=/var/lib/bahi", "BAHI_ADDR=0.0.0.0:0"})
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	said, err := inside(nil, "health").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "the server does not respond")

	u, err := url.Parse(pgtest.DB(t))
	require.NoError(t, err)
	q := u.Query()
	forward(t, filepath.Join(root, "tmp", ".s.PGSQL."+q.Get("port")), filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port")))
	q.Set("host", "/tmp")
	u.RawQuery = q.Encode()
	out, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	served := inside([]string{"DATABASE_URL=" + u.String(), "BAHI_MASTER_KEY=" + apptest.MasterKey}, "serve")
	served.Stdout, served.Stderr = out, out
	require.NoError(t, served.Start())
	t.Cleanup(func() {
		_ = served.Process.Signal(syscall.SIGTERM)
		_ = served.Wait() // it was stopped
	})
	t.Cleanup(func() {
		if text, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
	address := addressIn(t, out.Name())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		asked := inside(nil, "health")
		asked.Env = append(asked.Env, "BAHI_ADDR=0.0.0.0:"+port)
		return asked.Run() == nil
	}, time.Minute, 50*time.Millisecond)
}

// forward lets a socket lead to another one until the test ends.
func forward(t *testing.T, from, to string) {
	t.Helper()
	listener, err := net.Listen("unix", from)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(from, 0o777))
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
}
