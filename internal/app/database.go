package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/vault"
	"bahi/internal/pgcluster"
	"bahi/migrations"
)

// Database is an open database without the rest of the system.
type Database struct {
	Url     string
	Cluster *pgcluster.Cluster    // nil: an external Postgres
	lock    *pgcluster.FolderLock // nil: another process may serve it
	Log     *slog.Logger
}

// HasRun refuses a data folder without a database. A command that only reads would create one there. If the operator has named the wrong
// folder, it would report on an empty new log.
func (s Settings) HasRun() error {
	if s.DatabaseURL != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.Data, "postgres")); err != nil {
		return fmt.Errorf("no Bahi has run in the data folder %s (--data or BAHI_DATA names another): %w", s.Data, err)
	}
	return nil
}

// Attach connects to the database, and changes nothing in it.
func (s Settings) Attach(ctx context.Context) (*Database, error) {
	log := s.Logger(false)
	db := &Database{Url: s.DatabaseURL, Log: log}
	if db.Url != "" {
		return db, nil
	}
	var err error
	if db.Cluster, err = pgcluster.Attach(ctx, pgcluster.Options{Dir: s.Data, Log: log}); err != nil {
		return nil, err
	}
	db.Url = db.Cluster.URL()
	return db, nil
}

// AttachAlone is Attach, and keeps other processes from serving the database, as far as possible.
func (s Settings) AttachAlone(ctx context.Context) (db *Database, err error) {
	var lock *pgcluster.FolderLock
	if s.DatabaseURL == "" {
		if lock, err = pgcluster.Lock(s.Data); err != nil {
			return nil, err
		}
	}
	if db, err = s.Attach(ctx); err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Release())
		}
		return nil, err
	}
	db.lock = lock
	if err := db.checkAlone(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Emptied attaches to the database like AttachAlone, creates the missing tables of a log, and opens a pool. The caller closes both with
// done.
func (s Settings) Emptied(ctx context.Context) (pool *pgxpool.Pool, done func(), err error) {
	db, err := s.AttachAlone(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err = migrations.Up(ctx, db.Url); err == nil {
		pool, err = db.Pool(ctx)
	}
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return pool, func() { pool.Close(); db.Close() }, nil
}

// goneTimeout is the time in which Postgres must notice that a stopped Bahi has closed its connections.
const goneTimeout = 3 * time.Second

// checkAlone looks for other Bahis on the database. They would continue with the former log's id.
func (db *Database) checkAlone(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, db.Url)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection only read
	for began := time.Now(); ; time.Sleep(goneTimeout / 30) {
		var others int
		err := conn.QueryRow(ctx, `
			select count(*) from pg_stat_activity where datname = current_database() and application_name = 'bahi'`).Scan(&others)
		switch {
		case err != nil || others == 0:
			return err
		case time.Since(began) > goneTimeout:
			return fmt.Errorf("another Bahi has %d connections to this database: stop it first", others)
		}
	}
}

func (db *Database) Pool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(db.Url)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["jit"] = "off"
	return pgxpool.NewWithConfig(ctx, config)
}

func (db *Database) Close() {
	stop(db.Cluster, db.Log)
	if db.lock != nil {
		_ = db.lock.Release() // the process ends
	}
}

// tools are Postgres's own programs, for a database.
type tools struct {
	Programs *pgcluster.Programs
	url      string
	env      []string
}

// Tools finds programs of at least a major version.
func (db *Database) Tools(ctx context.Context, log *slog.Logger, major int) (*tools, error) {
	if db.Cluster != nil {
		return &tools{Programs: db.Cluster.Programs(), url: db.Url}, nil
	}
	address, env, err := LibpqURL(db.Url)
	if err != nil {
		return nil, err
	}
	t := &tools{url: address, env: env, Programs: clientPrograms(ctx)}
	if t.Programs == nil || t.Programs.Major < major {
		if t.Programs, err = pgcluster.Find(ctx, log, 0); err != nil {
			return nil, err
		}
	}
	if t.Programs.Major < major {
		return nil, fmt.Errorf("pg_dump and pg_restore are of Postgres %s, and must be of %d or newer: "+
			"install them (on Debian: postgresql-client-%d), or name their folder in BAHI_PG_BIN", t.Programs.Version, major, major)
	}
	return t, nil
}

var versionOfProgram = regexp.MustCompile(`\) ((\d+)\S*)`)

// clientPrograms returns the client programs on the PATH, which may be installed without a server. BAHI_PG_BIN has precedence.
func clientPrograms(ctx context.Context) *pgcluster.Programs {
	path, err := exec.LookPath("pg_dump")
	if err != nil || os.Getenv("BAHI_PG_BIN") != "" {
		return nil
	}
	p := &pgcluster.Programs{Dir: filepath.Dir(path)}
	out, err := p.Command(ctx, "pg_dump", "--version").Output()
	if err != nil {
		return nil
	}
	match := versionOfProgram.FindStringSubmatch(string(out))
	if match == nil {
		return nil
	}
	p.Version, p.Major = match[1], MajorOf(match[1])
	return p
}

// MajorOf returns the first number of a version, or 0.
func MajorOf(version string) int {
	first, _, _ := strings.Cut(version, ".")
	major, _ := strconv.Atoi(first)
	return major
}

var passwordWord = regexp.MustCompile(`(?i)\bpassword\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)

// LibpqURL returns a connection string for Postgres's own programs. It omits the password, which everybody on the machine could read in the
// list of processes, and parameters that only our driver knows.
func LibpqURL(text string) (address string, env []string, err error) {
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return "", nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "PG") { // pgcluster.Programs removes these for its own clusters
			env = append(env, variable)
		}
	}
	if config.ConnConfig.Password != "" {
		env = append(env, "PGPASSWORD="+config.ConnConfig.Password)
	}
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") { // keywords: host=… dbname=…
		return passwordWord.ReplaceAllString(text, ""), env, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", nil, errors.New("DATABASE_URL is not an address") // the error would quote the password
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	var query []string // kept as written: libpq does not decode a plus
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if name, _, _ := strings.Cut(part, "="); !onlyOurs(name) {
			query = append(query, part)
		}
	}
	u.RawQuery = strings.Join(query, "&")
	return u.String(), env, nil
}

// onlyOurs reports whether a parameter is for our driver alone, or is the password.
func onlyOurs(parameter string) bool {
	switch parameter {
	case "password", "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity", "min_read_buffer_size":
		return true
	}
	return strings.HasPrefix(parameter, "pool_")
}

// Run runs a program to its end. The error has its standard error.
func (t *tools) Run(ctx context.Context, name string, args ...string) error {
	cmd := t.Programs.Command(ctx, name, append(args, "--dbname="+t.url)...)
	cmd.Env = append(cmd.Env, t.env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", name, context.Cause(ctx))
		}
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// MasterKeyNamed returns the node's master key, which must have this id. It creates none.
func (s Settings) MasterKeyNamed(id string) (text string, err error) {
	file := filepath.Join(s.Data, "keys", "master.key")
	if s.MasterKey == "" {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w: give the one with the id %s in BAHI_MASTER_KEY, or as %s", ErrNoMasterKey, id, file)
		}
	}
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return "", err
	}
	mine, err := vault.MasterKeyID(key)
	if err != nil {
		return "", err
	}
	if mine != id {
		return "", fmt.Errorf("%w: the id must be %s (in BAHI_MASTER_KEY or as %s), and it is %s",
			ErrOtherMasterKey, id, file, mine)
	}
	return base64.StdEncoding.EncodeToString(key), nil
}

var (
	ErrNoMasterKey    = errors.New("there is no master key")
	ErrOtherMasterKey = errors.New("this is another master key")
)

// OpenVault opens the vault of a database.
func (s Settings) OpenVault(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (*vault.Vault, error) {
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return nil, err
	}
	return vault.Open(ctx, pool, key, log)
}
