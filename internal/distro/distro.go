// Package distro installs programs from the packages of the distribution (Debian's apt): as root for the machine, otherwise unpacked into a
// folder of the user's.
package distro

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// CacheDir returns the folder of fetched programs. As root other users can read it.
func CacheDir() string {
	if os.Geteuid() == 0 {
		return "/var/cache/bahi"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("bahi-%d", os.Geteuid()))
	}
	return filepath.Join(dir, "bahi")
}

// Available reports whether there are such packages.
func Available() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil
}

// Choose returns apt's names of the wanted packages. It calls apt with these options. It fails if apt does not know the packages.
type Choose func(ctx context.Context, options []string) ([]string, error)

// Install installs packages for the machine. It requires root.
func Install(ctx context.Context, log *slog.Logger, choose Choose) error {
	packages, err := choose(ctx, nil)
	if err != nil {
		log.Info("reading the list of packages (apt-get update)")
		if _, err := Run(ctx, "apt-get", "update"); err != nil {
			return err
		}
		if packages, err = choose(ctx, nil); err != nil {
			return err
		}
	}
	log.Info("installing", "packages", strings.Join(packages, " "))
	_, err = Run(ctx, "apt-get", append([]string{"install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold",
		"-o", "DPkg::Lock::Timeout=300"}, packages...)...)
	return err
}

// Unpack unpacks packages and their missing dependencies into the folder root of tmp. It omits packages that skip matches. It returns the
// names of the wanted packages and the folder.
func Unpack(ctx context.Context, log *slog.Logger, tmp string, choose Choose, skip *regexp.Regexp) (wanted []string, root string,
	err error) {
	var private []string
	wanted, err = choose(ctx, private)
	if err != nil {
		// The machine's lists of packages are missing or old, and not ours to update.
		log.Info("reading the list of packages (apt-get update) into a folder of our own")
		lists := filepath.Join(tmp, "apt")
		for _, dir := range []string{"lists/partial", "archives/partial"} {
			if err := os.MkdirAll(filepath.Join(lists, dir), 0o700); err != nil {
				return nil, "", fmt.Errorf("make a folder for apt: %w", err)
			}
		}
		private = []string{"-o", "Dir::State::Lists=" + lists + "/lists", "-o", "Dir::Cache=" + lists, "-o", "APT::Sandbox::User="}
		if _, err := Run(ctx, "apt-get", append(private, "update")...); err != nil {
			return nil, "", err
		}
		if wanted, err = choose(ctx, private); err != nil {
			return nil, "", err
		}
	}
	plan, err := Run(ctx, "apt-get", slices.Concat(private, []string{"--simulate", "--no-install-recommends", "install"}, wanted)...)
	if err != nil {
		return nil, "", err
	}
	packages := slices.Clone(wanted)
	for _, match := range regexp.MustCompile(`(?m)^Inst (\S+)`).FindAllStringSubmatch(plan, -1) {
		if name := match[1]; !slices.Contains(packages, name) && !skip.MatchString(name) {
			packages = append(packages, name)
		}
	}
	log.Info("fetching packages", "packages", strings.Join(packages, " "))
	//nolint:gosec // G204: names that apt gave us.
	cmd := exec.CommandContext(ctx, "apt-get", slices.Concat(private, []string{"download"}, packages)...)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("apt-get download: %w: %s", err, lastLine(out))
	}
	files, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(files) == 0 {
		return nil, "", errors.Join(errors.New("apt-get download brought no packages"), err)
	}
	root = filepath.Join(tmp, "root")
	for _, file := range files {
		if _, err := Run(ctx, "dpkg", "-x", file, root); err != nil {
			return nil, "", err
		}
	}
	return wanted, root, nil
}

// WorkFolder creates a folder in the cache for programs that are being unpacked.
func WorkFolder(cache string) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // G301: the programs are not secret, and another user runs them.
		return "", fmt.Errorf("make a folder for programs: %w", err)
	}
	dir, err := os.MkdirTemp(cache, ".new-")
	if err != nil {
		return "", fmt.Errorf("make a folder for programs: %w", err)
	}
	return dir, nil
}

// Alone runs do while no other process of this machine is in Alone.
func Alone(do func() error) error {
	if err := os.MkdirAll(CacheDir(), 0o755); err != nil { //nolint:gosec // G301: as above
		return fmt.Errorf("make a folder for programs: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(CacheDir(), ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the folder of programs: %w", err)
	}
	defer lock.Close() //nolint:errcheck // this unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the folder of programs: %w", err)
	}
	return do()
}

// Libraries returns the folders of the libraries that were unpacked below root, in the form of LD_LIBRARY_PATH.
func Libraries(root string) string {
	// Our path has no brackets; without a match the system's libraries are used.
	dirs, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-*"))
	more, _ := filepath.Glob(filepath.Join(root, "lib/*-linux-*"))
	return strings.Join(append(dirs, more...), ":")
}

// Run runs a system program to its end, and returns its output.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: constant names, and arguments made here.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, lastLine(stderr.Bytes()))
	}
	return string(out), nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
