// Package nats publishes to NATS JetStream.
//
// Messages are CloudEvents in binary mode (NATS protocol binding, 1.0.3-wip: attributes are headers, the body is the
// payload as it is). Their ids are JetStream's, so the server keeps each once within its duplicate window.
//
// Many are under way at once, and order is kept all the same: each names the one before it as the last that the
// server must have (Nats-Expected-Last-Msg-Id). If one is lost, those behind it are refused, not stored in its place.
package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bahi/domain/event"
	"bahi/providers/feed"
)

const (
	// ackWithin is how long the server may take to keep a message, and publishWithin to keep all that are given at once.
	ackWithin     = 5 * time.Second
	publishWithin = 20 * time.Second

	connectWithin  = 5 * time.Second
	reconnectAfter = 500 * time.Millisecond

	// A connection that is dead without saying so is given up after two unanswered pings.
	pingEvery = 10 * time.Second

	// mostUnderWay is how many messages may wait for their acknowledgement; no more are published at once.
	mostUnderWay = 8192

	// duplicates is for how long a stream that we make knows ids. An id takes the server's memory for as long.
	duplicates = 2 * time.Minute
)

// What JetStream says of messages (nats-server, server/errors.json).
const (
	tooLarge       jetstream.ErrorCode = 10054 // for the stream
	headerTooLarge jetstream.ErrorCode = 10097
	wrongLast      jetstream.ErrorCode = 10070 // the one before is not the last of the stream
)

// Publisher publishes to a JetStream stream. It is for one goroutine.
type Publisher struct {
	hosts   string
	options []client.Option
	stream  jetstream.StreamConfig // that is made if nobody has made one for the subjects

	conn  *client.Conn // nil: the first Publish makes one, which connects again and again
	js    jetstream.JetStream
	found bool // there is a stream
}

var _ message.Publisher = (*Publisher)(nil)

// Open makes a publisher, which connects when it has something to publish. The address is nats://user:password@host:port
// (tls:// insists on TLS, which a server can ask for too), with the options
//
//   - stream: the name of the stream that is made where none has the subjects; BAHI without it
//   - replicas: how many servers keep that stream; 1 without it
//   - creds: a file with the credentials of a user (JWT and seed)
//   - ca: a file with the authorities of the server's certificate, in PEM
func Open(address string, log *slog.Logger) (*Publisher, error) {
	a, err := feed.ParseAddress(address, "stream", "replicas", "creds", "ca")
	if err != nil {
		return nil, err
	}
	replicas, err := strconv.Atoi(cmp.Or(a.Options.Get("replicas"), "1"))
	if err != nil {
		return nil, errors.New("replicas: expected a number")
	}
	p := &Publisher{
		hosts: strings.Join(a.Hosts, ","),
		options: []client.Option{
			client.Name("bahi feed"), client.MaxReconnects(-1), client.RetryOnFailedConnect(true), client.ReconnectWait(reconnectAfter),
			client.Timeout(connectWithin), client.PingInterval(pingEvery), client.MaxPingsOutstanding(2),
			client.ReconnectBufSize(-1), // what waits there would overtake what was lost
			client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) { log.Warn("NATS complains", "error", err) }),
		},
		stream: jetstream.StreamConfig{
			Name: cmp.Or(a.Options.Get("stream"), "BAHI"), Description: "The events of Bahi, in the order of its log",
			Storage: jetstream.FileStorage, Replicas: replicas, Duplicates: duplicates,
		},
	}
	roots, err := feed.Roots(a.Options.Get("ca"))
	if err != nil {
		return nil, err
	}
	if a.Scheme == "tls" || roots != nil {
		p.options = append(p.options, client.Secure(feed.TLS(roots)))
	}
	if file := a.Options.Get("creds"); file != "" {
		p.options = append(p.options, client.UserCredentials(file))
	}
	if password, has := a.User.Password(); has {
		p.options = append(p.options, client.UserInfo(a.User.Username(), password))
	} else if a.User != nil {
		p.options = append(p.options, client.Token(a.User.Username()))
	}
	return p, nil
}

// connect makes a connection, which it is no error for the server not to take yet.
func (p *Publisher) connect() (err error) {
	if p.conn, err = client.Connect(p.hosts, p.options...); err != nil {
		return fmt.Errorf("connect NATS: %w", err)
	}
	if p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncMaxPending(mostUnderWay), jetstream.WithPublishAsyncTimeout(ackWithin)); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	return nil
}

// Close implements message.Publisher.
func (p *Publisher) Close() error {
	if p.conn != nil {
		p.conn.Close()
	}
	return nil
}

// Publish implements message.Publisher: it answers when the server keeps all of them. The topic is what subjects begin
// with: <topic>.<category>.<id> for the event stream <category>-<id> that is the message's subject attribute.
//
// A [feed.Refused] says which message is too large. After any other error some of the messages may be kept.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(messages[0].Context(), publishWithin)
	defer cancel()
	if p.conn == nil {
		if err := p.connect(); err != nil {
			return err
		}
	}
	if !p.conn.IsConnected() {
		defer p.renew()
		return p.away()
	}
	if err := p.findStream(ctx, topic); err != nil {
		return err
	}
	for len(messages) > 0 {
		kept, err := p.send(ctx, topic, messages)
		if code(err) == wrongLast && kept > 0 {
			err = nil // somebody else uses the stream, or they were kept before: the next goes without a condition
		}
		if err != nil {
			return p.verdict(messages[kept], err)
		}
		messages = messages[kept:]
	}
	return nil
}

func (p *Publisher) away() error {
	if err := p.conn.LastError(); err != nil {
		return fmt.Errorf("cannot reach NATS: %w", err)
	}
	return errors.New("cannot reach NATS")
}

// renew forgets a connection that has ended for good, as the client's does when it was turned away twice: the next Publish makes
// another one, with what the file of credentials has then.
func (p *Publisher) renew() {
	if p.conn.IsClosed() {
		p.conn, p.js = nil, nil
	}
}

// verdict says what an error about a message means.
func (p *Publisher) verdict(m *message.Message, err error) error {
	switch {
	case errors.Is(err, client.ErrMaxPayload):
		return &feed.Refused{ID: m.UUID, Err: fmt.Errorf("NATS takes messages of %d bytes at most (max_payload): %w", p.conn.MaxPayload(), err)}
	case code(err) == tooLarge, code(err) == headerTooLarge:
		return &feed.Refused{ID: m.UUID, Err: err}
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		p.found = false
		return fmt.Errorf("no stream has the subject of event %s: %w", m.UUID, err)
	default:
		return fmt.Errorf("publish event %s to NATS: %w", m.UUID, err)
	}
}

func code(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api != nil {
		return api.ErrorCode
	}
	return 0
}

// findStream makes the stream if nobody has made one for the subjects.
func (p *Publisher) findStream(ctx context.Context, topic string) error {
	if p.found {
		return nil
	}
	all := topic + ".>"
	_, err := p.js.StreamNameBySubject(ctx, all)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		p.stream.Subjects = []string{all}
		_, err = p.js.CreateStream(ctx, p.stream)
	}
	switch {
	case errors.Is(err, client.ErrNoResponders):
		return fmt.Errorf("the NATS server has no JetStream, or it is starting: %w", err)
	case err != nil:
		return fmt.Errorf("find or make the stream of %s: %w", all, err)
	}
	p.found = true
	return nil
}

// send sends messages, each but the first under the condition that the one before is the last that is kept, and answers
// how many are kept from the beginning on.
func (p *Publisher) send(ctx context.Context, topic string, messages []*message.Message) (kept int, err error) {
	acks := make([]jetstream.PubAckFuture, 0, len(messages))
	var unsent error
	for i, m := range messages {
		before := ""
		if i > 0 {
			before = messages[i-1].UUID
		}
		ack, err := p.js.PublishMsgAsync(envelope(topic, m, before), jetstream.WithRetryAttempts(0))
		if err != nil {
			unsent = err
			break
		}
		acks = append(acks, ack)
	}
	for i, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return i, err
		case <-ctx.Done():
			return i, ctx.Err()
		}
	}
	return len(acks), unsent
}

// envelope is a message as NATS carries it.
func envelope(topic string, m *message.Message, before string) *client.Msg {
	header := make(client.Header, len(m.Metadata)+3)
	for name, value := range m.Metadata {
		header["ce-"+name] = []string{percent(value, inHeader)}
	}
	// The binding has ce-datacontenttype; the Go SDK (2.16.2) reads this one.
	header["content-type"] = []string{m.Metadata["datacontenttype"]}
	header[jetstream.MsgIDHeader] = []string{m.UUID}
	if before != "" {
		header[jetstream.ExpectedLastMsgIDHeader] = []string{before}
	}
	return &client.Msg{Subject: subject(topic, m.Metadata["subject"]), Header: header, Data: m.Payload}
}

// subject is where the events of a stream go. Bytes with a meaning for NATS, and those that are no ASCII, are written
// as in URLs; a stream whose name has no id gets an underscore in its place.
func subject(topic, stream string) string {
	category, id := event.SplitStream(stream)
	return topic + "." + cmp.Or(percent(category, inSubject), "_") + "." + cmp.Or(percent(id, inSubject), "_")
}

func inSubject(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// inHeader says what stands for itself in a header (NATS protocol binding, 3.1.3.2).
func inHeader(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }

// percent writes bytes that do not stand for themselves as % and two digits.
func percent(text string, plain func(byte) bool) string {
	const digits = "0123456789ABCDEF"
	var out []byte // nil: all are plain so far
	for i := range len(text) {
		c := text[i]
		switch {
		case !plain(c) && out == nil:
			out = append(append(make([]byte, 0, len(text)+8), text[:i]...), '%', digits[c>>4], digits[c&15])
		case !plain(c):
			out = append(out, '%', digits[c>>4], digits[c&15])
		case out != nil:
			out = append(out, c)
		}
	}
	if out == nil {
		return text
	}
	return string(out)
}
