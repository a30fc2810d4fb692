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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
)

// BufferLimits limits the responses that are written without waiting for their clients: lists ([List]) and drawn documents ([Content]).
// They are in files while slow clients read them, and use neither memory nor the database.
type BufferLimits struct {
	AtOnce int           // maximum number of concurrent expensive responses, see [InTurn]; 0: 8
	Wait   time.Duration // maximum wait of a request for its turn; 0: 10 seconds
	Files  int64         // maximum bytes in files, a quarter of them for one response; 0: 4 GB
	Pause  time.Duration // maximum pause of a reading client; 0: 30 seconds
	Hold   time.Duration // time before parts of a document are sent, in which an error refuses the request; 0: half a second
}

var (
	errCrowded = fault.New(fault.Unavailable, "Too many long responses are being sent, try again")
	errTooMuch = fault.New(fault.Invalid, "The response is too long: request fewer days, or pages")
	errNoSpace = fault.New(fault.Unavailable, "The disk is full, try again later")
)

// complete fills in the defaults.
func (w BufferLimits) complete() BufferLimits {
	return BufferLimits{cmp.Or(w.AtOnce, 8), cmp.Or(w.Wait, 10*time.Second), cmp.Or(w.Files, 4<<30),
		cmp.Or(w.Pause, 30*time.Second), cmp.Or(w.Hold, 500*time.Millisecond)}
}

// spool is a response that does not wait for its client. The part that exceeds its buffer is in a file without a name, so no file ever
// remains.
type spool struct {
	call   *call
	buffer bytes.Buffer
	file   *os.File     // nil: the buffer has everything
	size   int64        // of the file
	ready  atomic.Int64 // number of bytes of the file that may be sent
	rested time.Time    // see giveWay
}

// spooling returns the call's empty response. The end of the call discards it.
func (c *call) spooling() *spool {
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
	if c.head {
		return nil
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
