package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bahi/internal/distro"
)

// oldest is the oldest major version of Postgres that Bahi runs on.
const oldest = 15

// Programs is one installation of Postgres's server programs.
type Programs struct {
	Dir     string // the folder with postgres, initdb, pg_dump …
	Version string // as `postgres --version` has it: "15.18"
	Major   int
}

// Find returns Postgres's programs: from BAHI_PG_BIN alone if it is set, otherwise from the PATH, the folders of distributions and
// Homebrew, and the cache of an earlier call. It takes the newest of major version 15 or later. An existing cluster needs its own
// major version, which the caller names (0: any).
//
// Find installs missing programs, and logs each step: as root the distribution's packages; otherwise a build that embedded-postgres
// downloads.
func Find(ctx context.Context, log *slog.Logger, major int) (*Programs, error) {
	if dir := os.Getenv("BAHI_PG_BIN"); dir != "" {
		p, err := programsIn(ctx, dir)
		if err == nil {
			err = p.fits(major)
		}
		if err != nil {
			return nil, fmt.Errorf("BAHI_PG_BIN=%s: %w", dir, err)
		}
		return p, nil
	}
	found := installed(ctx)
	if ctx.Err() != nil { // An interrupted search finds nothing.
		return nil, fmt.Errorf("look for Postgres's programs: %w", context.Cause(ctx))
	}
	if p := newest(found, major); p != nil {
		return p, nil
	}
	if len(found) > 0 {
		log.Info("the Postgres programs found do not fit", "found", found[0].Version, "folder", found[0].Dir, "wanted", wanted(major))
	}
	return install(ctx, log, major)
}

// Command returns one of Postgres's programs, such as pg_dump, to run as the user of this process.
func (p *Programs) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path(name), args...) //nolint:gosec // G204: the folder was found or filled by us.
	cmd.Env = p.env()
	return cmd
}

func (p *Programs) path(name string) string { return filepath.Join(p.Dir, name) }

// env returns the environment of Postgres's programs. It drops variables that name another server or folder, and selects English messages
// for parsing.
func (p *Programs) env() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "PG") || strings.HasPrefix(name, "LC_") || name == "LANG" || name == "LANGUAGE" ||
			name == "LD_LIBRARY_PATH"
	})
	return append(env, "LC_ALL=C")
}

// fits returns an error unless these programs run a cluster of the given major version.
func (p *Programs) fits(major int) error {
	if p.Major < oldest || major != 0 && p.Major != major {
		return fmt.Errorf("it is Postgres %s, but the required version is %s", p.Version, wanted(major))
	}
	return nil
}

func wanted(major int) string {
	if major == 0 {
		return fmt.Sprintf("%d or newer", oldest)
	}
	return fmt.Sprintf("%d, which made the cluster in the data folder", major)
}

func newest(found []*Programs, major int) *Programs {
	var best *Programs
	for _, p := range found {
		// The first of equal versions is kept, because the PATH is searched first.
		if p.fits(major) == nil && (best == nil || p.Major > best.Major) {
			best = p
		}
	}
	return best
}

func installed(ctx context.Context) (found []*Programs) {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		// A link on the PATH may be alone; its target is beside the other programs.
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		filepath.Join(distro.CacheDir(), "*", "bin"),
	} {
		more, _ := filepath.Glob(pattern) // The patterns are constant; a cache folder with brackets in its name is not searched.
		dirs = append(dirs, more...)
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if p, err := programsIn(ctx, dir); err == nil {
			found = append(found, p)
		}
	}
	return found
}

var versionText = regexp.MustCompile(`\) ((\d+)[^ \n]*)`)

// programsIn returns the programs in one folder.
func programsIn(ctx context.Context, dir string) (*Programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("programs of Postgres: %w", err)
	}
	p := &Programs{Dir: dir}
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(p.path(name)); err != nil || info.IsDir() {
			return nil, errors.Join(fmt.Errorf("no program %s in %s", name, dir), err)
		}
	}
	cmd := p.Command(ctx, "postgres", "--version")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(string(out)))
	}
	match := versionText.FindStringSubmatch(string(out))
	if match == nil {
		return nil, fmt.Errorf("%s: unexpected output %q", cmd, out)
	}
	p.Version = match[1]
	p.Major, err = strconv.Atoi(match[2])
	if err != nil {
		return nil, fmt.Errorf("%s: unexpected output %q: %w", cmd, out, err)
	}
	return p, nil
}

// clusterMajor returns the major version of the existing cluster, or 0.
func clusterMajor(f folder) int {
	text, _ := readFile(filepath.Join(f.pgdata(), "PG_VERSION")) // No file, no cluster; an unreadable file fails at the start.
	major, _ := strconv.Atoi(strings.TrimSpace(text))
	return major
}
