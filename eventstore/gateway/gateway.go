// Package gateway serves the log over the EventStoreDB gRPC protocol, so that any EventStoreDB client, in whatever
// language, can read and follow it.
//
// It speaks the protobufs that EventStore-Client-Go v4 ships, and is on any [eventstore.Store]. Of the protocol it has
// what a log has: Streams (Read, Append, BatchAppend), ServerFeatures and Gossip. Projections and persistent subscriptions
// of the server are not there, and clients are told so; Delete and Tombstone are refused, since the log is append-only.
// The log has no system streams and no links.
//
// A position of ours is both the commit and the prepare position of the protocol. As in EventStoreDB, a read forwards
// begins at the event that it names, a read of $all backwards before it, and a subscription after it.
package gateway

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
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"

	"bahi/domain/event"
	"bahi/eventstore"
)

// What [Config.Authenticate] says of a key that is not let in.
var (
	ErrUnknownKey = errors.New("no such key")
	ErrNotAllowed = errors.New("this key is for something else")
)

// Guesses bounds how many wrong keys an address may try.
type Guesses interface {
	// Allowed reports whether a key from an address may be looked at.
	Allowed(from netip.Addr) bool
	// Refused counts a key that opened nothing.
	Refused(from netip.Addr)
}

// Config is what a gateway is on.
type Config struct {
	Store eventstore.Store

	// Authenticate looks at the password of a call, which is an API key. It answers nil, ErrUnknownKey, ErrNotAllowed, or
	// why it cannot tell.
	Authenticate func(ctx context.Context, key string) error

	// Guesses counts the wrong keys that come from an address. Nil counts nothing.
	Guesses Guesses

	// Writable lets clients append. Otherwise they are refused as if they had no right to.
	Writable bool

	// Name is the log's, by which a Bahi that takes the gateway for its log knows it: what it has read of the log in another
	// way is of the same log. Without it such a Bahi gives the log a name of its own, which is an event in it.
	Name uuid.UUID

	// Check says why an event must not be appended to a stream; the text reaches the client. Nil checks nothing.
	Check func(stream string, e event.New) error

	// TLS has the server's certificate. Clients send no credentials without TLS, so there is no gateway without it.
	TLS *tls.Config

	Log *slog.Logger
}

// Server is a gateway. Make one with [New].
type Server struct {
	Config

	grpc *grpc.Server
	life context.Context //nolint:containedctx // of the server: subscriptions end with it
	end  context.CancelFunc
	slow time.Duration // how long a client may take for a batch before it is told that it fell behind

	again      time.Duration // how long a subscriber is sent events before its key is looked at again
	turnedAway chan struct{} // held by calls that may not append and are heard out
}

const (
	// maxAppend is the most bytes of payloads and metadata that one append may have.
	maxAppend = 16 << 20

	// maxEvents is the most events that one append may have, before the store says how many it takes.
	maxEvents = 4096

	// maxMessage is what a client may send at once: an event of that size, and what goes with it.
	maxMessage = maxAppend + 1<<20

	// maxCalls is how many calls a connection may have at once. Clients let further ones wait.
	maxCalls = 1000

	// maxHeaders is the most bytes of a call's metadata.
	maxHeaders = 64 << 10

	// handshakeWithin is how long a client may take until it has a connection.
	handshakeWithin = 10 * time.Second

	// maxTurnedAway bounds the calls that may not append and are heard out all the same, each of which takes up to maxMessage of
	// memory: a client that is still sending would not learn why it was refused. Others are told at once.
	maxTurnedAway = 4

	// stopWithin is how long calls that are under way may take to end.
	stopWithin = 3 * time.Second
)

// New makes a gateway.
func New(c Config) *Server {
	s := &Server{Config: c, slow: time.Second, again: 10 * time.Second, turnedAway: make(chan struct{}, maxTurnedAway)}
	s.life, s.end = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.Creds(joining{credentials.NewTLS(c.TLS)}),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(handshakeWithin), grpc.WaitForHandlers(true),
		// Clients ask every ten seconds whether the server is there, also when they want nothing else.
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
	late := time.AfterFunc(stopWithin, s.grpc.Stop)
	defer late.Stop()
	s.grpc.GracefulStop()
	return <-served
}
