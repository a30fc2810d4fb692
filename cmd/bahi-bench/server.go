package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/app"
	"bahi/internal/cli/serve"
	"bahi/internal/test/bench"
	"bahi/internal/test/starter"
)

// server is a running Bahi, or hand-written ledger.
type server struct {
	address string
	key     string // may write ledgers and messages
	url     string // URL of its database
	data    string // its folder
	pid     int    // process id; with --profile, that of this process
	stop    func() error

	accounts []int64 // accounts of the bank ledger; nil until they are opened
}

const (
	operatorKey  = starter.OperatorKey
	webhookToken = "bench-token"
	readyTimeout = 10 * time.Minute
)

// serverSettings turn off the limits that one address would reach.
var serverSettings = []string{
	"GATEWAY_WEBHOOK_TOKEN=" + webhookToken, "BAHI_LOG_LEVEL=WARN",
	"BAHI_LIMIT_AUTH=off", "BAHI_LIMIT_CATALOG_BULK=off", "BAHI_LIMIT_COMPANY_WRITE=off",
	"BAHI_LIMIT_ENQUIRY_CREATE=off", "BAHI_LIMIT_MESSAGING_GENERAL=off", "BAHI_LIMIT_CHAT_SEND=off", "BAHI_LIMIT_WEBHOOKS=off",
}

// onServer returns a scenario that runs measure with a server on a new database.
func onServer(measure func(*benchmark, context.Context, *server) error) func(*benchmark, context.Context) error {
	return func(b *benchmark, ctx context.Context) error {
		b.servers++
		name := fmt.Sprintf("served_%d", b.servers)
		url, err := b.database(ctx, name)
		if err != nil {
			return err
		}
		s, err := b.serve(ctx, url, filepath.Join(b.dir, name))
		if err != nil {
			return err
		}
		return errors.Join(measure(b, ctx, s), s.stop())
	}
}

// onLedger returns a scenario that runs measure with a server that has bank accounts.
func onLedger(measure func(*benchmark, context.Context, *server) error) func(*benchmark, context.Context) error {
	return onServer(func(b *benchmark, ctx context.Context, s *server) error {
		if err := s.openAccounts(ctx); err != nil {
			return err
		}
		return measure(b, ctx, s)
	})
}

// serve starts a server with a folder on a database, waits until it is ready and creates a key.
func (b *benchmark) serve(ctx context.Context, database, data string, settings ...string) (*server, error) {
	b.sayf("starting a server")
	run := b.process
	if b.Profile != "" {
		run = b.inside
	}
	s, err := b.launch(ctx, &server{url: database, data: data}, func(ctx context.Context, s *server) (func() error, error) {
		return run(ctx, s, settings)
	})
	if err != nil {
		return nil, err
	}
	if s.key, err = s.newKey(ctx, ""); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// newKey creates a key in a workspace; "": the operator's.
func (s *server) newKey(ctx context.Context, workspace string) (string, error) {
	if workspace != "" {
		workspace = fmt.Sprintf(`"workspace_id":%q,`, workspace)
	}
	var made struct{ Key string }
	err := s.json(ctx, "POST", "/api/v1/api-keys", operatorKey,
		`{"name":"bench",`+workspace+`"permissions":{"ledger":"write","messaging":"write"}}`, &made)
	return made.Key, err
}

// launch starts a server and waits until it is ready.
func (b *benchmark) launch(ctx context.Context, s *server, run func(context.Context, *server) (func() error, error)) (*server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr().String()
	if err := listener.Close(); err != nil { // frees the port for the server
		return nil, err
	}
	if s.stop, err = run(ctx, s); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// process runs bahi serve.
func (b *benchmark) process(ctx context.Context, s *server, settings []string) (func() error, error) {
	cmd := exec.CommandContext(ctx, b.Bahi, "serve") //nolint:gosec // the operator chooses it
	cmd.Env = slices.Concat(starter.Env(s.data, serverSettings...), settings, []string{"DATABASE_URL=" + s.url, "BAHI_ADDR=" + s.address})
	return b.start(ctx, s, cmd)
}

// inside runs serve in this process.
func (b *benchmark) inside(ctx context.Context, s *server, settings []string) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	c := serve.Command{Settings: b.settings(s.url), Addr: s.address, OperatorSettings: app.OperatorSettings{AdminKey: operatorKey}}
	c.Data, c.IntegrationSettings.WebhookToken, c.Shell.Env = s.data, webhookToken, slices.Concat(serverSettings, settings)
	s.pid = os.Getpid()
	go func() { ended <- c.Run(ctx) }()
	return sync.OnceValue(func() error { cancel(); return <-ended }), nil
}

// start starts a server's program. It returns a function that stops it.
func (b *benchmark) start(ctx context.Context, s *server, cmd *exec.Cmd) (func() error, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's interrupt must reach only this process, which then stops the server
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = app.StopTimeout
	p, err := starter.Start(cmd, os.Stderr)
	if err != nil {
		return nil, err
	}
	s.pid = cmd.Process.Pid
	return sync.OnceValue(func() error {
		if status := p.Interrupt(); status != 0 && ctx.Err() == nil {
			return fmt.Errorf("the server ended with status %d: %s", status, p.Text())
		}
		return nil
	}), nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		a, err := bench.Send(ctx, s.address, bench.AnswerIn, bench.Request("GET", "/readyz", operatorKey, ""))
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

// json sends a request and decodes its response.
func (s *server) json(ctx context.Context, method, path, key, body string, into any) error {
	a, err := bench.Send(ctx, s.address, bench.AnswerIn, bench.Request(method, path, key, body))
	if err != nil {
		return err
	}
	if a.Status/100 != 2 {
		return fmt.Errorf("%s %s failed with status %d: %s", method, path, a.Status, a.Body)
	}
	return json.Unmarshal(a.Body, into)
}

// upload sends a file as a form does, and requires that the response contains some text.
func (s *server) upload(ctx context.Context, path, key, name string, file []byte, text string) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(file)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.address+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	got, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(got, []byte(text)) {
		err = fmt.Errorf("POST %s returned status %d: %.300s", path, response.StatusCode, got)
	}
	return err
}

// openAccounts opens bank accounts.
func (s *server) openAccounts(ctx context.Context) error {
	for i := range bankAccounts {
		var account struct{ ID int64 }
		if err := s.json(ctx, "POST", "/bank", s.key, fmt.Sprintf(`{"name":"HDFC Current %d"}`, 1+i), &account); err != nil {
			return err
		}
		s.accounts = append(s.accounts, account.ID)
	}
	return nil
}

// SQL conditions that are true while a server is busy.
const (
	foldingBooks = `exists (select from projection.generation where status = 'live' and name = 'books' and position < log.head())`
	folding      = `exists (select from projection.generation where status = 'live' and not paused and position < log.head())`
	acting       = folding + ` or exists (select from inbox.call where verdict = 'waiting')
		or exists (select from river.river_job where state in ('available', 'running') and kind = 'simulate_receipts')
		or exists (select from reactor.checkpoint where name = 'messages' and position < log.head())`
)

// after returns a function that waits until the server is no longer busy.
func (s *server) after(busy string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
		for waits := true; waits; time.Sleep(lookInterval) {
			if err := conn.QueryRow(ctx, `select `+busy).Scan(&waits); err != nil {
				return err
			}
		}
		return nil
	}
}

const (
	lookInterval = 4 * time.Millisecond
	booksAt      = `select position from projection.generation where status = 'live' and name = 'books'`
)
