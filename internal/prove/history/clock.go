package history

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clockVariable names the file with the seconds by which a process's clock is ahead, as 64 bits in the machine's byte order.
const clockVariable = "HISTORY_CLOCK"

// skewSource is added to package time. It maps the file, since the runtime calls time.Now where a system call is not allowed.
const skewSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var ahead = new(int64)

func init() {
	path, _ := syscall.Getenv("` + clockVariable + `")
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	content, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err == nil {
		ahead = (*int64)(unsafe.Pointer(&content[0]))
	}
	syscall.Close(file)
}

func skew() int64 { return atomic.LoadInt64(ahead) }
`

// Build builds bahi into a folder, with a time.Now that a history can make wrong.
func Build(ctx context.Context, folder string) (program string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const reads = "	sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) == 0 {
		return "", fmt.Errorf("%s reads the clock in an unknown way", original)
	}
	path := func(name string) string { return filepath.Join(folder, name) }
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: path("time.go"), filepath.Join(filepath.Dir(original), "skew.go"): path("skew.go"),
	}})
	if err == nil {
		err = errors.Join(
			os.WriteFile(path("time.go"), []byte(strings.Replace(string(source), reads, reads+"	sec += skew()\n", 1)), 0o600),
			os.WriteFile(path("skew.go"), []byte(skewSource), 0o600),
			os.WriteFile(path("overlay.json"), overlay, 0o600))
	}
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", path("overlay.json"), "-o", path("bahi"), "bahi/cmd/bahi").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build bahi: %w: %s", err, out)
	}
	return path("bahi"), nil
}

func (p *process) clock() string { return filepath.Join(p.folder, "clock") }

// setClock sets a process's clock ahead by a number of seconds.
func (p *process) setClock(ahead int64) error {
	file, err := os.OpenFile(p.clock(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(ahead)))
	return errors.Join(err, file.Close())
}

// fakeClock makes libfaketime change the clock of Postgres. The nodes are not linked with the C library, so it does not change theirs.
func (p *Postgres) fakeClock() error {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err == nil && found == nil {
		err = errors.New("pgclock: libfaketime is missing (on Debian: apt-get install libfaketime)")
	}
	if err == nil {
		err = p.setClock(0)
	}
	for name, value := range map[string]string{
		"LD_PRELOAD": strings.Join(found, ":"), "FAKETIME_TIMESTAMP_FILE": p.clock(), "FAKETIME_CACHE_DURATION": "1",
		"FAKETIME_DONT_FAKE_MONOTONIC": "1",
	} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return err
}

func (p *Postgres) clock() string { return filepath.Join(p.dir, "clock") }

// setClock sets the clock of Postgres ahead by a number of seconds. Each process of Postgres looks once a second.
func (p *Postgres) setClock(ahead int64) error {
	return os.WriteFile(p.clock(), fmt.Appendf(nil, "%+d\n", ahead), 0o644) // another user's Postgres reads it
}

// postgresClockJumps sets the clock of Postgres up to 100 seconds ahead or back, and right again after some seconds.
func (r *run) postgresClockJumps(ctx context.Context) error {
	if err := r.postgres.setClock(r.faults.Int64N(201) - 100); err != nil {
		return err
	}
	r.between(ctx, 500*time.Millisecond, 8*time.Second)
	return r.postgres.setClock(0)
}

// clockJumps sets a node's clock up to 100 seconds ahead or back, and right again after some seconds.
func (r *run) clockJumps(ctx context.Context) error {
	node := r.node()
	if err := node.setClock(r.faults.Int64N(201) - 100); err != nil {
		return err
	}
	r.between(ctx, 500*time.Millisecond, 8*time.Second)
	return node.setClock(0)
}
