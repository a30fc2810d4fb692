package esdbserver

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

const (
	goodKey  = "good:key" // a colon is the password's own
	otherKey = "another"
)

// running is a gateway to a log in Postgres, with a connection to it.
type running struct {
	*Server

	log  *postgres.Store
	conn *grpc.ClientConn
	stop context.CancelFunc
}

func start(t *testing.T, change ...func(*Config)) *running {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pool := pgtest.Pool(t, pgtest.Template(t, "log", migrations.Up))
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	dir := folder(t)
	ca, err := OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	config := Config{
		Store: store, Writable: true, TLS: ca.TLS(), Log: log,
		Authenticate: func(_ context.Context, key string) error {
			switch key {
			case goodKey:
				return nil
			case otherKey:
				return ErrNotAllowed
			default:
				return ErrUnknownKey
			}
		},
	}
	for _, c := range change {
		c(&config)
	}
	r := &running{Server: New(config), log: store}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.stop = worktest.Background(t, func(ctx context.Context) error { return r.Serve(ctx, listener) })
	r.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(trust(t, dir), "")))
	require.NoError(t, err)
	t.Cleanup(func() { r.conn.Close() })
	return r
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gateway")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func trust(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	text := worktest.File(t, filepath.Join(dir, "ca.crt"))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return pool
}

func (r *running) streams() streams.StreamsClient { return streams.NewStreamsClient(r.conn) }

// with returns a context with credentials and the test's timeout.
func with(t *testing.T, header string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	if header == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", header)
}

func basic(key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("bahi:"+key))
}

func asOperator(t *testing.T) context.Context {
	t.Helper()
	return with(t, basic(goodKey))
}

func thing(kind string) event.Proposed {
	return event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(`{"a": 1}`), Meta: []byte(`{"schema": 1}`)}
}

func (r *running) put(t *testing.T, stream string, events ...event.Proposed) eventstore.Appended {
	t.Helper()
	done, err := r.log.Append(t.Context(), eventstore.To(stream, eventstore.Any, events...))
	require.NoError(t, err)
	return done
}

// requireRefused checks how a call failed.
func requireRefused(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, status.Code(err), "%v", err)
	require.ErrorContains(t, err, text)
}

func TestGatewayRequiresAnOperatorsKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.put(t, "secret-1", thing("Kept"))
	for header, want := range map[string]struct {
		code codes.Code
		text string
	}{
		"":                                   {codes.Unauthenticated, "send credentials"},
		basic("wrong"):                       {codes.Unauthenticated, "no such API key"},
		basic(otherKey):                      {codes.PermissionDenied, "permission operator"},
		"Bearer " + goodKey:                  {codes.Unauthenticated, "RFC 7617"},
		"Basic " + goodKey:                   {codes.Unauthenticated, "RFC 7617"},
		basic(goodKey)[:len(basic(goodKey))]: {codes.OK, ""},
	} {
		var trailer metadata.MD
		ctx := with(t, header)
		read, err := r.streams().Read(ctx, readStream("secret-1", forwards, 1), grpc.Trailer(&trailer))
		require.NoError(t, err)
		answer, err := read.Recv()
		if want.code == codes.OK {
			require.NoError(t, err)
			require.NotNil(t, answer.GetEvent())
			continue
		}
		requireRefused(t, err, want.code, want.text)
		if want.code == codes.PermissionDenied {
			require.Equal(t, []string{"access-denied"}, trailer.Get("exception"))
		}
		_, err = appendTo(ctx, r, "secret-1", nil, proposal1(thing("Added")))
		requireRefused(t, err, want.code, want.text)
		_, err = r.streams().Delete(ctx, &streams.DeleteReq{})
		requireRefused(t, err, want.code, want.text)
	}
}

func TestFailureToCheckAKeyIsUnavailable(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Authenticate = func(context.Context, string) error { return errors.New("the database is away: password=hunter2") }
	})
	read := r.read(t, readStream("any-1", forwards, 1))
	_, err := read.Recv()
	requireRefused(t, err, codes.Unavailable, "cannot be reached")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestNothingIsDeleted(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.put(t, "kept-1", thing("Kept"))
	options := &shared.StreamIdentifier{StreamName: []byte("kept-1")}
	var trailer metadata.MD
	_, err := r.streams().Delete(asOperator(t), &streams.DeleteReq{Options: &streams.DeleteReq_Options{StreamIdentifier: options}},
		grpc.Trailer(&trailer))
	requireRefused(t, err, codes.PermissionDenied, "append-only")
	require.Equal(t, []string{"access-denied"}, trailer.Get("exception"))
	_, err = r.streams().Tombstone(asOperator(t), &streams.TombstoneReq{Options: &streams.TombstoneReq_Options{StreamIdentifier: options}})
	requireRefused(t, err, codes.PermissionDenied, "append-only")
}

func TestFeaturesNeedNoCredentials(t *testing.T) {
	t.Parallel()
	r := start(t)
	features, err := serverfeatures.NewServerFeaturesClient(r.conn).GetSupportedMethods(t.Context(), &shared.Empty{})
	require.NoError(t, err)
	names := []string{}
	for _, m := range features.GetMethods() {
		names = append(names, m.GetServiceName()+" "+m.GetMethodName())
	}
	require.Contains(t, names, "event_store.client.streams.streams batchappend")
	require.NotContains(t, fmt.Sprint(names), "persistent")

	cluster, err := gossip.NewGossipClient(r.conn).Read(t.Context(), &shared.Empty{})
	require.NoError(t, err)
	require.Len(t, cluster.GetMembers(), 1)
	member := cluster.GetMembers()[0]
	require.Equal(t, r.conn.Target(), fmt.Sprintf("%s:%d", member.GetHttpEndPoint().GetAddress(), member.GetHttpEndPoint().GetPort()))
	require.True(t, member.GetIsAlive())
	require.Equal(t, gossip.MemberInfo_Leader, member.GetState())
}

func TestStoppingServerTellsItsClients(t *testing.T) {
	t.Parallel()
	r := start(t)
	read := r.read(t, subscribeAll(nil, nil))
	require.NotNil(t, next(t, read).GetConfirmation())
	require.NotNil(t, next(t, read).GetCaughtUp())
	b := r.batches(t)
	b.send(t, batchOf("new-1", true, thing("Added")))
	require.NotNil(t, b.next(t).GetSuccess())
	r.stop() // after stopTimeout a client would be disconnected without a message
	_, err := b.Recv()
	requireRefused(t, err, codes.Unavailable, "the server stops")
	for err = nil; err == nil; { // it may have received the event
		_, err = read.Recv()
	}
	requireRefused(t, err, codes.Unavailable, "the server stops")
}

func TestAuthorityIsKeptAndTheCertificateRenewed(t *testing.T) {
	t.Parallel()
	dir, now := filepath.Join(folder(t), "gateway"), time.Now()
	clock := func() time.Time { return now }
	first, err := OpenCA(dir, []string{"127.0.0.1", "ledger.example"}, clock)
	require.NoError(t, err)
	roots := trust(t, dir)
	verify := func(ca *OwnCA) *x509.Certificate {
		presented, err := ca.TLS().GetCertificate(nil)
		require.NoError(t, err)
		for _, name := range []string{"127.0.0.1", "ledger.example"} {
			_, err = presented.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
			require.NoError(t, err)
		}
		return presented.Leaf
	}
	leaf := verify(first)
	require.Equal(t, leaf.SerialNumber, verify(first).SerialNumber)
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	second, err := OpenCA(dir, []string{"127.0.0.1", "ledger.example"}, clock)
	require.NoError(t, err)
	require.NotEqual(t, leaf.SerialNumber, verify(second).SerialNumber)
	now = now.Add(serverLife - renewBefore)
	require.NotEqual(t, leaf.SerialNumber, verify(first).SerialNumber, "the certificate is renewed while the server runs")

	now = now.Add(caLife - serverLife)
	verify(first)
	now = now.Add(serverLife)
	_, err = OpenCA(dir, nil, clock)
	require.ErrorContains(t, err, "expired on")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("no certificate"), 0o600))
	_, err = OpenCA(dir, nil, clock)
	require.Error(t, err, "existing files are not overwritten")
}
