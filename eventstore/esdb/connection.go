package esdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bahi/eventstore"
)

const (
	// connectWithin limits a caller's wait for a connection.
	connectWithin = 3 * time.Second

	// silentWithin limits their further wait while nothing is known of the server, such as at a start on a busy machine.
	silentWithin = 12 * time.Second

	// tryWithin limits the first try whether a server is there that did not answer in time. The next ones take longer: the machine may be busy.
	tryWithin = 2 * time.Second

	// closeWithin limits how long Close waits for running calls.
	closeWithin = 5 * time.Second
)

var errClosed = fmt.Errorf("%w: the event log is closed", eventstore.ErrUnavailable)

// connection protects callers from what the official client does without a server (impl.go of v4.2.0, read and tried):
//
//   - After MaxDiscoverAttempts it stops for good, and later calls block. So the number of attempts is not limited.
//   - While it looks for a server, calls ignore their contexts. So each runs in a goroutine that its caller can abandon, and while the
//     server is away only one goroutine calls.
//   - It panics if it is closed during a call. So close waits for the last call.
//   - It keeps a connection that nobody answers, as of a paused server, until two keepalives failed: 20 s. So such a client is replaced.
//
// Each time it looks for its server it drops the old connection without closing it. That leaks a few idle goroutines, and a connection
// if the server is there but not ready. So it looks less and less often.
type connection struct {
	config *esdb.Configuration
	log    *slog.Logger
	life   context.Context //nolint:containedctx // the store's
	end    context.CancelCauseFunc
	reason atomic.Pointer[string] // why the server was not found; the client only logs it

	mu      sync.Mutex
	client  *client
	closed  bool
	calls   int
	idle    chan struct{} // closed when the last call of a closed connection ends
	looking chan struct{} // closed when the server is found; nil unless looking
}

// client is a client with the calls that it makes.
type client struct {
	*esdb.Client

	life  context.Context //nolint:containedctx // until it is replaced
	end   context.CancelFunc
	calls sync.WaitGroup
}

func connect(config *esdb.Configuration, log *slog.Logger) (*connection, error) {
	c := &connection{config: config, log: log, idle: make(chan struct{})}
	c.life, c.end = context.WithCancelCause(context.Background())
	config.MaxDiscoverAttempts = math.MaxInt
	config.Logger = func(level esdb.LogLevel, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if level == esdb.LogWarn || level == esdb.LogError {
			c.reason.Store(&text)
		}
		log.Debug("message of the event log's client", "level", level, "text", text)
	}
	if err := c.renew(); err != nil {
		return nil, err
	}
	c.look()
	return c, nil
}

// renew replaces the client, and ends the calls of the one before.
func (c *connection) renew() error {
	next, err := esdb.NewClient(c.config)
	if err != nil {
		return err
	}
	n := &client{Client: next}
	n.life, n.end = context.WithCancel(context.Background())
	c.mu.Lock()
	was := c.client
	c.client = n
	c.mu.Unlock()
	if was != nil {
		was.end()
		go func() {
			was.calls.Wait()
			_ = was.Close() // never fails
		}()
	}
	return nil
}

// take returns the client for a call, whose end is to be told to it.
func (c *connection) take() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client.calls.Add(1)
	return c.client
}

// underWay marks the context of a running append, which may finish its calls while the store closes.
type underWay struct{}

// whole lets an append make all its calls. It returns false if the store is closed; otherwise finish MUST be called.
func (c *connection) whole(ctx context.Context) (_ context.Context, finish func(), ok bool) {
	if !c.begin(ctx) {
		return ctx, nil, false
	}
	return context.WithValue(context.WithoutCancel(ctx), underWay{}, true), c.done, true
}

// within derives a context that also ends when the store is closed.
func (c *connection) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(underWay{}) != nil {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// run starts a call as soon as the server is there. Its error says why the call did not start; the call reports its own result. The context that the call gets
// also ends when the client is replaced.
func (c *connection) run(ctx context.Context, call func(context.Context, *esdb.Client) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := c.found(ctx); err != nil {
		return err
	}
	if !c.begin(ctx) {
		return errClosed
	}
	by := c.take()
	go func() {
		defer c.done()
		defer by.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(by.life, cancel)()
		if err := call(ctx, by.Client); isAway(err) && ctx.Err() == nil {
			c.look()
		}
	}()
	return nil
}

// do is run, but also waits for the call's result or the end of ctx. begun reports whether the server may have received the call.
func do[T any](ctx context.Context, c *connection, call func(*esdb.Client) (T, error)) (answer T, begun bool, err error) {
	type result struct {
		answer T
		err    error
	}
	results := make(chan result, 1)
	if err := c.run(ctx, func(_ context.Context, client *esdb.Client) error {
		answer, err := call(client)
		results <- result{answer, err}
		return err
	}); err != nil {
		return answer, false, err
	}
	select {
	case r := <-results:
		return r.answer, true, r.err
	case <-ctx.Done():
		return answer, true, context.Cause(ctx)
	}
}

// found waits until the server is found.
func (c *connection) found(ctx context.Context) error {
	c.mu.Lock()
	looking := c.looking
	c.mu.Unlock()
	if looking == nil {
		return nil
	}
	timer := time.NewTimer(connectWithin)
	defer timer.Stop()
	for silent := false; ; silent = true {
		select {
		case <-looking:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if reason := c.reason.Load(); reason != nil {
				return fmt.Errorf("%w: %s", eventstore.ErrUnavailable, *reason)
			}
			if silent {
				return fmt.Errorf("%w: no response", eventstore.ErrUnavailable)
			}
			timer.Reset(silentWithin)
		}
	}
}

// look lets one goroutine look for the server on behalf of all callers.
func (c *connection) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looking != nil || c.closed {
		return
	}
	found := make(chan struct{})
	c.looking = found
	c.calls++
	go func() {
		defer c.done()
		within := tryWithin
		for wait := retryEvery; c.away(within); wait = min(2*wait, mostPause) {
			within = min(2*within, answerWithin)
			if pause(c.life, wait) != nil {
				return
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.looking = nil
		close(found)
	}()
}

// silent returns the error of a call without a response in time, and tests whether the server is still there.
func (c *connection) silent() error {
	c.look()
	return fmt.Errorf("%w: the server does not respond", eventstore.ErrUnavailable)
}

// away tries whether the server is there, by a read-only call after whose failure the client drops its connection. After a failed read, gRPC keeps
// the connection and may wait for two minutes before it connects again.
func (c *connection) away(within time.Duration) bool {
	by := c.take()
	defer by.calls.Done()
	if _, err := by.GetServerVersion(); err == nil {
		ctx, cancel := context.WithTimeout(c.life, within)
		defer cancel()
		s, err := by.SubscribeToStream(ctx, IdentityStream, esdb.SubscribeToStreamOptions{From: esdb.End{}})
		if err == nil {
			err = s.Close()
		}
		if err == nil || ctx.Err() == nil || c.life.Err() != nil {
			return isAway(err)
		}
	}
	if err := c.renew(); err != nil {
		c.log.Error("replacing the client of the event log failed", "error", err)
	}
	return true
}

func (c *connection) begin(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed && ctx.Value(underWay{}) == nil {
		return false
	}
	c.calls++
	return true
}

func (c *connection) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	if c.closed && c.calls == 0 {
		close(c.idle)
	}
}

// close ends waiting calls and lets running ones finish.
func (c *connection) close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	if c.calls == 0 {
		close(c.idle)
	}
	c.mu.Unlock()
	c.end(errClosed)
	shut := make(chan struct{})
	go func() {
		defer close(shut)
		<-c.idle
		_ = c.take().Close() // never fails
	}()
	select {
	case <-shut:
	case <-time.After(closeWithin): // the client is looking for its server; its resources live until the process ends
	}
}

// isAway reports whether an error means that the server is away.
func isAway(err error) bool {
	known, is := errors.AsType[*esdb.Error](err)
	return is && (known.Code() == esdb.ErrorUnavailable || known.Code() == esdb.ErrorCodeNotLeader || known.Code() == esdb.ErrorCodeConnectionClosed) ||
		status.Code(err) == codes.Unavailable
}

// isRefusal reports whether the server understood the call and rejected it for good.
func isRefusal(err error) bool {
	if errors.Is(err, eventstore.ErrBadEvent) {
		return true
	}
	known, is := errors.AsType[*esdb.Error](err)
	if is && (known.Code() == esdb.ErrorCodeAccessDenied || known.Code() == esdb.ErrorCodeUnauthenticated ||
		known.Code() == esdb.ErrorCodeStreamDeleted || known.Code() == esdb.ErrorCodeUnsupportedFeature) {
		return true
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.FailedPrecondition:
		return true
	default:
		return false
	}
}

// ended reports whether a read has reached its end.
func ended(err error) bool {
	known, is := errors.AsType[*esdb.Error](err)
	return errors.Is(err, io.EOF) || is && known.Code() == esdb.ErrorCodeResourceNotFound
}

// errRefused is the error of a call that the server denies or does not know.
var errRefused = errors.New("the event log's server refuses the call")

// unreachable returns the error of a failed read for the callers.
func unreachable(err error) error {
	if isRefusal(err) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if status.Code(err) == codes.DataLoss { // a gateway reports it for its log
		return fmt.Errorf("%w: %w", eventstore.ErrTailLost, err)
	}
	if status.Code(err) == codes.DeadlineExceeded { // the caller's deadline, which gRPC may notice before its context does
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// text returns an error's text in one line.
func text(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
