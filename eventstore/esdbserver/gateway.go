// Package esdbserver serves the log over the EventStoreDB gRPC protocol, so that any EventStoreDB client can read and follow it.
//
// It uses the protobufs of EventStore-Client-Go v4 and any [eventstore.Store]. It implements Streams (Read, Append, BatchAppend),
// ServerFeatures and Gossip. It refuses projections and persistent subscriptions as unsupported, and Delete and Tombstone because the log
// is append-only. The log has no system streams and no links.
//
// A position is both the commit and the prepare position of the protocol. As in EventStoreDB, a read forwards includes the position it
// names. A read of $all backwards starts before it, and a subscription after it.
package esdbserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Reasons why [Config.Authenticate] refuses a key.
var (
	ErrUnknownKey = errors.New("no such key")
	ErrNotAllowed = errors.New("the key lacks the permission")
)

// AuthFailures limits the wrong keys from an address.
type AuthFailures interface {
	// Refused counts a wrong key, and reports whether the address has exceeded its limit.
	Refused(from netip.Addr) (tooMany bool)
}

// Config has the dependencies of a gateway.
type Config struct {
	Store eventstore.Store

	// Authenticate checks the password of a call, which is an API key. It returns nil, ErrUnknownKey, ErrNotAllowed, or the error that
	// prevented the check.
	Authenticate func(ctx context.Context, key string) error

	// Guesses counts the wrong keys by address; nil counts nothing.
	Guesses AuthFailures

	// Writable permits appends.
	Writable bool

	// Check returns an error, for the client, if an event must not be appended to a stream. A nil Check allows all.
	Check func(stream string, e event.Proposed) error

	// TLS has the server's certificate. Clients send credentials only over TLS, so a gateway requires it.
	TLS *tls.Config

	Log *slog.Logger
}

// Server is a gateway. Create it with [New].
type Server struct {
	Config

	grpc *grpc.Server
	life context.Context //nolint:containedctx // the server's: subscriptions end with it
	end  context.CancelFunc
	slow time.Duration // a client whose batch takes longer has fallen behind

	again      time.Duration // interval of the checks of a subscriber's key
	turnedAway chan struct{} // number of refused appends that may be read to their end
}

const (
	// maxAppend and maxEvents limit the bytes and the events of one append. They are the store's limits.
	maxAppend = eventstore.MaxAppend
	maxEvents = eventstore.MaxEvents

	// maxMessage limits a client's message, in bytes, like official clients do. So a larger append gets a response with the reason.
	maxMessage = 17 << 20

	// maxCalls limits the concurrent calls of a connection. Clients queue further ones.
	maxCalls = 1000

	// maxHeaders limits the bytes of a call's metadata.
	maxHeaders = 64 << 10

	// handshakeTimeout limits the time of a connection's handshake.
	handshakeTimeout = 10 * time.Second

	// maxTurnedAway limits the refused appends that are read to their end, each of which holds up to maxMessage. A client that is still
	// sending would not receive the reason. Beyond the limit, appends are refused at once.
	maxTurnedAway = 4

	// stopTimeout limits how long a stopping server waits for calls.
	stopTimeout = 3 * time.Second
)

// New creates a gateway.
func New(c Config) *Server {
	s := &Server{Config: c, slow: time.Second, again: 10 * time.Second, turnedAway: make(chan struct{}, maxTurnedAway)}
	s.life, s.end = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(limiting{credentials.NewTLS(c.TLS)}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.WaitForHandlers(true),
		// Clients ping every ten seconds, even idle ones.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
	)
	streams.RegisterStreamsServer(s.grpc, &streamsService{Server: s})
	serverfeatures.RegisterServerFeaturesServer(s.grpc, featuresService{})
	gossip.RegisterGossipServer(s.grpc, gossipService{})
	return s
}

// Serve serves clients at the listener until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(listener) }()
	select {
	case err := <-served:
		s.end()
		return err
	case <-ctx.Done():
	}
	s.end()
	late := time.AfterFunc(stopTimeout, s.grpc.Stop)
	defer late.Stop()
	s.grpc.GracefulStop()
	return <-served
}
