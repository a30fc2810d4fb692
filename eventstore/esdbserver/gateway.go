// Package gateway serves the log over the EventStoreDB gRPC protocol, so that any EventStoreDB client can read and follow it.
//
// It uses the protobufs of EventStore-Client-Go v4 and any [eventstore.Store]. It implements the part of the protocol that a log has:
// Streams (Read, Append, BatchAppend), ServerFeatures and Gossip. The server's projections and persistent subscriptions do not exist, and
// clients are told so; Delete and Tombstone are refused, because the log is append-only. The log has no system streams and no links.
//
// A position is both the commit and the prepare position of the protocol. As in EventStoreDB, a read forwards begins at the event that it
// names, a read of $all backwards before it, and a subscription after it.
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
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"

	"bahi/domain/event"
	"bahi/eventstore"
)

// The reasons of [Config.Authenticate] to refuse a key.
var (
	ErrUnknownKey = errors.New("no such key")
	ErrNotAllowed = errors.New("this key is for something else")
)

// AuthFailures limits the wrong keys from an address.
type AuthFailures interface {
	// Refused counts a wrong key, and reports whether it was one too many.
	Refused(from netip.Addr) (tooMany bool)
}

// Config has the dependencies of a gateway.
type Config struct {
	Store eventstore.Store

	// Authenticate checks the password of a call, which is an API key. It returns nil, ErrUnknownKey, ErrNotAllowed, or why it could not check
	// the key.
	Authenticate func(ctx context.Context, key string) error

	// Guesses counts the wrong keys by address; nil counts nothing.
	Guesses AuthFailures

	// Writable permits appends.
	Writable bool

	// Check returns why an event must not be appended to a stream; the client gets the text. Nil checks nothing.
	Check func(stream string, e event.Proposed) error

	// TLS has the server's certificate. Clients send credentials only over TLS, so a gateway needs it.
	TLS *tls.Config

	Log *slog.Logger
}

// Server is a gateway. Create it with [New].
type Server struct {
	Config

	grpc *grpc.Server
	life context.Context //nolint:containedctx // the server's: subscriptions end with it
	end  context.CancelFunc
	slow time.Duration // a client that takes longer for a batch is told that it has fallen behind

	again      time.Duration // interval of the checks of a subscriber's key
	turnedAway chan struct{} // held by refused appends that are read to their end
}

const (
	// maxAppend and maxEvents limit the bytes and the events of one append, as every store does.
	maxAppend = eventstore.MaxAppend
	maxEvents = eventstore.MaxEvents

	// maxMessage limits a client's message. It is what official clients take themselves, so that they are told why a larger append is refused.
	maxMessage = 17 << 20

	// maxCalls limits the calls of a connection at the same time. Clients let further ones wait.
	maxCalls = 1000

	// maxHeaders limits the bytes of a call's metadata.
	maxHeaders = 64 << 10

	// handshakeTimeout limits the time of a connection's handshake.
	handshakeTimeout = 10 * time.Second

	// maxTurnedAway limits the refused appends that are read to their end, each of which takes up to maxMessage of memory: a client that is
	// still sending would not learn why it was refused. Others are refused at once.
	maxTurnedAway = 4

	// stopTimeout limits how long a stopping server waits for calls.
	stopTimeout = 3 * time.Second
)

// New creates a gateway.
func New(c Config) *Server {
	s := &Server{Config: c, slow: time.Second, again: 10 * time.Second, turnedAway: make(chan struct{}, maxTurnedAway)}
	s.life, s.end = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(joining{credentials.NewTLS(c.TLS)}),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.WaitForHandlers(true),
		// Clients ping every ten seconds, even if idle.
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
