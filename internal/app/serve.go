package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for a container that has nothing but Bahi

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	_ "golang.org/x/crypto/x509roots/fallback" // for a container that has nothing but Bahi

	"bahi/commands/accesscmd"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/http"
	"bahi/http/api"
	"bahi/projections"
	"bahi/projections/ledgerproj"
	"bahi/providers/blob"
	"bahi/readmodels"
)

// tokenPrefix begins every access token: a JSON object in base64 (RFC 7515, section 3).
const tokenPrefix = "eyJ"

// Api returns the interface with all operations. key is the operator's API key.
func (s *System) Api(key string, limiting api.Limiting, metrics prometheus.Registerer, tracer trace.TracerProvider) (*api.API, error) {
	spool := filepath.Join(s.Settings.Data, "uploads") // others must not be able to read requests and responses
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, fmt.Errorf("create the uploads' folder: %w", err)
	}
	a := api.New(api.Config{
		Version: Version, Document: http.Document,
		Credentials: []api.Credential{
			{Prefix: tokenPrefix, Authenticator: s.ring},
			// It has no prefix: an operator may choose any key.
			{Authenticator: &accesscmd.KeyRing{Commands: s.Commands, Admin: key, Home: s.Home, Now: time.Now}},
		},
		Admit: s.admit, Workspaces: s.ring, Limiting: limiting, Origins: s.outside.origins, Spool: spool,
		Secure:  strings.HasPrefix(s.Settings.Outside.PublicURL, "https:"),
		Recheck: s.Settings.Outside.Recheck, Streams: s.Settings.Outside.Streams,
		Whole:    api.BufferLimits{MaxConcurrent: s.Settings.Outside.MaxExpensive, Files: s.Settings.Outside.Files},
		Classify: Classify, Log: s.Log, Metrics: metrics, Tracer: tracer,
	})
	s.routes(a, metrics)
	return a, s.console(a)
}

// Serve serves HTTP at the listener and runs the background work, until the context ends.
func (s *System) Serve(ctx context.Context, listener net.Listener, key string, tracer trace.TracerProvider) error {
	s.feed = s.openFeed()
	metrics := prometheus.NewRegistry()
	s.Register(metrics)
	a, err := s.Api(key, s.limiting(), metrics, tracer)
	if err != nil {
		return err
	}
	serving, run, end := s.work(ctx)
	run(func(background context.Context) error { s.cleanFolders(background); return nil })
	run(func(background context.Context) error { s.Signer.Run(background); return nil })
	if s.Settings.AuditReread {
		run(s.reread)
	}
	if s.feed != nil {
		defer s.outside.broker.Close() //nolint:errcheck // nothing depends on it any more
		run(s.feed.Run)
	}
	defer func() {
		s.signLast(ctx)
		end()
	}()
	server := http.NewServer(http.Config{API: a, Log: s.Log, Metrics: metrics, Ready: s.ready})
	s.findTools(serving)
	err = server.Serve(serving, listener)
	if cause := context.Cause(serving); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// work starts the background work: tables, cached states of commands, reactors, webhook calls and jobs. run adds more of it. The first
// error ends the context serving, and is its cause. end ends all the work.
func (s *System) work(ctx context.Context) (serving context.Context, run func(func(context.Context) error), end func()) {
	serving, fail := context.WithCancelCause(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	within := func(ctx context.Context, do func(context.Context) error) {
		running.Go(func() {
			if err := do(ctx); err != nil {
				fail(err)
			}
		})
	}
	run = func(do func(context.Context) error) { within(background, do) }
	run(s.backlog.Run)
	run(s.Commands.Run)
	run(func(ctx context.Context) error { return s.Runner.Run(ctx, AllProjections()...) })
	run(func(ctx context.Context) error { return s.Runner.MaintainGenerations(ctx, AllProjections()...) })
	run(func(ctx context.Context) error { return s.Reacting.Run(ctx, AllReactors()...) })
	running.Go(func() { s.Inbox.Run(serving) })
	within(serving, s.queue.Run) // it stops in parallel with the requests
	return serving, run, func() {
		fail(nil)
		stop()
		running.Wait()
	}
}

// WithWorkers runs a command's writes together with all background work, and waits until the tables have the writes. A running server does
// a part of the work.
func (s *System) WithWorkers(ctx context.Context, do func(context.Context) error) error {
	if err := s.Reacting.Place(ctx, AllReactors()...); err != nil {
		return err
	}
	serving, _, end := s.work(ctx)
	defer end()
	err := s.untilCaughtUp(serving, nil, AllProjections())
	if err == nil {
		err = do(serving)
	}
	if err == nil {
		err = s.untilCaughtUp(serving, nil, AllProjections())
	}
	if cause := context.Cause(serving); err != nil && cause != nil {
		err = cause
	}
	return err
}

// admit delays writes of the ledgers while the books lag behind, and refuses them if that lasts.
func (s *System) admit(ctx context.Context, op api.Op) error {
	if op.Area != actor.Ledger {
		return nil
	}
	err := s.backlog.Admit(ctx, ledgerproj.Books.Name)
	if errors.Is(err, projections.ErrSaturated) {
		err = fault.New(fault.Unavailable, "More is written than the books can follow, try again")
	}
	return err
}

// Classify returns the fault for errors of the layers below when something is temporarily unavailable.
func Classify(err error) *fault.Error {
	connecting, isConnecting := errors.AsType[*pgconn.ConnectError](err)
	server, isServer := errors.AsType[*pgconn.PgError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	large, isTooLarge := errors.AsType[*eventstore.TooLarge](err)
	_, isDisk := errors.AsType[*fs.PathError](err) // its error numbers look like a network's
	switch {
	case isServer && server.Code == diskFull:
		return fault.New(fault.Unavailable, "The database's disk is full. Free some space, then try again")
	case errors.Is(err, eventstore.ErrInDoubt):
		return fault.New(fault.Unavailable, "The connection to the log was lost, and the outcome is unknown. Retry with the same "+
			"Idempotency-Key, or check whether the record exists")
	case errors.Is(err, eventstore.ErrUnavailable), errors.Is(err, readmodels.ErrNotBuilt), errors.Is(err, blob.ErrUnavailable),
		isConnecting && connecting != nil, isNetwork && !isDisk && network != nil, errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, pgconn.ErrConnClosed), errors.Is(err, io.ErrUnexpectedEOF), // Postgres disconnected in the middle of a response
		isServer && (strings.HasPrefix(server.Code, "57") || strings.HasPrefix(server.Code, "08") || strings.HasPrefix(server.Code, "53")):
		return fault.New(fault.Unavailable, "Not available right now, try again")
	case isTooLarge && large != nil:
		return fault.New(fault.Invalid, fmt.Sprintf("The request is too large: it can store at most %d bytes at once", large.Max))
	case errors.Is(err, eventstore.ErrBadEvent):
		return fault.New(fault.Invalid, "The request cannot be stored")
	default:
		return nil
	}
}
