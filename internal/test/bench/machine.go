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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// Machine describes the machine that was measured.
type Machine struct {
	Processor  string            `json:"processor"`
	Cores      int               `json:"cores"`
	Memory     string            `json:"memory"`
	System     string            `json:"system"`
	FileSystem string            `json:"file_system"` // file system of the cluster's folder
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
	defer conn.Close(ctx) // the connection is discarded
	var name, value string
	rows, _ := conn.Query(ctx, `select name, current_setting(name) from unnest($1::text[]) name`, []string{ // ForEachRow returns the error
		"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "max_wal_size", "shared_buffers",
	})
	if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error { m.Settings[name] = value; return nil }); err != nil {
		return m, fmt.Errorf("read Postgres's settings: %w", err)
	}
	m.Postgres = m.Settings["server_version"]
	return m, nil
}

// field returns the first value of a name in one of Linux's /proc files; "" on other systems.
func field(path, name string) string {
	text, err := os.ReadFile(path) // two constant paths
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

// tick is the unit of a process's times: Linux's USER_HZ is 100 on each processor that Go supports.
const tick = time.Second / 100

// ProcessorTime returns the user and system time of a process and of its children that have ended. It reads Linux's /proc.
func ProcessorTime(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	s, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(int(s.UTime+s.STime)+s.CUTime+s.CSTime) * tick, nil
}

// ChildrenOf returns a process's running children.
func ChildrenOf(parent int) (children []int) {
	all, _ := procfs.AllProcs() // none on other systems than Linux
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == parent {
			children = append(children, p.PID)
		}
	}
	return children
}

// MemoryOf returns the resident memory of a running process and its peak, in MB; 0 if the system does not report them.
func MemoryOf(pid int) (resident, peak float64) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0
	}
	s, err := p.NewStatus()
	if err != nil {
		return 0, 0
	}
	return float64(s.VmRSS) / (1 << 20), float64(s.VmHWM) / (1 << 20)
}
