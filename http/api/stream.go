package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
)

const (
	streamType = "text/event-stream"

	// deliverTimeout is the timeout for sending one event. A slower client is considered to have stopped reading.
	deliverTimeout = 5 * time.Second

	// recheckTries is the number of failed checks in a row, of a caller's permissions, that end a stream. The end of a session takes
	// effect up to [credentials.Fresh] later. So a stream ends within 10 s after the permission.
	recheckTries = 3
)

// Event is an event of a stream of server-sent events (HTML Living Standard, section 9.2). The type of its data determines its name.
type Event struct {
	ID   string // a reconnecting client sends it as Last-Event-ID; "": none; no line breaks
	Data any    // sent as JSON

	// Encoded has events encoded by [EncodeEvent], one or several in each text, so that events for many clients are encoded once. They are
	// sent together instead of the other fields.
	Encoded [][]byte
}

// EncodeEvent returns an event in the form of a stream. name is the stream's name of the data's type. The data is one line of JSON.
func EncodeEvent(name, id string, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	var out bytes.Buffer
	if id != "" {
		fmt.Fprintf(&out, "id: %s\n", id)
	}
	fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", name, text)
	return out.Bytes(), nil
}

// Source sends events until there are no more, or until ctx ends because the client has disconnected or the server stops. After an error of
// send, the client has disconnected, and the source must return. Any other error ends the stream and is logged. The client only detects the
// end of the stream.
type Source func(ctx context.Context, send func(Event) error) error

// Stream registers an operation that sends server-sent events. kinds has the names of the events and, for each, a value of the data's type.
// The handler has the usual timeout to check the request, and refuses it in the usual way. Its Source may take any time. The stream ends
// soon after its caller's permissions change. After reconnecting, a client gets the events that the new permissions allow.
//
// Huma's package for streams is not used: its operations skip this package's steps and problems, send no heartbeats, and continue after the
// client has disconnected.
func Stream[I any](a *API, op Op, kinds map[string]any, handler func(ctx context.Context, in *I) (Source, error)) {
	op.Events = kinds
	o := a.add(op, reflect.TypeFor[I]())
	names := map[reflect.Type]string{}
	for name, data := range kinds {
		names[reflect.TypeOf(data)] = name
	}
	registerSending(a, o, handler, func(c *call, ctx context.Context, source Source) {
		still := c.recheck
		if c.op.Public {
			still = c.op.StillAllowed
		}
		c.stream(ctx, names, still, source)
	})
}

// registerSending registers an operation that sends the response after its handler has returned.
func registerSending[I, T any](a *API, o *operation, handler func(context.Context, *I) (T, error), send func(*call, context.Context, T)) {
	register(a, o, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		answer, err := handler(ctx, in)
		c := callOf(ctx)
		return &huma.StreamResponse{Body: func(huma.Context) { send(c, c.withRequest(c.ctx), answer) }}, err
	})
}

// EndStreams ends the running streams at once, and each later one at its start. At a shutdown, streams would only delay the other requests.
func (a *API) EndStreams() { a.end() }

// publicStreams is the factor by which an address may have more streams than a caller, because many visitors may share the address of a
// network provider.
const publicStreams = 10

// stream sends the source's events to the client. still returns an error if the client may no longer receive them; nil: no check.
func (c *call) stream(ctx context.Context, names map[reflect.Type]string, still func(context.Context) error, source Source) {
	h := c.Header()
	if !c.head {
		who, most := c.request.Actor.String(), c.api.config.Streams
		if c.request.Actor.Type == "" {
			who, most = "address "+counted(c.peer()).String(), most*publicStreams
		}
		own, _, leave := c.api.streams.enter(who, most)
		defer leave()
		if !own.TryAcquire(1) {
			h.Set("Retry-After", "1")
			c.refuse(&Problem{Detail: "Too many event streams at once", Code: "too_many_streams", Status: http.StatusTooManyRequests})
			return
		}
		defer own.Release(1)
	}
	h.Set("Content-Type", streamType)
	h.Set("X-Accel-Buffering", "no") // nginx must not buffer
	if c.head {
		return
	}
	// net/http treats an expired read deadline as a disconnect, so it is removed.
	if err := http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Time{}); err != nil {
		c.refuse(fmt.Errorf("stream without an end: %w", err))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	to := delivery{call: c, within: deliverTimeout, gone: cancel}
	defer context.AfterFunc(c.api.ending, cancel)()
	defer to.extend()      //nolint:errcheck // for net/http's last bytes of the response
	if to.write() != nil { // sends the head
		cancel()
		return
	}
	var pulse sync.WaitGroup
	pulse.Go(func() { to.pulse(ctx, still) })
	defer pulse.Wait()
	defer cancel()
	err := source(ctx, func(e Event) error { return to.send(names, e) })
	if ctx.Err() == nil {
		c.cause = err
	}
}

// pulse sends heartbeats, and checks whether the client may still receive the stream, until one of these fails.
func (d *delivery) pulse(ctx context.Context, still func(context.Context) error) {
	defer d.gone()
	every := d.call.api.config.Recheck
	beat, check := time.NewTicker(d.call.api.config.Heartbeat), time.NewTicker(every)
	defer beat.Stop()
	defer check.Stop()
	if still == nil {
		check.Stop()
	}
	for tries := 0; tries < recheckTries; { // a failed check is repeated
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if d.write([]byte(":\n\n")) != nil { // a comment
				return
			}
		case <-check.C:
			checking, cancel := context.WithTimeout(ctx, every)
			err := still(checking)
			cancel()
			f, known := errors.AsType[*fault.Error](err)
			switch {
			case err == nil:
				tries = 0
			case known && f.Kind != fault.Unavailable:
				return
			default:
				tries++
			}
		}
	}
}

var errChanged = fault.New(fault.Forbidden, "Permissions changed")

// recheck authenticates the request again. It returns an error if the caller may no longer use the operation.
func (c *call) recheck(ctx context.Context) error {
	again := &call{api: c.api, op: c.op, r: c.r, ctx: ctx, again: true}
	for _, step := range []func(*call) error{(*call).authenticate, (*call).enter, (*call).permit} {
		if err := step(again); err != nil {
			return err
		}
	}
	if again.request.Actor != c.request.Actor {
		return errChanged
	}
	return nil
}

// delivery writes to the client for the source and for the heartbeats.
type delivery struct {
	mu     sync.Mutex
	call   *call
	within time.Duration // timeout of each write
	gone   context.CancelFunc
}

// send writes an event.
func (d *delivery) send(names map[reflect.Type]string, e Event) error {
	if e.Encoded != nil {
		return d.write(e.Encoded...)
	}
	name, known := names[reflect.TypeOf(e.Data)]
	if !known {
		panic(fmt.Sprintf("%s sends a %T, which the document lacks", d.call.op.ID, e.Data))
	}
	text, err := EncodeEvent(name, e.ID, e.Data)
	if err != nil {
		return err
	}
	return d.write(text)
}

// write sends the texts together. If that fails, the client has disconnected and the stream has ended.
func (d *delivery) write(texts ...[]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.extend()
	for _, text := range texts {
		if err == nil {
			_, err = d.call.Write(text)
		}
	}
	if err == nil {
		err = d.call.FlushError()
	}
	if err != nil {
		d.gone()
	}
	return err
}

// extend renews the write deadline. A writer without a connection has no deadline.
func (d *delivery) extend() error {
	err := http.NewResponseController(d.call.ResponseWriter).SetWriteDeadline(time.Now().Add(d.within))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
