// Package feedtest has what tests of brokers need: a real NATS server with JetStream in this process, and messages.
package feedtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cloudevents/sdk-go/protocol/nats_jetstream/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// NATS is a server that keeps its folder and its port across restarts.
type NATS struct {
	Address string // in the form in which an operator configures it

	t       testing.TB
	options server.Options
	server  *server.Server

	counting jetstream.JetStream // the connection of Count
}

// ports holds the ports of this process's servers.
var ports atomic.Int64

// Port returns a port below the range of ephemeral ports, so that no other process takes it while the server is stopped.
func Port(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20_000 + (os.Getpid()*16+int(ports.Add(1)))%10_000
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return 0
}

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, configure ...func(*server.Options)) *NATS {
	t.Helper()
	n := &NATS{t: t, options: server.Options{
		Host: "127.0.0.1", Port: Port(t), JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	for _, change := range configure {
		change(&n.options)
	}
	n.Start()
	n.Address = "nats://" + n.server.Addr().String()
	t.Cleanup(n.Stop)
	return n
}

// JetStream returns a reader's connection.
func (n *NATS) JetStream() jetstream.JetStream {
	n.t.Helper()
	conn, err := client.Connect(n.Address, client.MaxReconnects(-1), client.ReconnectWait(20*time.Millisecond))
	require.NoError(n.t, err)
	n.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(n.t, err)
	return js
}

// Start starts the stopped server again.
func (n *NATS) Start() {
	n.t.Helper()
	options := n.options // a server keeps and changes them
	var err error
	n.server, err = server.NewServer(&options)
	require.NoError(n.t, err)
	n.server.Start()
	require.True(n.t, n.server.ReadyForConnections(time.Minute))
}

// Configure changes the configuration for the next start.
func (n *NATS) Configure(change func(*server.Options)) { change(&n.options) }

// Reload changes the configuration of the running server, which keeps its connections.
func (n *NATS) Reload(change func(*server.Options)) {
	n.t.Helper()
	n.Configure(change)
	options := n.options
	require.NoError(n.t, n.server.ReloadOptions(&options))
}

// Stop stops the server and breaks all connections.
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// Messages returns the messages of a stream, oldest first, once there are count of them.
func (n *NATS) Messages(stream string, count int) []jetstream.Msg {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	js := n.JetStream()
	for {
		s, err := js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().State.Msgs >= uint64(count) {
			return n.all(ctx, s)
		}
		select {
		case <-ctx.Done():
			require.Fail(n.t, "the messages did not arrive", "%d messages in stream %s: %v", count, stream, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Count returns the number of messages in a stream, 0 without a stream or a server.
func (n *NATS) Count(stream string) int {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 10*time.Second)
	defer cancel()
	if n.counting == nil {
		n.counting = n.JetStream()
	}
	s, err := n.counting.Stream(ctx, stream)
	if err != nil {
		return 0
	}
	return int(s.CachedInfo().State.Msgs)
}

func (n *NATS) all(ctx context.Context, s jetstream.Stream) []jetstream.Msg {
	n.t.Helper()
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	require.NoError(n.t, err)
	var all []jetstream.Msg
	for there := int(s.CachedInfo().State.Msgs); len(all) < there; {
		batch, err := consumer.Fetch(there-len(all), jetstream.FetchContext(ctx))
		require.NoError(n.t, err)
		for m := range batch.Messages() {
			all = append(all, m)
		}
		require.NoError(n.t, batch.Error())
	}
	return all
}

// Event parses a message with the Go SDK of CloudEvents.
func Event(t testing.TB, m jetstream.Msg) *cloudevents.Event {
	t.Helper()
	e, err := binding.ToEvent(t.Context(), nats_jetstream.NewMessage(&client.Msg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()}))
	require.NoError(t, err)
	require.NoError(t, e.Validate())
	return e
}

// Message returns a message about an event of a stream.
func Message(t testing.TB, stream, payload string) *message.Message {
	t.Helper()
	m := message.NewMessage(uuid.NewString(), []byte(payload))
	m.Metadata = message.Metadata{
		"specversion": "1.0", "id": m.UUID, "source": "urn:uuid:0195e8a0-7c1e-7000-8000-0000000000aa", "type": "BankRowAdded", "subject": stream,
		"time": "2026-11-21T21:00:00.000001Z", "datacontenttype": "application/json", "sequence": "00000000000000000007",
	}
	m.SetContext(t.Context())
	return m
}

// Messages returns messages of three streams.
func Messages(t testing.TB, n int) []*message.Message {
	t.Helper()
	all := make([]*message.Message, n)
	for i := range all {
		all[i] = Message(t, fmt.Sprintf("bank-%d", i%3), fmt.Sprintf(`{"n":%d}`, i))
	}
	return all
}
