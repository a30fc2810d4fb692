package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
)

// BufferLimits limits the responses that are written without waiting for their clients: lists ([List]) and drawn documents ([Content]).
// They are in files while slow clients read them, and use neither memory nor the database.
type BufferLimits struct {
	MaxConcurrent int           // maximum number of concurrent expensive responses, see [InTurn]; 0: 8
	Wait          time.Duration // maximum wait of a request for its turn; 0: 10 seconds
	Files         int64         // maximum bytes in files, a quarter of them for one response; 0: 4 GB
	Pause         time.Duration // maximum pause of a reading client; 0: 30 seconds
	Hold          time.Duration // time until the first parts of a document are sent: an earlier error refuses the request; 0: half a second
}

var (
	errCrowded = fault.New(fault.Unavailable, "Too many long responses are being sent, try again")
	errTooMuch = fault.New(fault.Invalid, "The response is too long: request fewer days, or pages")
	errNoSpace = fault.New(fault.Unavailable, "The disk is full, try again later")
)

// complete fills in the defaults.
func (w BufferLimits) complete() BufferLimits {
	return BufferLimits{cmp.Or(w.MaxConcurrent, 8), cmp.Or(w.Wait, 10*time.Second), cmp.Or(w.Files, 4<<30),
		cmp.Or(w.Pause, 30*time.Second), cmp.Or(w.Hold, 500*time.Millisecond)}
}

// spool is a response that does not wait for its client. The part that exceeds its buffer is in a file without a name, so no file ever
// remains.
type spool struct {
	call   *call
	buffer bytes.Buffer
	file   *os.File     // nil: the buffer has everything
	size   int64        // size of the file
	ready  atomic.Int64 // number of bytes of the file that may be sent
	rested time.Time    // see giveWay
}

// spooling returns the call's empty response, and discards an earlier one. The end of the call discards it.
func (c *call) spooling() *spool {
	c.discard()
	c.answering = &spool{call: c, rested: time.Now()}
	return c.answering
}

// Write adds text to the response.
func (s *spool) Write(text []byte) (int, error) {
	n, _ := s.buffer.Write(text)
	return n, s.spill()
}

// spill moves a full buffer to the file.
func (s *spool) spill() (err error) {
	if err := s.giveWay(); err != nil {
		return err
	}
	a, n := s.call.api, int64(s.buffer.Len())
	switch {
	case n < contentBuffer:
		return nil
	case s.size+n > a.config.Whole.Files/4:
		return errTooMuch
	case !a.files.TryAcquire(n):
		return errCrowded
	}
	s.size += n
	if s.file == nil {
		s.file, err = a.temporary()
	}
	if err == nil {
		_, err = s.buffer.WriteTo(s.file)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return errNoSpace
	}
	if err == nil {
		s.ready.Store(s.size)
	}
	return err
}

// deliver sends the response from an offset on, as fast as the client reads.
func (s *spool) deliver(from int64) error {
	c := s.call
	if s.file == nil {
		_, err := c.Write(s.buffer.Bytes())
		return err
	}
	to := delivery{call: c, within: c.api.config.Whole.Pause, gone: func() {}}
	defer to.extend() //nolint:errcheck // for net/http's last bytes of the response
	if _, err := s.send(&to, from); err != nil {
		return err
	}
	return to.write(s.buffer.Bytes())
}

// send sends the finished bytes of the file, and returns the new offset.
func (s *spool) send(to *delivery, from int64) (at int64, err error) {
	chunk := make([]byte, contentBuffer)
	for at = from; at < s.ready.Load(); {
		n, err := s.file.ReadAt(chunk[:min(contentBuffer, s.ready.Load()-at)], at)
		if err == nil {
			err = to.write(chunk[:n])
		}
		if err != nil {
			return at, err
		}
		at += int64(n)
	}
	return at, nil
}

// temporary creates a file without a name.
func (a *API) temporary() (*os.File, error) {
	f, err := os.CreateTemp(a.config.Spool, "bahi-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// List is a body: a JSON array of any length, encoded item by item.
type List[T any] struct{ *listing }

type listing struct {
	*spool

	encoder *json.Encoder
	items   int
}

// NewList returns an empty list as the response to the request of ctx.
func NewList[T any](ctx context.Context) List[T] {
	s := callOf(ctx).spooling()
	return List[T]{&listing{spool: s, encoder: encoderOf(&s.buffer)}}
}

// Add adds an item.
func (l List[T]) Add(item T) error {
	l.buffer.WriteByte("[,"[min(l.items, 1)])
	encode(l.encoder, item)
	l.buffer.Truncate(l.buffer.Len() - 1) // the encoder adds a line break
	l.items++
	return l.spill()
}

// Schema implements huma's SchemaProvider.
func (List[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[[]T](), true, "")
}

// send sends the list. If that fails in the middle, the connection is closed.
func (l *listing) send() {
	if l.items == 0 {
		l.buffer.WriteByte('[')
	}
	l.buffer.WriteString("]\n")
	if l.deliver(0) != nil && l.file != nil {
		panic(http.ErrAbortHandler)
	}
}

const (
	turnsOfCaller = 2  // concurrent expensive responses of a caller
	maxWaiting    = 64 // requests of a caller that wait for their turn
)

var errBusy = fault.New(fault.Unavailable, "Too many expensive requests at once, try again")

// turns limits the concurrent expensive responses: [turnsOfCaller] per caller, and a quarter of all per workspace. A request first waits
// for its caller's turn, then for a general one. So many requests of a caller delay only this caller.
type turns struct {
	parts // shares of callers, and of workspaces

	all       *semaphore.Weighted
	workspace int // maximum of a workspace
}

func newTurns(all int) *turns {
	return &turns{all: semaphore.NewWeighted(int64(all)), workspace: max(1, all/4)}
}

// parts counts the turns in use and the waiting requests by name.
type parts struct {
	mu sync.Mutex
	of map[string]*part
}

type part struct {
	*semaphore.Weighted

	users int
}

// enter returns the turns of a name. It limits the name's turns in use, and the number of its requests that use a turn or wait for one.
func (s *parts) enter(name string, most int) (own *part, users int, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*part{}
	}
	if s.of[name] == nil {
		s.of[name] = &part{Weighted: semaphore.NewWeighted(int64(most))}
	}
	own = s.of[name]
	own.users++
	return own, own.users, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.of, name)
		}
	}
}

// take waits for a turn. After an error, the caller has no turn.
func (t *turns) take(ctx context.Context, caller, workspace string, patience time.Duration) (done func(), err error) {
	own, users, leave := t.enter(caller, turnsOfCaller)
	shared, _, leaveShared := t.enter(workspace, t.workspace)
	if users > turnsOfCaller+maxWaiting {
		patience = 0
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ends := []func(){leave, leaveShared}
	done = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	for _, s := range []*semaphore.Weighted{own.Weighted, shared.Weighted, t.all} {
		if s.Acquire(waiting, 1) != nil {
			done()
			return nil, cmp.Or(ctx.Err(), error(errBusy))
		}
		ends = append(ends, func() { s.Release(1) })
	}
	return done, nil
}

// InTurn runs an expensive response, or a part of one, in its caller's turn. It refuses a request after a too long wait. [Op.Expensive]
// does the same for a whole handler. Do not nest calls: the inner call would wait for the outer one.
func InTurn(ctx context.Context, work func() error) error {
	c := callOf(ctx)
	if c.api == nil {
		return work()
	}
	c.expensive = true
	caller, workspace := c.request.Actor.ID, "workspace "+c.request.Workspace.String()
	if caller == "" {
		caller = "address " + clientAddress(c.r, c.api.config.Limiting.Proxies).String()
	}
	if c.request.Workspace == uuid.Nil {
		workspace = "of " + caller
	}
	done, err := c.api.turns.take(ctx, caller, workspace, c.api.config.Whole.Wait)
	if err != nil {
		return err
	}
	defer done()
	return work()
}

const (
	stretch = time.Millisecond // time after which an expensive response pauses
	lately  = 100 * time.Millisecond
)

// giveWay pauses an expensive response while other requests are served. The pause is as long as the time since the last pause, and ends
// with the request. Without pauses, all processors may be in use: Go then checks for new requests only every 10 ms, and Postgres's
// processes wait for each other.
func (s *spool) giveWay() error {
	now, ctx := time.Now(), s.call.r.Context()
	if now.Sub(s.rested) < stretch {
		return nil
	}
	if now.UnixNano()-s.call.api.served.Load() < int64(lately) {
		select {
		case <-time.After(min(now.Sub(s.rested), 5*stretch)):
		case <-ctx.Done():
		}
		now = time.Now()
	}
	s.rested = now
	return ctx.Err()
}
