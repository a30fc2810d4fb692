package api

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Content is a response that is sent while it is written, so it may be larger than memory. Write may run as long as the client reads. An
// error of Write before the first byte is sent becomes a normal refusal. After a later error the connection is closed, so that a partial
// response does not look complete.
type Content struct {
	Type   string // media type
	Name   string // name of the file; "": no file
	Inline bool   // a browser shows it, and saves it under the name
	// Unlisted forbids search engines to list it, and caches to store it: only the secret address protects it.
	Unlisted bool
	Drawn    bool // Write is expensive: it waits for its turn, but never for the client, see [BufferLimits]

	// Clients and proxies may cache the response for the time Kept. Then they send a conditional request, and Write is not called for an
	// unchanged response. All are zero for a response that must not be cached.
	ETag     ETag
	Modified time.Time
	Kept     time.Duration

	Write func(ctx context.Context, w io.Writer) error
}

// contentBuffer is the number of bytes that are written before any are sent.
const contentBuffer = 64 << 10

// Download registers an operation that responds with a [Content]. kinds has the possible media types, and for JSON a value of the type in
// the OpenAPI document.
func Download[I any](a *API, op Op, kinds map[string]any, handler func(ctx context.Context, in *I) (Content, error)) {
	op.Media = kinds
	registerSending(a, a.add(op, reflect.TypeFor[I]()), handler, (*call).download)
}

func (c *call) download(ctx context.Context, content Content) {
	// net/http treats an expired read deadline as a disconnect, so it is removed. A writer without a connection has no deadlines.
	_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &downloading{content: content, delivery: delivery{call: c, within: c.api.config.Whole.Pause, gone: cancel}}
	defer d.extend() //nolint:errcheck // for net/http's last bytes of the response
	if content.ETag != "" {
		h := c.Header()
		h["Etag"], h["Last-Modified"] = []string{string(content.ETag)}, []string{content.Modified.UTC().Format(http.TimeFormat)}
		h["Cache-Control"] = []string{fmt.Sprintf("public, max-age=%d", int64(content.Kept.Seconds()))}
		if content.unchanged(c.r.Header) {
			c.WriteHeader(http.StatusNotModified)
			c.send()
			return
		}
	}
	if content.Unlisted {
		h := c.Header()
		h["X-Robots-Tag"], h["Cache-Control"] = []string{"noindex"}, []string{"no-store"}
	}
	var err error
	if content.Drawn {
		err = d.drawn(ctx)
	} else {
		out := bufio.NewWriterSize(d, contentBuffer)
		if err = content.Write(ctx, out); err == nil {
			d.begin()
			err = out.Flush()
		}
	}
	switch {
	case err == nil:
	case !c.sent:
		c.refuse(err)
	default:
		if ctx.Err() == nil {
			c.cause = err
		}
		panic(http.ErrAbortHandler)
	}
}

// unchanged reports whether the client has the current content, by the conditions of its request (RFC 9110, 13.1).
func (content Content) unchanged(h http.Header) bool {
	if tags, given := h["If-None-Match"]; given {
		for tag := range strings.SplitSeq(strings.Join(tags, ","), ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == string(content.ETag) {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(h.Get("If-Modified-Since"))
	return err == nil && !content.Modified.Truncate(time.Second).After(since)
}

// drawn writes the content in its turn. It sends finished parts at intervals, and the rest at the end.
func (d *downloading) drawn(ctx context.Context) error {
	if d.call.head {
		d.begin()
		return nil
	}
	answer := d.call.spooling()
	early := d.early(answer)
	defer early() //nolint:errcheck // for a panic of Write
	err := InTurn(ctx, func() error { return d.content.Write(ctx, answer) })
	sent, failed := early()
	if err = cmp.Or(err, failed); err == nil {
		err = d.extend()
	}
	if err != nil {
		return err
	}
	d.begin()
	return answer.deliver(sent)
}

// sendInterval is the interval at which finished parts are sent.
const sendInterval = 50 * time.Millisecond

// early sends finished parts of a slow response while it is written. The returned function stops the sending, and returns the number of
// bytes sent.
func (d *downloading) early(answer *spool) (end func() (int64, error)) {
	var (
		sent        int64
		err         error
		made, ended = make(chan struct{}), make(chan struct{})
	)
	go func() {
		defer close(ended)
		for after := d.call.api.config.Whole.Hold; err == nil; after = sendInterval {
			select {
			case <-made:
				return
			case <-time.After(after):
			}
			if answer.ready.Load() > sent {
				d.begin()
				sent, err = answer.send(&d.delivery, sent)
			}
		}
	}()
	return sync.OnceValues(func() (int64, error) {
		close(made)
		<-ended
		return sent, err
	})
}

// downloading sends the written bytes to the client.
type downloading struct {
	delivery

	content Content
}

// begin sends the head.
func (d *downloading) begin() {
	if d.call.sent {
		return
	}
	h := d.call.Header()
	h["Content-Type"] = []string{d.content.Type}
	if d.content.Name != "" {
		disposition := "attachment"
		if d.content.Inline {
			disposition = "inline"
		}
		h["Content-Disposition"] = []string{mime.FormatMediaType(disposition, map[string]string{"filename": d.content.Name})}
	}
}

// Write sends text.
func (d *downloading) Write(text []byte) (int, error) {
	d.begin()
	if err := d.write(text); err != nil {
		return 0, err
	}
	return len(text), nil
}
