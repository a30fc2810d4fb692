package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Answer is a response. Its body is valid until the connection's next request.
type Answer struct {
	Status   int
	Header   http.Header
	Position uint64 // from Bahi-Position; 0 if missing
	Body     []byte
	At       time.Time
	Took     time.Duration
}

// Conn is a keep-alive connection of HTTP/1.1.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	body bytes.Buffer

	timeout time.Duration // timeout of a request
}

const readBuffer = 16 << 10

// AnswerIn is the timeout of a request.
const AnswerIn = 60 * time.Second

// Dial connects to a server.
func Dial(ctx context.Context, address string) (*Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return &Conn{conn: conn, in: bufio.NewReaderSize(conn, readBuffer), timeout: AnswerIn}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Request returns the bytes of a request, an unauthenticated one without a key. headers are further lines of its head.
func Request(method, path, key, body string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bahi-bench\r\nAccept: application/json\r\n", method, path)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// Do sends a request and reads the whole response.
func (c *Conn) Do(request []byte) (a Answer, err error) {
	began := time.Now()
	if err := c.conn.SetDeadline(began.Add(c.timeout)); err != nil {
		return a, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return a, fmt.Errorf("send a request: %w", err)
	}
	if err := c.read(&a); err != nil {
		return a, fmt.Errorf("read a response: %w", err)
	}
	a.At = time.Now()
	a.Took = a.At.Sub(began)
	return a, nil
}

func (c *Conn) read(a *Answer) error {
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(r.Body)
	a.Status, a.Header, a.Body = r.StatusCode, r.Header, c.body.Bytes()
	a.Position, _ = strconv.ParseUint(r.Header.Get("Bahi-Position"), 10, 64)
	return err
}

// ErrNotSent is the error of a request that was never sent, because the server cannot be reached.
var ErrNotSent = errors.New("cannot connect to the server")

// Send sends a request on a new connection.
func Send(ctx context.Context, address string, timeout time.Duration, request []byte) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := Dial(ctx, strings.TrimPrefix(address, "http://"))
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()                                               // the connection is discarded
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })() // a request in flight ends with ctx
	c.timeout = timeout
	return c.Do(request)
}

// Load is a number of clients that each send one request after another.
type Load struct {
	Address  string
	Others   []string // further servers, among which the clients are distributed
	Clients  int
	For      time.Duration
	Requests [][]byte                    // each client cycles through them from a different start
	Keyed    bool                        // each request gets an Idempotency-Key
	Odd      [][]byte                    // requests of every second client; nil: the same
	Each     int                         // weight of a request; 0: 1
	Answered func(client int, a Answer)  // may be nil
	After    func(context.Context) error // runs before the time is taken; may be nil
	Fresh    func() [][]byte             // creates the requests of a run, if they cannot be sent twice; may be nil
}

// Run puts the load on the server. It fails at the first response that is not a success.
func (l Load) Run(ctx context.Context) (Sample, error) {
	if l.Fresh != nil {
		l.Requests = l.Fresh()
	}
	conns := make([]*Conn, 0, l.Clients)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // the connection is discarded
		}
	}()
	addresses := append([]string{l.Address}, l.Others...)
	for i := range l.Clients {
		c, err := Dial(ctx, addresses[i%len(addresses)])
		if err != nil {
			return Sample{}, err
		}
		conns = append(conns, c)
	}
	// One thread suffices for sending; idle ones would take processors from the server.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var (
		running sync.WaitGroup
		took    = make([][]time.Duration, l.Clients)
		failed  = make([]error, l.Clients)
		began   = time.Now()
	)
	for i, c := range conns {
		running.Go(func() { took[i], failed[i] = l.client(ctx, i, c, began.Add(l.For)) })
	}
	running.Wait()
	if err := errors.Join(failed...); err != nil {
		return Sample{}, err
	}
	if l.After != nil {
		if err := l.After(ctx); err != nil {
			return Sample{}, err
		}
	}
	elapsed := time.Since(began)
	var all []time.Duration
	var odd []time.Duration
	for i, t := range took {
		if all = append(all, t...); i%2 == 1 && l.Odd != nil {
			odd = append(odd, t...)
		}
	}
	s := SampleOf(all, elapsed)
	s.OddP99 = P99Of(odd)
	s.Rate *= float64(max(l.Each, 1))
	return s, nil
}

// withKey returns a request with an Idempotency-Key.
func withKey(request []byte) []byte {
	line, rest, _ := bytes.Cut(request, []byte("\r\n"))
	return fmt.Appendf(nil, "%s\r\nIdempotency-Key: %s\r\n%s", line, uuid.New(), rest)
}

func (l Load) client(ctx context.Context, n int, c *Conn, until time.Time) (took []time.Duration, err error) {
	requests := l.Requests
	if n%2 == 1 && l.Odd != nil {
		requests = l.Odd
	}
	next := n * len(requests) / l.Clients
	for at := time.Now(); at.Before(until) && ctx.Err() == nil; next++ {
		request := requests[next%len(requests)]
		if l.Keyed {
			request = withKey(request)
		}
		a, err := c.Do(request)
		if err != nil {
			return took, err
		}
		if a.Status/100 != 2 {
			return took, fmt.Errorf("a request failed with status %d: %s", a.Status, a.Body)
		}
		took, at = append(took, a.Took), a.At
		if l.Answered != nil {
			l.Answered(n, a)
		}
	}
	return took, ctx.Err()
}
