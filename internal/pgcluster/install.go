package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"

	embedded "github.com/fergusstrange/embedded-postgres"

	"bahi/internal/distro"
)

// install installs Postgres by the first way that works.
func install(ctx context.Context, log *slog.Logger, major int) (*Programs, error) {
	type way struct {
		name string
		try  func() (*Programs, error)
	}
	var ways []way
	if distro.Available() && os.Geteuid() == 0 {
		ways = append(ways, way{"installing Postgres from the distribution's packages (apt-get install), without a system cluster",
			func() (*Programs, error) { return aptInstall(ctx, log, major) }})
	}
	ways = append(ways, way{"downloading a build of Postgres (embedded-postgres, from Maven Central) into " + distro.CacheDir(),
		func() (*Programs, error) { return download(ctx, distro.CacheDir(), major, "") }})

	var errs []error
	for _, w := range ways {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("install Postgres: %w", context.Cause(ctx))
		}
		log.Info("Postgres is missing", "now", w.name)
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
		log.Warn("installing Postgres failed; trying the next way", "way", w.name, "error", err)
		errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
	}
	return nil, fmt.Errorf("no programs of Postgres %s: install them (apt-get install postgresql), "+
		"or name their folder in BAHI_PG_BIN, or name a server in DATABASE_URL: %w", wanted(major), errors.Join(errs...))
}

// noSystemCluster keeps Debian's package from creating and starting a system cluster.
const noSystemCluster = "/etc/postgresql-common/createcluster.d/bahi.conf"

func aptInstall(ctx context.Context, log *slog.Logger, major int) (*Programs, error) {
	if err := os.MkdirAll(filepath.Dir(noSystemCluster), 0o755); err != nil { //nolint:gosec // G301: as the package would make it.
		return nil, fmt.Errorf("keep the package from creating a cluster: %w", err)
	}
	//nolint:gosec // G306: as above
	if err := os.WriteFile(noSystemCluster, []byte("# Written by bahi while it installs Postgres.\ncreate_main_cluster = false\n"),
		0o644); err != nil {
		return nil, fmt.Errorf("keep the package from creating a cluster: %w", err)
	}
	// Later installations by the administrator behave as Debian documents.
	defer func() { _ = os.Remove(noSystemCluster) }()
	if err := distro.Install(ctx, log, aptPackages(major)); err != nil {
		return nil, err
	}
	return unpackedIn(ctx, "/", major)
}

// aptPackages returns the chooser of [aptPackage].
func aptPackages(major int) distro.Choose {
	return func(ctx context.Context, options []string) ([]string, error) {
		name, err := aptPackage(ctx, options, major)
		return []string{name}, err
	}
}

// aptPackage returns the name of the server package: of the wanted major version, otherwise the distribution's default.
func aptPackage(ctx context.Context, options []string, major int) (string, error) {
	if major != 0 {
		name := fmt.Sprintf("postgresql-%d", major)
		_, err := distro.Run(ctx, "apt-cache", append(options, "show", name)...)
		return name, err
	}
	out, err := distro.Run(ctx, "apt-cache", append(options, "depends", "postgresql")...)
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`Depends: (postgresql-\d+)`).FindStringSubmatch(out)
	if match == nil {
		return "", errors.New("apt knows no package postgresql")
	}
	return match[1], nil
}

// download fetches a build with embedded-postgres. Its API cannot only fetch: Start fetches, unpacks, and then starts the cluster in the
// data folder. Here that folder only looks like a cluster, so Postgres fails at once. So the programs are unpacked, and no server runs with
// its settings (TCP, a well-known password). repository is for tests; empty means Maven Central.
func download(ctx context.Context, cache string, major int, repository string) (*Programs, error) {
	version := map[int]embedded.PostgresVersion{0: embedded.V18, 15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18}[major]
	if version == "" {
		return nil, fmt.Errorf("embedded-postgres has no build of Postgres %d", major)
	}
	tmp, err := distro.WorkFolder(cache)
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

// freePort returns a port without a listener: embedded-postgres checks its port first.
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

// settle tries the unpacked programs, and then moves them to their folder.
func settle(ctx context.Context, root, place string, major int) (*Programs, error) {
	if _, err := unpackedIn(ctx, root, major); err != nil {
		return nil, err
	}
	if err := os.Rename(root, place); err != nil {
		// Another process may have been faster; its programs are the same.
		if p, other := unpackedIn(ctx, place, major); other == nil {
			return p, nil
		}
		return nil, fmt.Errorf("move Postgres's programs to their folder: %w", err)
	}
	return unpackedIn(ctx, place, major)
}

// unpackedIn returns the programs below a root folder.
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
