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
	// connectWithin is how long a caller waits for a connection.
	connectWithin = 3 * time.Second

	// closeWithin is how long calls that are under way may take when the store is closed.
	closeWithin = 5 * time.Second
)

var errClosed = fmt.Errorf("%w: the event log is closed", eventstore.ErrUnavailable)

// connection keeps callers from what the official client does when its server is away (impl.go of v4.2.0, read and tried):
//
//   - After MaxDiscoverAttempts it ends for good, and whoever calls it later waits for ever. So it never stops looking.
//   - While it looks, calls wait without regard to their contexts. So each is made in a goroutine of its own, which its caller
//     can leave behind, and while the server is away nobody but one who looks for it calls at all.
//   - It panics when it is closed during a call. So it is closed after the last one.
//
// When it looks for its server again it forgets the old connection without closing it, which costs a few idle goroutines each time, and a
// connection if the server is there but not ready. So it looks less and less often.
type connection struct {
	client *esdb.Client
	log    *slog.Logger
	life   context.Context //nolint:containedctx // of the store
	end    context.CancelCauseFunc
	reason atomic.Pointer[string] // why the server was not found, as the client logs it and tells nobody

	mu      sync.Mutex
	closed  bool
	calls   int
	idle    chan struct{} // closed when the last call of a closed connection ends
	looking chan struct{} // closed when the server is found; nil: it is there, as far as is known
}

func connect(config *esdb.Configuration, log *slog.Logger) (*connection, error) {
	c := &connection{log: log, idle: make(chan struct{})}
	c.life, c.end = context.WithCancelCause(context.Background())
	config.MaxDiscoverAttempts = math.MaxInt
	config.Logger = func(level esdb.LogLevel, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if level == esdb.LogWarn || level == esdb.LogError {
			c.reason.Store(&text)
		}
		log.Debug("the client of the event log says", "level", level, "text", text)
	}
	var err error
	if c.client, err = esdb.NewClient(config); err != nil {
		return nil, err
	}
	c.look()
	return c, nil
}

// underWay marks the context of an append that has begun: its calls are made to the end, also when the store is closed.
type underWay struct{}

// whole lets an append make all its calls. It answers false when the store is closed; otherwise finish MUST be called.
func (c *connection) whole(ctx context.Context) (_ context.Context, finish func(), ok bool) {
	if !c.begin(ctx) {
		return ctx, nil, false
	}
	return context.WithValue(context.WithoutCancel(ctx), underWay{}, true), c.done, true
}

// within ends a caller's context when the store is closed.
func (c *connection) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(underWay{}) != nil {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// run begins a call as soon as the server is there. It answers why the call was not begun; what becomes of it is for the call
// to tell.
func (c *connection) run(ctx context.Context, call func(*esdb.Client) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := c.found(ctx); err != nil {
		return err
	}
	if !c.begin(ctx) {
		return errClosed
	}
	go func() {
		defer c.done()
		if err := call(c.client); isAway(err) && ctx.Err() == nil {
			c.look()
		}
	}()
	return nil
}

// do is run, and waits for what the call answers, or until the context ends. begun says whether the server may have heard of it.
func do[T any](ctx context.Context, c *connection, call func(*esdb.Client) (T, error)) (answer T, begun bool, err error) {
	type result struct {
		answer T
		err    error
	}
	results := make(chan result, 1)
	if err := c.run(ctx, func(client *esdb.Client) error {
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

// found waits until the server is there.
func (c *connection) found(ctx context.Context) error {
	c.mu.Lock()
	looking := c.looking
	c.mu.Unlock()
	if looking == nil {
		return nil
	}
	timer := time.NewTimer(connectWithin)
	defer timer.Stop()
	select {
	case <-looking:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		why := "no answer"
		if reason := c.reason.Load(); reason != nil {
			why = *reason
		}
		return fmt.Errorf("%w: %s", eventstore.ErrUnavailable, why)
	}
}

// look lets one goroutine wait for the server, in place of all callers.
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
		for away, wait := true, retryEvery; away; wait = min(2*wait, mostPause) {
			if _, err := c.client.GetServerVersion(); err != nil {
				c.log.Error("the event log's server cannot be looked for any more", "error", err)
				return
			}
			if away = isAway(c.try()); away && pause(c.life, wait) != nil {
				return
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.looking = nil
		close(found)
	}()
}

// silent is the error of a call that was not answered in time. The server may be away without anybody having noticed.
func (c *connection) silent() error {
	c.look()
	return fmt.Errorf("%w: the server does not answer", eventstore.ErrUnavailable)
}

// try asks the server something. Of the calls that only look, this is one after whose failure the client drops its connection; a
// read that cannot begin leaves it to gRPC, which may wait for two minutes before it connects anew.
func (c *connection) try() error {
	ctx, cancel := context.WithTimeout(c.life, answerWithin)
	defer cancel()
	s, err := c.client.SubscribeToStream(ctx, IdentityStream, esdb.SubscribeToStreamOptions{From: esdb.End{}})
	if err == nil {
		err = s.Close()
	}
	return err
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

// close ends what waits, and lets the calls that are under way end.
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
		_ = c.client.Close() // never fails
	}()
	select {
	case <-shut:
	case <-time.After(closeWithin): // the client looks for its server; what it holds goes with the process
	}
}

// isAway says whether an error tells that the server went away.
func isAway(err error) bool {
	known, is := errors.AsType[*esdb.Error](err)
	return is && (known.Code() == esdb.ErrorUnavailable || known.Code() == esdb.ErrorCodeNotLeader || known.Code() == esdb.ErrorCodeConnectionClosed) ||
		status.Code(err) == codes.Unavailable
}

// isRefusal says whether the server understood the call, and did not do it for a reason that remains.
func isRefusal(err error) bool {
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

// ended says whether a read has come to its end.
func ended(err error) bool {
	known, is := errors.AsType[*esdb.Error](err)
	return errors.Is(err, io.EOF) || is && known.Code() == esdb.ErrorCodeResourceNotFound
}

// errRefused tells that the server does not let us, or does not know what we ask for.
var errRefused = errors.New("the event log's server refuses")

// unreachable is what callers are told of a read that failed.
func unreachable(err error) error {
	if isRefusal(err) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if status.Code(err) == codes.DataLoss { // a gateway, whose log knows it
		return fmt.Errorf("%w: %w", eventstore.ErrTailLost, err)
	}
	if status.Code(err) == codes.DeadlineExceeded { // the caller's deadline, which gRPC may notice before its context does
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// text is an error's in one line.
func text(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
