// Package nats publishes to NATS JetStream.
//
// Messages are CloudEvents in binary mode (NATS protocol binding, 1.0.3-wip: attributes are headers, the body is the
// payload as it is). JetStream uses the same ids, so the server stores each message once within its duplicate window.
//
// Many messages are in flight, in order. Each names its predecessor as the last message that the server must have
// (Nats-Expected-Last-Msg-Id). If one is lost, the server refuses those after it.
package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
	// ackTimeout limits the wait for the acknowledgement of one message, publishTimeout that for all messages of one Publish.
	ackTimeout     = 5 * time.Second
	publishTimeout = 20 * time.Second

	connectTimeout = 5 * time.Second
	reconnectAfter = 500 * time.Millisecond

	// The client gives up a silent connection after two unanswered pings.
	pingInterval = 10 * time.Second

	// maxUnderWay is the maximum number of unacknowledged messages.
	maxUnderWay = 8192

	// duplicates is the duplicate window of a stream that we create. The server keeps the ids in memory that long.
	duplicates = 2 * time.Minute
)

// Error codes of JetStream about messages (nats-server, server/errors.json).
const (
	tooLarge       jetstream.ErrorCode = 10054 // for the stream
	headerTooLarge jetstream.ErrorCode = 10097
	wrongLast      jetstream.ErrorCode = 10070 // the predecessor is not the last message of the stream
)

// Publisher publishes to a JetStream stream. One goroutine uses it.
type Publisher struct {
	hosts   string
	options []client.Option
	stream  jetstream.StreamConfig // created if no stream has the subjects

	conn  *client.Conn // nil until the first Publish; reconnects by itself
	js    jetstream.JetStream
	found bool // the stream exists
}

var _ message.Publisher = (*Publisher)(nil)

// Open returns a publisher, which connects at its first Publish. The address is nats://user:password@host:port
// (tls:// insists on TLS, which a server can ask for too), with the options
//
//   - stream: the name of the stream, which is created if none has the subjects; BAHI by default
//   - replicas: the number of servers that keep that stream; 1 by default
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
			client.IgnoreAuthErrorAbort(), // an operator may restore the access
			client.Timeout(connectTimeout), client.PingInterval(pingInterval), client.MaxPingsOutstanding(2),
			client.ReconnectBufSize(-1), // buffered messages would overtake lost ones
			client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) {
				log.Warn("NATS reports an error", "error", err)
			}),
		},
		stream: jetstream.StreamConfig{
			Name: cmp.Or(a.Options.Get("stream"), "BAHI"), Description: "The events of Bahi, in the order of its log",
			Storage: jetstream.FileStorage, Replicas: replicas, Duplicates: duplicates,
		},
	}
	if a.Scheme == "tls" || a.TLS.RootCAs != nil {
		p.options = append(p.options, client.Secure(a.TLS))
	}
	if file := a.Options.Get("creds"); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("creds: %w", err)
		}
		p.options = append(p.options, client.UserCredentials(file))
	}
	if password, has := a.User.Password(); has {
		p.options = append(p.options, client.UserInfo(a.User.Username(), password))
	} else if a.User != nil {
		p.options = append(p.options, client.Token(a.User.Username()))
	}
	return p, nil
}

// connect opens a connection. An unavailable server is not an error.
func (p *Publisher) connect() (err error) {
	if p.conn, err = client.Connect(p.hosts, p.options...); err != nil {
		return fmt.Errorf("connect NATS: %w", err)
	}
	if p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncMaxPending(maxUnderWay),
		jetstream.WithPublishAsyncTimeout(ackTimeout)); err != nil {
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

// Publish implements message.Publisher. It returns when the server has stored all messages. Subjects begin with the topic:
// <topic>.<category>.<id> for the event stream <category>-<id>, which is the message's subject attribute.
//
// Publish fails with a [feed.Refused] that names a message that is too large. After any other error some messages may be stored.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(messages[0].Context(), publishTimeout)
	defer cancel()
	if p.conn == nil {
		if err := p.connect(); err != nil {
			return err
		}
	}
	if !p.conn.IsConnected() {
		return p.away()
	}
	if err := p.findStream(ctx, topic); err != nil {
		return err
	}
	for len(messages) > 0 {
		kept, err := p.send(ctx, topic, messages)
		if code(err) == wrongLast && kept > 0 {
			err = nil // another publisher uses the stream, or it already has the messages: send the next one without a condition
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

// verdict converts the error of a message. A permanent one becomes a [feed.Refused].
func (p *Publisher) verdict(m *message.Message, err error) error {
	switch {
	case errors.Is(err, client.ErrMaxPayload):
		most := p.conn.MaxPayload()
		p.conn.Close() // a server reports a raised limit only to new connections
		p.conn = nil
		return &feed.Refused{ID: m.UUID, Err: fmt.Errorf("NATS takes messages of %d bytes at most (max_payload): %w", most, err)}
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

// findStream finds the stream of the subjects, or creates it.
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
		return fmt.Errorf("find or create the stream of %s: %w", all, err)
	}
	p.found = true
	return nil
}

// send sends messages and returns the number of leading messages that are stored. Each message but the first has the condition that its
// predecessor is the last stored message.
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

// envelope returns the message as a NATS message. before is the id of its predecessor, or "".
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

// subject returns the NATS subject of an event stream. Bytes with a meaning for NATS, and those outside ASCII, are
// percent-encoded. A stream without an id gets an underscore in its place.
func subject(topic, stream string) string {
	category, id := event.SplitStream(stream)
	return topic + "." + cmp.Or(percent(category, inSubject), "_") + "." + cmp.Or(percent(id, inSubject), "_")
}

func inSubject(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// inHeader reports whether a header can contain the byte unescaped (NATS protocol binding, 3.1.3.2).
func inHeader(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }

// percent encodes all bytes but the plain ones as % and two digits.
func percent(text string, plain func(byte) bool) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; plain(c) {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
