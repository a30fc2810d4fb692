package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/app"
	"bahi/internal/bench"
)

// server is a Bahi that serves in a separate process, with default settings.
type server struct {
	address string
	key     string // may write the ledger
	url     string // of its database
	pid     int    // 0: it is in this process
	stop    func() error
}

const (
	operatorKey = "bahi_admin_bench"
	readyWithin = 10 * time.Minute
)

// serve starts a server on a database, waits until it is ready and makes a key.
func (b *benchmark) serve(ctx context.Context, database string, run func(context.Context, *server) (func() error, error)) (*server, error) {
	s, err := b.launch(ctx, database, run)
	if err != nil {
		return nil, err
	}
	if s.key, err = s.makeKey(ctx, `{"ledger":"write"}`); err != nil {
		_ = s.stop() // the first error says more
		return nil, err
	}
	return s, nil
}

// launch starts a server on a database and waits until it is ready.
func (b *benchmark) launch(
	ctx context.Context, database string, run func(context.Context, *server) (func() error, error),
) (*server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // frees the port for the server
		return nil, err
	}
	s := &server{address: address, url: database}
	if s.stop, err = run(ctx, s); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		_ = s.stop() // the first error says more
		return nil, err
	}
	return s, nil
}

// makeKey makes an API key with permissions.
func (s *server) makeKey(ctx context.Context, permissions string) (string, error) {
	made, err := s.do(ctx, bench.Request("POST", "/api/v1/api-keys", operatorKey, `{"name":"bench","permissions":`+permissions+`}`))
	if err != nil {
		return "", err
	}
	var out struct{ Key string }
	if err = json.Unmarshal(made.Body, &out); err == nil && out.Key == "" {
		err = fmt.Errorf("creating an API key failed with status %d: %s", made.Status, made.Body)
	}
	return out.Key, err
}

// onServer measures a server on a new database with open accounts.
func (b *benchmark) onServer(ctx context.Context, name string, measure func(ctx context.Context, s *server, accounts []int64) error) (err error) {
	url, err := b.database(ctx, name)
	if err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	accounts, err := s.openAccounts(ctx)
	if err != nil {
		return err
	}
	return measure(ctx, s, accounts)
}

// process returns a function that runs bahi serve; more are further settings.
func (b *benchmark) process(database string, more ...string) func(context.Context, *server) (func() error, error) {
	return func(ctx context.Context, s *server) (func() error, error) {
		cmd := exec.CommandContext(ctx, b.Bahi, "serve") //nolint:gosec // the operator chooses it
		cmd.Env = append(os.Environ(), "BAHI_DATA="+b.data(), "DATABASE_URL="+database, "BAHI_ADDR="+s.address,
			"BAHI_ADMIN_API_KEY="+operatorKey, "BAHI_LOG_LEVEL=WARN")
		cmd.Env = append(cmd.Env, more...)
		return b.start(ctx, s, cmd)
	}
}

// start starts a server's program. It returns a function that stops it.
func (b *benchmark) start(ctx context.Context, s *server, cmd *exec.Cmd) (func() error, error) {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's interrupt must reach only this process, which then stops the server
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = app.StopWithin
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.pid = cmd.Process.Pid
	return sync.OnceValue(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM) // Wait reports if it has ended already
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the server ended with %w: %s", err, said.Bytes())
		}
		if said.Len() > 0 {
			b.sayf("output of the server: %s", said.Bytes())
		}
		return nil
	}), nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		a, err := s.do(ctx, bench.Request("GET", "/readyz", operatorKey, ""))
		if err == nil && a.Status == 200 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready (%w): %s", ctx.Err(), a.Body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// do sends one request on a new connection.
func (s *server) do(ctx context.Context, request []byte) (bench.Answer, error) {
	c, err := bench.Dial(ctx, s.address)
	if err != nil {
		return bench.Answer{}, err
	}
	defer c.Close() //nolint:errcheck // the connection is discarded
	return c.Do(request)
}

// post sends a request that creates something and returns its id.
func (s *server) post(ctx context.Context, path, body string) (int64, error) {
	a, err := s.do(ctx, bench.Request("POST", path, s.key, body))
	if err != nil {
		return 0, err
	}
	var out struct{ ID int64 }
	if err := json.Unmarshal(a.Body, &out); err != nil || out.ID == 0 {
		return 0, fmt.Errorf("POST %s failed with status %d: %s", path, a.Status, a.Body)
	}
	return out.ID, nil
}

// watch polls the position of the books' projection.
type watch struct {
	conn  *pgx.Conn
	mu    sync.Mutex
	steps []step
	end   context.CancelFunc
	done  chan struct{}
}

type step struct {
	at       time.Time
	position uint64
}

const (
	lookEvery = 4 * time.Millisecond
	booksAt   = `select position from projection.generation where live and name = 'books'`
)

func (s *server) watch(ctx context.Context) (*watch, error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil, err
	}
	w := &watch{conn: conn, done: make(chan struct{})}
	ctx, w.end = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			var position int64
			if err := conn.QueryRow(ctx, booksAt).Scan(&position); err == nil {
				w.mu.Lock()
				w.steps = append(w.steps, step{time.Now(), uint64(position)})
				w.mu.Unlock()
			}
			time.Sleep(lookEvery)
		}
	}()
	return w, nil
}

func (w *watch) close(ctx context.Context) {
	w.end()
	<-w.done
	_ = w.conn.Close(context.WithoutCancel(ctx)) // the connection is discarded
}

// position returns the position of the books.
func (w *watch) position() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.steps) == 0 {
		return 0
	}
	return w.steps[len(w.steps)-1].position
}

// reach waits until the books are at a position.
func (w *watch) reach(ctx context.Context, position uint64) error {
	for w.position() < position {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the books are stuck at %d, before %d: %w", w.position(), position, ctx.Err())
		case <-time.After(lookEvery):
		}
	}
	return nil
}
