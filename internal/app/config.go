package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bahi/commands/accesscmd"
)

// Settings are shared by all commands. Only the help of `bahi serve` lists them.
type Settings struct {
	Data        string        `env:"BAHI_DATA" default:"./data" help:"Data folder: embedded Postgres, keys, mails, images." group:"Data"`
	DatabaseURL string        `env:"DATABASE_URL" name:"database-url" placeholder:"URL" example:"postgres://bahi:secret@db.example.org:5432/bahi" help:"Postgres 15 or newer. Without it, an embedded Postgres in the data folder." group:"Data"`
	EventStore  string        `env:"EVENTSTORE_URL" name:"eventstore-url" placeholder:"URL" example:"esdb://admin:secret@log.example.org:2113" help:"EventStoreDB or KurrentDB with a replicated journal of the log. Without it, the log is in Postgres only." group:"Data"`
	MasterKey   string        `env:"BAHI_MASTER_KEY" placeholder:"BASE64" unit:"base64 of 32 bytes" help:"Key that wraps every other key. Without it, keys/master.key of the data folder. If the key is lost, nobody can sign in, and personal data are unreadable." group:"Data"`
	Timezone    string        `env:"BAHI_TIMEZONE" default:"Asia/Kolkata" unit:"IANA name" help:"Time zone of the workshop, which decides when a date begins." group:"Server"`
	ReadWait    time.Duration `env:"BAHI_READ_WAIT" default:"500ms" help:"Maximum wait of a read without Bahi-Min-Position for its tables to catch up with the log. After this time, the response has a Warning." group:"Data"`
	Connections int32         `env:"BAHI_DB_CONNECTIONS" default:"24" unit:"connections" help:"Maximum connections to Postgres for requests. Reads have half as many of their own, jobs four." group:"Data"`
	LogLevel    slog.Level    `env:"BAHI_LOG_LEVEL" default:"INFO" help:"Lowest level that is logged: DEBUG, INFO, WARN, ERROR." group:"Server"`
	Keep        time.Duration `env:"BAHI_KEEP_GENERATION" name:"keep-generation" default:"1h" help:"Time for which replaced tables are kept up to date after a rebuild, for a rollback." group:"Data"`
	TakeOver    time.Duration `env:"BAHI_TAKEOVER_AFTER" name:"takeover-after" default:"15s" help:"Time without a heartbeat after which another process takes over projections, reactors and feed." group:"Data"`
	Unlogged    bool          `env:"BAHI_UNLOGGED_TABLES" name:"unlogged-tables" help:"Keep the tables that are computed from the log out of Postgres's WAL, which saves two thirds of the WAL. Postgres empties them after a crash, and reads fail until the log is folded again. Ignored if Postgres has replicas. A change of this setting rewrites all tables at the start." group:"Data"`
	LogFormat   string        `env:"BAHI_LOG_FORMAT" default:"text" enum:"text,json" help:"Form of log lines." group:"Server"`

	auditSettings `group:"Proof of the log"`

	Outside  IntegrationSettings `kong:"-"`
	MayBegin bool                `kong:"-"` // the command works without an earlier run
	Shell    Shell               `kong:"-"`
}

// Shell is the process of a command: its streams and its environment.
type Shell struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string // name=value; the last of equal names counts
}

// Getenv returns the value of a variable, "" if it is not set.
func (s Shell) Getenv(name string) string {
	for _, line := range slices.Backward(s.Env) {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	return ""
}

// AfterApply implements kong's interface.
func (s *Settings) AfterApply(sh Shell) error {
	s.Shell = sh
	return nil
}

// Opened has the system that a command has opened, to be closed after it.
type Opened struct{ *System }

// ProvideSystem opens the books for a command whose Run takes a system, with or without a running server.
func (s Settings) ProvideSystem(ctx context.Context, o *Opened) (*System, error) {
	sys, err := s.OpenBooks(ctx, false)
	if err == nil {
		o.System = sys
	}
	return sys, err
}

// Logger returns a logger to standard error. A shell command only logs problems.
func (s Settings) Logger(serving bool) *slog.Logger {
	var out io.Writer = os.Stderr
	if s.Shell.Err != nil {
		out = s.Shell.Err
	}
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if !serving && s.LogLevel == slog.LevelInfo {
		options.Level = slog.LevelWarn
	}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

func (s Settings) Zone() (*time.Location, error) {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return nil, fmt.Errorf("BAHI_TIMEZONE: %w", err)
	}
	return zone, nil
}

const (
	keyBytes    = 32
	shortestKey = 16 // characters: the key allows everything, and an attacker can guess 120 a minute
)

// OperatorSettings identify the operator.
type OperatorSettings struct {
	AdminKey string `env:"BAHI_ADMIN_API_KEY" name:"admin-api-key" placeholder:"KEY" example:"a-long-secret-of-yours" help:"API key of the operator. Without it, the first start creates one, prints it and stores it in keys/admin.key of the data folder." group:"Server"`
}

// Check returns the error of a key that cannot be the operator's.
func (c OperatorSettings) Check() error {
	if key := c.AdminKey; key != "" && (len(key) < shortestKey || strings.HasPrefix(key, tokenPrefix)) {
		return fmt.Errorf("BAHI_ADMIN_API_KEY: expected at least %d characters that do not begin like an access token (%s)", shortestKey,
			tokenPrefix)
	}
	return nil
}

// OperatorKey returns the operator's API key. It prints a new one.
func (c OperatorSettings) OperatorKey(data string, out io.Writer) (string, error) {
	if err := c.Check(); err != nil {
		return "", err
	}
	key, made, err := adminKey(data, c.AdminKey)
	if made && err == nil {
		fmt.Fprintf(out, "The operator's API key, kept in %s/keys/admin.key:\n%s\n", data, key)
	}
	return key, err
}

// adminKey returns the operator's own key: the configured one, otherwise the one in the data folder, which the first start creates. made
// reports a new one.
func adminKey(data, configured string) (key string, made bool, err error) {
	if configured != "" {
		return configured, false, nil
	}
	path := filepath.Join(data, "keys", "admin.key")
	text, err := os.ReadFile(path) //nolint:gosec // the data folder is the operator's
	if err == nil {
		return strings.TrimSpace(string(text)), false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("read the operator's key: %w", err)
	}
	secret := make([]byte, keyBytes)
	rand.Read(secret)
	key = accesscmd.KeyPrefix + "admin_" + base64.RawURLEncoding.EncodeToString(secret)
	return key, true, writeKey(path, key)
}

// writeKey writes a key's file, for the operator alone.
func writeKey(path, key string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the keys' folder: %w", err)
	}
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}

// Version is set by the linker.
var Version = "development"
