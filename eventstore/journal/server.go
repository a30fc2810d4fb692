package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bahi/domain/event"
	"bahi/eventstore"
)

// maxReadBytes limits a read's memory; its last event may exceed it.
const maxReadBytes = 4 << 20

// server guards against flaws of the official client when no server responds (impl.go of v4.2.0, read and tested):
//
//   - While it looks for a server, calls ignore their contexts. So each runs in a goroutine that its caller can abandon.
//   - After MaxDiscoverAttempts it stops permanently, and later calls block. It keeps a connection to a server that does not respond, such
//     as a paused one, until two keepalives have failed: 20 s. So the client is replaced after a call without a response.
//   - It panics if it is closed during a call. So it is closed after its last call.
type server struct {
	config *esdb.Configuration

	mu     sync.Mutex
	client *client
	closed bool
}

// client is a client of the server and its calls in progress.
type client struct {
	*esdb.Client

	calls sync.WaitGroup
	ready atomic.Bool // it has found its server
}

// discoverAttempts limits how often a client looks for its server before it is replaced.
const discoverAttempts = 3

// Connect returns the server of a connection string, esdb://user:password@host:port?options, as EventStoreDB documents it.
func Connect(address string, log *slog.Logger) (Server, error) {
	config, err := parse(address)
	if err != nil {
		return nil, err
	}
	config.MaxDiscoverAttempts = discoverAttempts
	config.Logger = func(level esdb.LogLevel, format string, args ...any) {
		log.Debug("message of the journal's client", "level", level, "text", fmt.Sprintf(format, args...))
	}
	s := &server{config: config}
	if s.client, err = s.newClient(); err != nil {
		return nil, fmt.Errorf("EVENTSTORE_URL: %w", err)
	}
	return s, nil
}

// CheckAddress returns the error of a malformed connection string. It connects to nothing.
func CheckAddress(address string) error {
	_, err := parse(address)
	return err
}

// parse reads a connection string. The client's own error may quote the password.
func parse(address string) (*esdb.Configuration, error) {
	config, err := esdb.ParseConnectionString(address)
	if err == nil {
		return config, nil
	}
	u, failed := url.Parse(address)
	if failed == nil && strings.HasPrefix(u.Scheme, "esdb") && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		return nil, fmt.Errorf("EVENTSTORE_URL: %w", err)
	}
	return nil, errors.New("EVENTSTORE_URL is not a connection string: esdb://user:password@host:port?options")
}

func (s *server) newClient() (*client, error) {
	next, err := esdb.NewClient(s.config)
	return &client{Client: next}, err
}

// Close implements [Server].
func (s *server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.client.retire()
	}
}

// retire closes a client after its last call.
func (c *client) retire() {
	go func() {
		c.calls.Wait()
		_ = c.Close() // never fails
	}()
}

// take returns the client for a call. At the call's end, the caller must call calls.Done.
func (s *server) take() (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: the journal is closed", ErrNotSent)
	}
	s.client.calls.Add(1)
	return s.client, nil
}

// replace replaces a client, unless another call already has.
func (s *server) replace(was *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != was || s.closed {
		return
	}
	if next, err := s.newClient(); err == nil { // its configuration was accepted before
		s.client = next
		was.retire()
	}
}

// call makes a call as soon as the client has found its server. It returns when ctx ends, even if the call has not.
func call[T any](ctx context.Context, s *server, send func(*esdb.Client) (T, error)) (answer T, err error) {
	type result struct {
		answer T
		err    error
	}
	by, err := s.take()
	if err != nil {
		return answer, err
	}
	results := make(chan result, 1) // an abandoned call's goroutine can end
	var sent atomic.Bool
	go func() {
		defer by.calls.Done()
		if !by.ready.Load() {
			if _, err := by.GetServerVersion(); err != nil {
				results <- result{err: fmt.Errorf("%w: %w", ErrNotSent, err)}
				return
			}
			by.ready.Store(true)
		}
		sent.Store(true)
		answer, err := send(by.Client)
		results <- result{answer, err}
	}()
	select {
	case r := <-results:
		if isAway(r.err) {
			s.replace(by)
		}
		return r.answer, r.err
	case <-ctx.Done():
		s.replace(by)
		if err = context.Cause(ctx); !sent.Load() { // and it will not be sent: the context has ended
			err = fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		return answer, fmt.Errorf("the server does not respond: %w", err)
	}
}

// Append implements [Server].
func (s *server) Append(ctx context.Context, stream string, last int64, events []event.Proposed) error {
	options := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, RequiresLeader: true}
	if last >= 0 {
		options.ExpectedRevision = esdb.Revision(uint64(last))
	}
	proposed := make([]esdb.EventData, len(events))
	for i, e := range events {
		proposed[i] = esdb.EventData{EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: e.Meta}
	}
	_, err := call(ctx, s, func(c *esdb.Client) (*esdb.WriteResult, error) {
		return c.AppendToStream(ctx, stream, options, proposed...)
	})
	return asServer(err)
}

// Read implements [Server].
func (s *server) Read(ctx context.Context, stream string, from int64, count int) ([]event.Stored, error) {
	return s.read(ctx, stream, esdb.ReadStreamOptions{From: esdb.Revision(uint64(from))}, count)
}

// Last implements [Server].
func (s *server) Last(ctx context.Context, stream string) (e event.Stored, found bool, err error) {
	events, err := s.read(ctx, stream, esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil || len(events) == 0 {
		return e, false, err
	}
	return events[0], true, nil
}

func (s *server) read(ctx context.Context, stream string, options esdb.ReadStreamOptions, count int) ([]event.Stored, error) {
	options.RequiresLeader = true
	events, err := call(ctx, s, func(c *esdb.Client) (events []event.Stored, err error) {
		reading, err := c.ReadStream(ctx, stream, options, uint64(count))
		if err != nil {
			return nil, err
		}
		defer reading.Close()
		for bytes := 0; len(events) < count && bytes < maxReadBytes; {
			resolved, err := reading.Recv()
			if known, is := errors.AsType[*esdb.Error](err); errors.Is(err, io.EOF) || is && known.Code() == esdb.ErrorCodeResourceNotFound {
				break
			}
			if err != nil {
				return nil, err
			}
			e := resolved.OriginalEvent()
			events = append(events, event.Stored{
				Stream: e.StreamID, Revision: int64(e.EventNumber), ID: e.EventID, Type: e.EventType, Data: e.Data, Meta: e.UserMetadata,
			})
			bytes += len(e.Data) + len(e.UserMetadata)
		}
		return events, nil
	})
	return events, asServer(err)
}

// isAway reports whether a server is unreachable, so that the client must look for it again.
func isAway(err error) bool {
	known, is := errors.AsType[*esdb.Error](err)
	return errors.Is(err, ErrNotSent) || is && (known.Code() == esdb.ErrorUnavailable || known.Code() == esdb.ErrorCodeConnectionClosed) ||
		status.Code(err) == codes.Unavailable
}

// atMost matches the limit in the server's refusal of a large append.
var atMost = regexp.MustCompile(`(?:Maximum Append Size of|at most) (\d+)`)

// asServer converts an error of the client to one that [Server] documents.
func asServer(err error) error {
	known, is := errors.AsType[*esdb.Error](err)
	switch code := status.Code(err); {
	case err == nil, errors.Is(err, ErrNotSent):
		return err
	case is && known.Code() == esdb.ErrorCodeWrongExpectedVersion:
		return ErrMoved
	case is && known.Code() == esdb.ErrorCodeNotLeader: // the client knows the leader now
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	case code == codes.InvalidArgument:
		if m := atMost.FindStringSubmatch(err.Error()); m != nil {
			most, _ := strconv.ParseInt(m[1], 10, 64) // digits
			return &eventstore.TooLarge{Max: most}
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case code == codes.PermissionDenied, code == codes.Unauthenticated, code == codes.Unimplemented, code == codes.FailedPrecondition,
		is && known.Code() == esdb.ErrorCodeStreamDeleted:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	default:
		return err
	}
}
