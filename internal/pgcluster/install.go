package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// cacheDir holds the programs that we fetched. As root it is a folder that the cluster's owner can read.
func cacheDir() string {
	if os.Geteuid() == 0 {
		return "/var/cache/bahi"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("bahi-%d", os.Geteuid()))
	}
	return filepath.Join(dir, "bahi")
}

// install brings Postgres onto the machine, by the first way that works.
func install(ctx context.Context, log *slog.Logger, major int) (*Programs, error) {
	type way struct {
		name string
		try  func() (*Programs, error)
	}
	var ways []way
	if _, err := exec.LookPath("apt-get"); err == nil {
		if os.Geteuid() == 0 {
			ways = append(ways, way{"installing Postgres from the distribution's packages (apt-get install), without a system cluster",
				func() (*Programs, error) { return aptInstall(ctx, log, major) }})
		}
		ways = append(ways, way{"unpacking Postgres from the distribution's packages into " + cacheDir(),
			func() (*Programs, error) { return aptUnpack(ctx, log, cacheDir(), major) }})
	}
	ways = append(ways, way{"downloading a build of Postgres (embedded-postgres, from Maven Central) into " + cacheDir(),
		func() (*Programs, error) { return download(ctx, cacheDir(), major, "") }})

	var errs []error
	for _, w := range ways {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("install Postgres: %w", context.Cause(ctx))
		}
		log.Info("no Postgres programs yet", "now", w.name)
		var p *Programs
		err := slowly(ctx, log, w.name, func() (err error) {
			p, err = w.try()
			return err
		})
		if err == nil {
			err = p.fits(major)
		}
		if err == nil {
			log.Info("Postgres is installed", "version", p.Version, "folder", p.Dir)
			return p, nil
		}
		log.Warn("that did not work", "error", err)
		errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
	}
	return nil, fmt.Errorf("no programs of Postgres %s: install them (apt-get install postgresql), "+
		"or name their folder in BAHI_PG_BIN, or name a server in DATABASE_URL: %w", wanted(major), errors.Join(errs...))
}

// noSystemCluster keeps Debian's package from making and starting a cluster of its own while we install it.
const noSystemCluster = "/etc/postgresql-common/createcluster.d/bahi.conf"

func aptInstall(ctx context.Context, log *slog.Logger, major int) (*Programs, error) {
	pkg, err := aptPackage(ctx, nil, major)
	if err != nil {
		log.Info("reading the list of packages (apt-get update)")
		if _, err := run(ctx, "apt-get", "update"); err != nil {
			return nil, err
		}
		if pkg, err = aptPackage(ctx, nil, major); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(noSystemCluster), 0o755); err != nil { //nolint:gosec // G301: as the package would make it.
		return nil, fmt.Errorf("keep the package from making a cluster: %w", err)
	}
	if err := os.WriteFile(noSystemCluster, []byte("# Written by bahi while it installs Postgres.\ncreate_main_cluster = false\n"), 0o644); err != nil { //nolint:gosec // G306: as above
		return nil, fmt.Errorf("keep the package from making a cluster: %w", err)
	}
	// Only for now: whoever installs another Postgres for themselves gets what Debian promises them.
	defer func() { _ = os.Remove(noSystemCluster) }()
	log.Info("installing", "package", pkg)
	if _, err := run(ctx, "apt-get", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", pkg); err != nil {
		return nil, err
	}
	return unpackedIn(ctx, "/", major)
}

// aptUnpack is for users who are not root: the packages, with what they need that is not installed, unpacked into a folder.
func aptUnpack(ctx context.Context, log *slog.Logger, cache string, major int) (*Programs, error) {
	tmp, err := workFolder(cache)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	var private []string
	pkg, err := aptPackage(ctx, private, major)
	if err != nil {
		// The machine has no lists of packages, or old ones: fetch our own, since we may not touch its.
		log.Info("reading the list of packages (apt-get update) into a folder of our own")
		lists := filepath.Join(tmp, "apt")
		for _, dir := range []string{"lists/partial", "archives/partial"} {
			if err := os.MkdirAll(filepath.Join(lists, dir), 0o700); err != nil {
				return nil, fmt.Errorf("make a folder for apt: %w", err)
			}
		}
		private = []string{"-o", "Dir::State::Lists=" + lists + "/lists", "-o", "Dir::Cache=" + lists, "-o", "APT::Sandbox::User="}
		if _, err := run(ctx, "apt-get", append(private, "update")...); err != nil {
			return nil, err
		}
		if pkg, err = aptPackage(ctx, private, major); err != nil {
			return nil, err
		}
	}
	plan, err := run(ctx, "apt-get", append(private, "--simulate", "--no-install-recommends", "install", pkg)...)
	if err != nil {
		return nil, err
	}
	packages := []string{pkg}
	for _, match := range regexp.MustCompile(`(?m)^Inst (\S+)`).FindAllStringSubmatch(plan, -1) {
		name := match[1]
		// The compiler for queries is never used (jit=off) and is by far the largest; the rest of these is for system clusters.
		if name == pkg || regexp.MustCompile(`^(libllvm|libz3|ssl-cert|postgresql-common|postgresql-client-common|perl|lib.*-perl|ucf|netbase|sensible-utils)`).MatchString(name) {
			continue
		}
		packages = append(packages, name)
	}
	log.Info("fetching packages", "packages", strings.Join(packages, " "))
	cmd := exec.CommandContext(ctx, "apt-get", append(append(private, "download"), packages...)...) //nolint:gosec // G204: names that apt gave us.
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("apt-get download: %w: %s", err, lastLine(out))
	}
	files, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("apt-get download brought no packages"), err)
	}
	root := filepath.Join(tmp, "root")
	for _, file := range files {
		if _, err := run(ctx, "dpkg", "-x", file, root); err != nil {
			return nil, err
		}
	}
	return settle(ctx, root, filepath.Join(cache, pkg), major)
}

// aptPackage is the server package: that of the wanted major version, else the one that the distribution chose.
func aptPackage(ctx context.Context, options []string, major int) (string, error) {
	if major != 0 {
		name := fmt.Sprintf("postgresql-%d", major)
		_, err := run(ctx, "apt-cache", append(options, "show", name)...)
		return name, err
	}
	out, err := run(ctx, "apt-cache", append(options, "depends", "postgresql")...)
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`Depends: (postgresql-\d+)`).FindStringSubmatch(out)
	if match == nil {
		return "", errors.New("apt knows no package postgresql")
	}
	return match[1], nil
}

// download fetches a build through embedded-postgres. Its API has no call for that alone: Start fetches and unpacks, then starts what is
// in the data folder. We give it a folder that says it is a cluster and is none, so Postgres refuses at once, no server
// is ever started its way (TCP, a password known to all), and what we want lies unpacked. repository is for tests; empty means Maven Central.
func download(ctx context.Context, cache string, major int, repository string) (*Programs, error) {
	version := map[int]embedded.PostgresVersion{0: embedded.V18, 15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18}[major]
	if version == "" {
		return nil, fmt.Errorf("embedded-postgres has no build of Postgres %d", major)
	}
	tmp, err := workFolder(cache)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	root, none := filepath.Join(tmp, "root"), filepath.Join(tmp, "none")
	err = errors.Join(os.Mkdir(none, 0o700), os.WriteFile(filepath.Join(none, "PG_VERSION"), []byte(version), 0o600))
	if err != nil {
		return nil, fmt.Errorf("prepare the download: %w", err)
	}
	free, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	config := embedded.DefaultConfig().Version(version).Port(free).Logger(io.Discard).
		CachePath(filepath.Join(tmp, "cache")).RuntimePath(filepath.Join(tmp, "runtime")).BinariesPath(root).DataPath(none)
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	startErr := embedded.NewDatabase(config).Start()
	if _, err := os.Stat(filepath.Join(root, "bin", "postgres")); err != nil {
		return nil, fmt.Errorf("download Postgres: %w", errors.Join(startErr, err))
	}
	return settle(ctx, root, filepath.Join(cache, "embedded-"+string(version)), major)
}

// freePort is one that nobody listens on: embedded-postgres looks whether it could before it does anything.
func freePort(ctx context.Context) (uint32, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "localhost:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("find a free port: got %s", l.Addr())
	}
	return uint32(addr.Port), nil
}

// workFolder is where programs are unpacked before they are complete.
func workFolder(cache string) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // G301: the programs are no secret, and another user may run them.
		return "", fmt.Errorf("make a folder for Postgres's programs: %w", err)
	}
	dir, err := os.MkdirTemp(cache, ".new-")
	if err != nil {
		return "", fmt.Errorf("make a folder for Postgres's programs: %w", err)
	}
	return dir, nil
}

// settle tries what was unpacked, and then puts it in its place whole.
func settle(ctx context.Context, root, place string, major int) (*Programs, error) {
	if _, err := unpackedIn(ctx, root, major); err != nil {
		return nil, err
	}
	if err := os.Rename(root, place); err != nil {
		// Another process may have come first; then its programs are as good as ours.
		if p, other := unpackedIn(ctx, place, major); other == nil {
			return p, nil
		}
		return nil, fmt.Errorf("put Postgres's programs in their place: %w", err)
	}
	return unpackedIn(ctx, place, major)
}

// unpackedIn looks for programs below a root folder.
func unpackedIn(ctx context.Context, root string, major int) (*Programs, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin"))
	dirs = append(dirs, filepath.Join(root, "bin"))
	errs := []error{err}
	var found []*Programs
	for _, dir := range dirs {
		p, err := programsIn(ctx, dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, p)
	}
	if p := newest(found, major); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no programs of Postgres %s in %s: %w", wanted(major), root, errors.Join(errs...))
}

// librariesFor is where unpacked programs find the libraries that were unpacked with them.
func librariesFor(bin string) string {
	root, _, unpacked := strings.Cut(bin, "/usr/lib/postgresql/")
	if !unpacked || root == "" {
		return ""
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-*")) // No brackets in a path that we chose; else the system's libraries must do.
	more, _ := filepath.Glob(filepath.Join(root, "lib/*-linux-*"))
	return strings.Join(append(dirs, more...), ":")
}

// run runs a program of the system's to its end, and answers what it printed.
func run(ctx context.Context, name string, args ...string) (string, error) {
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
