package esdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"bahi/domain/event"
	"bahi/eventstore"
)

// batches sends appends over one BatchAppend call of the protocol, which the official client lacks: concurrent callers share the
// call and do not wait for each other's results. The call goes to the leader; after a failure the leader is found again.
type batches struct {
	config *esdb.Configuration
	conn   *connection

	mu       sync.Mutex
	current  *batchCall    // nil: none is open
	opening  chan struct{} // closed when the attempt to open one has ended; nil: none is under way
	failed   error         // of the last attempt
	redirect string        // address of the leader, as a follower told it
}

// batchCall is an open call.
type batchCall struct {
	conn  *grpc.ClientConn
	end   context.CancelFunc
	queue chan *streams.BatchAppendReq
	done  chan struct{} // closed when the call has ended, after err is set
	err   error

	mu      sync.Mutex
	waiting map[uuid.UUID]chan<- *streams.BatchAppendResp
}

// errNotLeader reports that a follower refused a call. The next one goes to the leader, if the follower knew it.
var errNotLeader = fmt.Errorf("%w: the server is not the leader of its cluster", eventstore.ErrUnavailable)

// append appends once. begun reports whether the server may have received the append. Its errors are a [eventstore.WrongRevision], a
// status error of the server for a refusal, and others if the outcome is unknown.
func (b *batches) append(ctx context.Context, r eventstore.Write) (done eventstore.Appended, begun bool, err error) {
	call, err := b.open(ctx)
	if err != nil {
		return done, false, err
	}
	p, err := call.begin(ctx, r)
	if err != nil {
		return done, false, err
	}
	return b.wait(ctx, p)
}

// sent is an append whose result is awaited.
type sent struct {
	call    *batchCall
	request eventstore.Write
	id      uuid.UUID
	results chan *streams.BatchAppendResp
}

// begin sends an append. Those of one caller take place in the order in which they are sent. Each MUST be waited for.
func (c *batchCall) begin(ctx context.Context, r eventstore.Write) (*sent, error) {
	p := &sent{call: c, request: r, id: uuid.New(), results: make(chan *streams.BatchAppendResp, 1)}
	c.mu.Lock()
	c.waiting[p.id] = p.results
	c.mu.Unlock()
	select {
	case c.queue <- batchOf(p.id, r):
		return p, nil
	case <-c.done:
		p.forget()
		return nil, c.ended()
	case <-ctx.Done():
		p.forget()
		return nil, context.Cause(ctx)
	}
}

// ended returns why a call has ended, after that.
func (c *batchCall) ended() error {
	if status.Code(c.err) == codes.NotFound { // a follower refuses the whole call
		return errNotLeader
	}
	return unreachable(c.err)
}

func (p *sent) forget() {
	p.call.mu.Lock()
	defer p.call.mu.Unlock()
	delete(p.call.waiting, p.id)
}

// wait returns an append's result.
func (b *batches) wait(ctx context.Context, p *sent) (done eventstore.Appended, begun bool, err error) {
	defer p.forget()
	select {
	case result := <-p.results:
		done, err = appended(p.request, result)
		if _, wrong := errors.AsType[*eventstore.WrongRevision](err); err != nil && !wrong && !isRefusal(err) {
			b.drop(p.call) // this node may no longer be the leader
		}
		return done, true, err
	case <-p.call.done:
		err := p.call.ended()
		return done, !errors.Is(err, errNotLeader), err
	case <-ctx.Done():
		b.drop(p.call)
		return done, true, context.Cause(ctx)
	}
}

// batchOf returns an append's message.
func batchOf(id uuid.UUID, r eventstore.Write) *streams.BatchAppendReq {
	options := &streams.BatchAppendReq_Options{
		StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(r.Stream)},
		ExpectedStreamPosition: &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}},
		DeadlineOption:         &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(answerWithin)},
	}
	if r.Expected >= 0 {
		options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: uint64(r.Expected)}
	}
	m := &streams.BatchAppendReq{CorrelationId: wireID(id), Options: options, IsFinal: true}
	for _, e := range r.Events {
		m.ProposedMessages = append(m.ProposedMessages, &streams.BatchAppendReq_ProposedMessage{
			Id: wireID(e.ID), Data: e.Data, CustomMetadata: e.Meta,
			Metadata: map[string]string{"type": e.Type, "content-type": "application/json"},
		})
	}
	return m
}

func wireID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits: int64(binary.BigEndian.Uint64(id[:8])), LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

func parseID(id *shared.UUID) (parsed uuid.UUID) {
	if s := id.GetStructured(); s != nil {
		binary.BigEndian.PutUint64(parsed[:8], uint64(s.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(parsed[8:], uint64(s.GetLeastSignificantBits()))
		return parsed
	}
	parsed, _ = uuid.Parse(id.GetString_()) // nobody waits for the nil id
	return parsed
}

// appended returns the result of an append.
func appended(r eventstore.Write, result *streams.BatchAppendResp) (done eventstore.Appended, err error) {
	if s := result.GetSuccess(); s != nil {
		done.Position = event.Position(s.GetPosition().GetCommitPosition())
		done.Revision = int64(s.GetCurrentRevision())
		return done, nil
	}
	failed := result.GetError()
	for _, detail := range failed.GetDetails() {
		message, err := detail.UnmarshalNew()
		if err != nil {
			continue // of a newer server
		}
		switch d := message.(type) {
		case *shared.WrongExpectedVersion:
			wrong := &eventstore.WrongRevision{Stream: r.Stream, Expected: r.Expected, Actual: -1}
			if _, exists := d.GetCurrentStreamRevisionOption().(*shared.WrongExpectedVersion_CurrentStreamRevision); exists {
				wrong.Actual = int64(d.GetCurrentStreamRevision())
			}
			return done, wrong
		case *shared.MaximumAppendSizeExceeded:
			return done, &eventstore.TooLarge{Most: int64(d.GetMaxAppendSize())}
		case *shared.BadRequest:
			return done, status.Error(codes.InvalidArgument, d.GetMessage())
		case *shared.AccessDenied:
			return done, status.Error(codes.PermissionDenied, failed.GetMessage())
		case *shared.StreamDeleted:
			return done, status.Error(codes.FailedPrecondition, "the stream is deleted")
		}
	}
	return done, fmt.Errorf("the server reports: %s", failed.GetMessage())
}

// open returns the open call, or opens one. It waits for the server as other calls do.
func (b *batches) open(ctx context.Context) (*batchCall, error) {
	for late := time.Now().Add(connectWithin); ; {
		if err := b.conn.found(ctx); err != nil {
			return nil, err
		}
		b.mu.Lock()
		if call := b.current; call != nil {
			b.mu.Unlock()
			return call, nil
		}
		if b.opening == nil {
			b.opening = make(chan struct{})
			go b.reopen()
		}
		opening := b.opening
		b.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		b.mu.Lock()
		err := b.failed
		b.mu.Unlock()
		if err == nil {
			continue
		}
		if err = unreachable(err); time.Now().After(late) || errors.Is(err, errRefused) {
			return nil, err
		}
		b.conn.look()
		if err := pause(ctx, retryEvery); err != nil {
			return nil, err
		}
	}
}

// reopen opens a call for all that wait.
func (b *batches) reopen() {
	call, err := b.dial()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current, b.failed = call, err
	close(b.opening)
	b.opening = nil
}

// drop ends a call, so that the next append opens another.
func (b *batches) drop(call *batchCall) {
	b.mu.Lock()
	if b.current == call {
		b.current = nil
	}
	b.mu.Unlock()
	call.end()
}

// close ends the open call.
func (b *batches) close() {
	b.mu.Lock()
	call := b.current
	b.mu.Unlock()
	if call != nil {
		b.drop(call)
		<-call.done
	}
}

// dial opens a call to the leader.
func (b *batches) dial() (*batchCall, error) {
	ctx, end := context.WithCancel(context.Background())
	late := time.AfterFunc(answerWithin, end)
	conn, err := b.leader(ctx)
	if err != nil {
		end()
		return nil, err
	}
	stream, err := streams.NewStreamsClient(conn).BatchAppend(b.credentials(ctx))
	if err != nil || !late.Stop() {
		end()
		_ = conn.Close() // nothing is under way
		return nil, cmp.Or(err, status.Error(codes.Unavailable, "no response"))
	}
	call := &batchCall{
		conn: conn, end: end, queue: make(chan *streams.BatchAppendReq), done: make(chan struct{}), waiting: map[uuid.UUID]chan<- *streams.BatchAppendResp{},
	}
	go call.send(ctx, stream)
	go func() {
		call.err = call.receive(stream)
		b.told(stream.Trailer())
		b.drop(call)
		close(call.done)
		if isAway(call.err) {
			b.conn.look()
		}
		_ = conn.Close() // the call has ended
	}()
	return call, nil
}

func (c *batchCall) send(ctx context.Context, stream streams.Streams_BatchAppendClient) {
	for {
		select {
		case m := <-c.queue:
			if err := stream.Send(m); err != nil {
				return // receive learns why
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *batchCall) receive(stream streams.Streams_BatchAppendClient) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		c.mu.Lock()
		results := c.waiting[parseID(m.GetCorrelationId())]
		c.mu.Unlock()
		if results != nil {
			results <- m // has room: there is one result
		}
	}
}

// told notes where the leader is, if a follower's refusal says so.
func (b *batches) told(trailer metadata.MD) {
	host, port := trailer.Get("leader-endpoint-host"), trailer.Get("leader-endpoint-port")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.redirect = ""; len(host) > 0 && len(port) > 0 {
		b.redirect = net.JoinHostPort(host[0], port[0])
	}
}

// credentials adds what the server needs to know of a call.
func (b *batches) credentials(ctx context.Context) context.Context {
	pairs := []string{"requires-leader", strconv.FormatBool(b.config.NodePreference == esdb.NodePreferenceLeader)}
	if b.config.Username != "" && !b.config.DisableTLS {
		pairs = append(pairs, "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(b.config.Username+":"+b.config.Password)))
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// leader connects to the node that appends are sent to: the only one, or the leader of the cluster. All seeds are asked at once, as one
// of them may be paused.
func (b *batches) leader(ctx context.Context) (*grpc.ClientConn, error) {
	b.mu.Lock()
	redirect := b.redirect
	b.redirect = "" // Nobody may be there any more.
	b.mu.Unlock()
	if redirect != "" {
		return b.connect(redirect)
	}
	seeds := []string{b.config.Address}
	if len(b.config.GossipSeeds) > 0 {
		seeds = nil
		for _, seed := range b.config.GossipSeeds {
			seeds = append(seeds, seed.String())
		}
	} else if !b.config.DnsDiscover {
		return b.connect(b.config.Address)
	}
	type answer struct {
		address string
		err     error
	}
	answers := make(chan answer, len(seeds))
	ctx, end := context.WithCancel(ctx)
	defer end()
	for _, seed := range seeds {
		go func() {
			address, err := b.leaderAt(ctx, seed)
			answers <- answer{address, err}
		}()
	}
	var last error
	for range seeds {
		said := <-answers
		if said.err == nil {
			return b.connect(said.address)
		}
		last = said.err
	}
	return nil, last
}

// leaderAt asks a node for the leader's address.
func (b *batches) leaderAt(ctx context.Context, seed string) (string, error) {
	conn, err := b.connect(seed)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	info, err := gossip.NewGossipClient(conn).Read(ctx, &shared.Empty{})
	if err != nil {
		return "", err
	}
	for _, m := range info.GetMembers() {
		if m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader {
			return net.JoinHostPort(m.GetHttpEndPoint().GetAddress(), strconv.FormatUint(uint64(m.GetHttpEndPoint().GetPort()), 10)), nil
		}
	}
	return "", status.Error(codes.Unavailable, "the cluster has no leader")
}

// connect makes a connection as the official client makes its own (createGrpcConnection of v4.2.0).
func (b *batches) connect(address string) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if !b.config.DisableTLS {
		settings := &tls.Config{InsecureSkipVerify: b.config.SkipCertificateVerification, RootCAs: b.config.RootCAs} //nolint:gosec // G402: the operator's setting
		if b.config.UserCertFile != "" {
			own, err := tls.LoadX509KeyPair(b.config.UserCertFile, b.config.UserKeyFile)
			if err != nil {
				return nil, fmt.Errorf("read the client's certificate: %w", err)
			}
			settings.Certificates = []tls.Certificate{own}
		}
		transport = credentials.NewTLS(settings)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(transport)}
	if b.config.KeepAliveInterval >= 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: b.config.KeepAliveInterval, Timeout: b.config.KeepAliveTimeout, PermitWithoutStream: true,
		}))
	}
	return grpc.NewClient(address, options...)
}
