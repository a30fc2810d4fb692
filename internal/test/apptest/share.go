package apptest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"

	"bahi/internal/test/apitest"
)

// Share returns a system that the tests of a package use concurrently, each in two workspaces of its own. Tests that change settings,
// projections, jobs or tables, or compare positions of the log, cannot use it: other tests write too, and some writes, such as that of a
// taken number, belong to no workspace. The package's TestMain is [Main], which ends it.
func Share(t testing.TB) *Server {
	t.Helper()
	sharing.Do(func() {
		p := &packageTB{TB: t}
		defer func() { ended = p.end }() // even after a failed start
		shared = Start(p)
	})
	if shared == nil {
		t.Fatal("the shared system did not start")
	}
	return shared.visited(t)
}

var (
	sharing sync.Once
	shared  *Server
	ended   = func() (ok bool) { return true } // cleans up after the package's last test
)

// visited returns the server for a test, with two workspaces of its own.
func (o *Server) visited(t testing.TB) *Server {
	own := *o
	own.T, own.Home, own.Abroad = t, uuid.NewString(), uuid.NewString()
	own.domain = own.Home[:8] + ".example.com"
	own.Stop = func() { t.Fatal("a shared system is not stopped by a test") }
	return &own
}

// packageTB is a test that lasts as long as its package: its cleanups run after the last test.
type packageTB struct {
	testing.TB // the first test that shares; it fails if the start does

	mu       sync.Mutex
	cleanups []func()
	faults   int
}

func (p *packageTB) Context() context.Context { return context.Background() }

func (p *packageTB) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *packageTB) TempDir() string {
	p.Helper()
	dir, err := os.MkdirTemp("", "bahi-shared-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *packageTB) Error(args ...any) {
	p.mu.Lock()
	p.faults++
	p.mu.Unlock()
	p.Log(args...)
}

// Log writes to standard error, because the first test may have ended.
func (p *packageTB) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func (p *packageTB) Logf(format string, args ...any) { p.Log(fmt.Sprintf(format, args...)) }

func (p *packageTB) Errorf(format string, args ...any) { p.Error(fmt.Sprintf(format, args...)) }

// end cleans up, newest first.
func (p *packageTB) end() (ok bool) {
	for len(p.cleanups) > 0 {
		last := p.cleanups[len(p.cleanups)-1]
		p.cleanups = p.cleanups[:len(p.cleanups)-1]
		last()
	}
	return p.faults == 0
}

// Clerk returns a client that may write the books of the test's own workspace in the shared system.
func Clerk(t testing.TB) *apitest.Client {
	t.Helper()
	o := Share(t)
	return o.Clerk(o.Home)
}

// Address returns an email address that is unique to the test, even in a shared system.
func (o *Server) Address(name string) string {
	return name + "@" + cmp.Or(o.domain, "example.com")
}
