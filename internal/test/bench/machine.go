package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Machine describes the machine that was measured.
type Machine struct {
	Processor  string            `json:"processor"`
	Cores      int               `json:"cores"`
	Memory     string            `json:"memory"`
	System     string            `json:"system"`
	FileSystem string            `json:"file_system"` // of the cluster's folder
	Go         string            `json:"go"`
	Postgres   string            `json:"postgres"`
	Settings   map[string]string `json:"settings"` // relevant settings of Postgres
}

// Describe describes the machine and its Postgres.
func Describe(ctx context.Context, url, dir string) (Machine, error) {
	m := Machine{
		Processor: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		System: runtime.GOOS + "/" + runtime.GOARCH, FileSystem: fileSystem(dir), Go: runtime.Version(), Settings: map[string]string{},
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return m, fmt.Errorf("connect to Postgres to read its settings: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	for _, name := range []string{
		"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "max_wal_size", "shared_buffers",
	} {
		var value string
		if err := conn.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value); err != nil {
			return m, fmt.Errorf("ask Postgres for %s: %w", name, err)
		}
		m.Settings[name] = value
	}
	m.Postgres = m.Settings["server_version"]
	return m, nil
}

// field returns the first value of a name in one of Linux's /proc files; "" on other systems.
func field(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // two constant paths
	if err != nil {
		return "unknown"
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem returns the file system of the folder. On tmpfs nothing is durable, and the figures mean little.
func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	names := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x794C7630: "overlay"}
	if name, known := names[int64(s.Type)]; known { //nolint:unconvert // int32 on some systems
		return name
	}
	return fmt.Sprintf("%#x", s.Type)
}
