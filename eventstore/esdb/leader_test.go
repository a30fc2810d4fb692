package esdb_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/gateway"
)

// follower is a node of a cluster that is not the leader: it serves reads, and rejects appends with the leader's address.
type follower struct {
	address string
	leader  *server
	refused atomic.Int32
	unready atomic.Bool  // accepts connections, but refuses all calls
	joined  atomic.Int32 // number of connections
}

// counted counts accepted connections.
type counted struct {
	net.Listener

	joined *atomic.Int32
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.joined.Add(1)
	}
	return conn, err
}

// asIs is a codec that passes messages through.
type asIs struct{}

func (asIs) Name() string { return "proto" }

func (asIs) Marshal(v any) (mem.BufferSlice, error) { return *v.(*mem.BufferSlice), nil }

func (asIs) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	*v.(*mem.BufferSlice) = data
	return nil
}

func newFollower(t *testing.T, leader *server) *follower {
	t.Helper()
	dir := t.TempDir()
	ca, err := gateway.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	for _, file := range []string{leader.ca, dir + "/ca.crt"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, roots.AppendCertsFromPEM(text))
	}
	conn, err := grpc.NewClient(leader.address, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asIs{})))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &follower{address: listener.Addr().String(), leader: leader}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(ca.TLS())), grpc.ForceServerCodecV2(asIs{}), grpc.UnknownServiceHandler(f.handler(conn)))
	go s.Serve(counted{listener, &f.joined}) // until the server is stopped
	t.Cleanup(s.Stop)

	both, err := os.ReadFile(leader.ca)
	require.NoError(t, err)
	own, err := os.ReadFile(dir + "/ca.crt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(leader.ca, append(both, own...), 0o600)) // the file that clients get
	return f
}

func (f *follower) handler(conn *grpc.ClientConn) grpc.StreamHandler {
	return func(_ any, call grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(call)
		if f.unready.Load() && strings.Contains(method, "Streams") {
			return status.Error(codes.Unavailable, "Server Is Not Ready")
		}
		if strings.HasSuffix(method, "Append") {
			f.refused.Add(1)
			host, port, _ := net.SplitHostPort(f.leader.address)
			call.SetTrailer(metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port))
			return status.Error(codes.NotFound, "Leader info available")
		}
		asked, _ := metadata.FromIncomingContext(call.Context())
		ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(call.Context(), metadata.MD{"authorization": asked.Get("authorization")}))
		defer cancel()
		on, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if err != nil {
			return err
		}
		go func() {
			for {
				var m mem.BufferSlice
				if err := call.RecvMsg(&m); err != nil {
					_ = on.CloseSend()
					return
				}
				_ = on.SendMsg(&m)
			}
		}()
		for {
			var m mem.BufferSlice
			if err := on.RecvMsg(&m); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if err := call.SendMsg(&m); err != nil {
				return err
			}
		}
	}
}

func TestAppendRefusedByAFollowerGoesToTheLeaderOnce(t *testing.T) {
	t.Parallel()
	leader := newServer(t)
	f := newFollower(t, leader)
	store := leader.open(t, leader.address) // stores the log's id
	store.Close()

	for _, expected := range []eventstore.Expected{eventstore.Any, eventstore.NoStream} {
		store := leader.open(t, f.address)
		before := f.refused.Load()
		stream := "thing-" + uuid.NewString()
		followed := make(chan error, 1)
		go func() {
			for batch, err := range store.Subscribe(t.Context(), 0) {
				if err != nil {
					followed <- err
					return
				}
				for _, e := range batch.Events {
					if e.Stream == stream && e.Revision == 2 {
						followed <- nil
						return
					}
				}
			}
		}()
		_, err := store.Append(t.Context(), eventstore.To(stream, expected, thing("one")))
		require.NoError(t, err)
		require.Greater(t, f.refused.Load(), before, "the follower got the append first")
		done, err := store.Append(t.Context(), eventstore.To(stream, 0, thing("two"), thing("three")))
		require.NoError(t, err)
		require.EqualValues(t, 2, done.Revision)
		require.Len(t, held(t, leader.log, stream), 3)
		require.NoError(t, <-followed)
	}
}

func TestFollowerThatRefusesBeforeAnAppendIsSentIsNoOutage(t *testing.T) {
	t.Parallel()
	leader := newServer(t)
	f := newFollower(t, leader)
	leader.open(t, leader.address).Close() // stores the log's id
	store := leader.open(t, f.address)
	one := eventstore.Write{Stream: "thing-" + uuid.NewString(), Expected: eventstore.NoStream, Events: []event.New{thing("one")}}
	require.ErrorIs(t, store.AppendAfterRefusal(t.Context(), one), esdb.ErrNotLeader)
	_, err := store.Append(t.Context(), eventstore.To(one.Stream, one.Expected, one.Events...))
	require.NoError(t, err)
	require.EqualValues(t, 1, f.refused.Load(), "the leader got the append")
}

// The official client opens a new connection with each try, and never closes the previous one.
func TestConnectionsToAnUnreadyServerAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFollower(t, s)
	s.open(t, s.address).Close() // stores the log's id
	store := s.open(t, f.address)
	f.unready.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for batch := range store.Subscribe(ctx, 0) {
		require.Empty(t, batch.Events)
	}
	require.Less(t, f.joined.Load(), int32(25))
	f.unready.Store(false)
	require.Eventually(t, func() bool {
		_, err := store.Head(t.Context())
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}
