package esdbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Cluster is a log with its nodes. The first node is the leader, until it goes.
type Cluster struct {
	log *log

	// Version is what the nodes call themselves; "23.10.8" unless set before the first client.
	Version string

	// MaxAppend is the setting MaxAppendSize of the nodes; [MaxAppend] unless set before the first client.
	MaxAppend int

	mu     sync.Mutex
	nodes  []*Node
	leader *Node
}

// Node is a server of a cluster.
type Node struct {
	// Counts says what clients have asked of the node.
	Counts Counts

	cluster *Cluster
	address string
	life    context.Context
	stop    func()
	unready atomic.Bool
	around  atomic.Pointer[Around]
	before  atomic.Pointer[func(bool) error]
	hung    sync.RWMutex // held for writing while the node hangs
}

// Counts are numbers of calls, and of events that reads returned. Those of subscriptions are not counted.
type Counts struct {
	Appends, Reads, Events, Subscriptions, Refused atomic.Int64

	// Looks are reads of the newest event alone.
	Looks atomic.Int64
}

// Around wraps the appends of a node: put carries one out.
type Around func(stream string, put func() error) error

// Start starts a cluster of so many nodes on loopback. It ends with the test.
func Start(t testing.TB, nodes int) *Cluster {
	t.Helper()
	c := &Cluster{log: newLog(), Version: "23.10.8", MaxAppend: MaxAppend}
	for range nodes {
		n := &Node{cluster: c}
		n.serve(t, "127.0.0.1:0")
		c.nodes = append(c.nodes, n)
	}
	c.leader = c.nodes[0]
	return c
}

// serve accepts clients at an address, until the node stops or the test ends.
func (n *Node) serve(t testing.TB, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.Background())
	n.cluster.mu.Lock()
	n.address, n.life = listener.Addr().String(), life
	n.cluster.mu.Unlock()
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(17<<20), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(n.readyUnary), grpc.StreamInterceptor(n.readyStream),
	)
	streams.RegisterStreamsServer(server, streamsService{Node: n, life: life})
	serverfeatures.RegisterServerFeaturesServer(server, featuresService{Node: n})
	gossip.RegisterGossipServer(server, gossipService{Node: n})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(hanging{listener, &n.hung}) // until it is stopped
	}()
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			end()
			server.Stop()
			<-served
		})
	}
	t.Cleanup(func() { n.stop() })
}

// Address is where the node is.
func (n *Node) Address() string { return n.address }

// Node returns the nth node.
func (c *Cluster) Node(n int) *Node { return c.nodes[n] }

// URL is a connection string for the cluster.
func (c *Cluster) URL() string {
	if len(c.nodes) == 1 {
		return "esdb://" + c.nodes[0].address + "?tls=false"
	}
	all := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = n.address
	}
	return "esdb://" + strings.Join(all, ",") + "?tls=false&gossipTimeout=2"
}

// URL is a connection string for the node alone.
func (n *Node) URL() string { return "esdb://" + n.address + "?tls=false" }

// Stop ends the node; its clients lose their connections. A leader's place stays empty until Elect.
func (n *Node) Stop() {
	n.cluster.mu.Lock()
	if n.cluster.leader == n {
		n.cluster.leader = nil
	}
	n.cluster.mu.Unlock()
	n.stop()
}

// Restart starts a stopped node at its address, as a follower if there is a leader.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	n.serve(t, n.address)
}

// Elect makes the node the leader.
func (n *Node) Elect() {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cluster.leader = n
}

func (n *Node) leads() bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.cluster.leader == n
}

// Hang lets the node answer nothing until it is told to wake, as a process that is paused: its connections stay open, and new ones
// are accepted. What it was asked meanwhile it does when it wakes. It must wake before it stops, and does before the test ends.
func (n *Node) Hang(t testing.TB) (wake func()) {
	t.Helper()
	n.hung.Lock()
	wake = sync.OnceFunc(n.hung.Unlock)
	t.Cleanup(wake)
	return wake
}

// hanging is a listener whose connections carry nothing while a lock is held.
type hanging struct {
	net.Listener
	by *sync.RWMutex
}

func (l hanging) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return hangingConn{conn, l.by}, err //nolint:wrapcheck // gRPC compares it
}

type hangingConn struct {
	net.Conn
	by *sync.RWMutex
}

func (c hangingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.by.RLock()
	defer c.by.RUnlock()
	return n, err //nolint:wrapcheck // gRPC compares it
}

func (c hangingConn) Write(b []byte) (int, error) {
	c.by.RLock()
	defer c.by.RUnlock()
	return c.Conn.Write(b) //nolint:wrapcheck // gRPC compares it
}

// Unready lets the node refuse calls as one that starts does.
func (n *Node) Unready(is bool) { n.unready.Store(is) }

// Appending wraps the node's appends.
func (n *Node) Appending(around Around) { n.around.Store(&around) }

// Subscribing makes the node call a function before it begins a subscription, which it says is of all events or of those after a
// place. An error refuses the subscription.
func (n *Node) Subscribing(before func(all bool) error) { n.before.Store(&before) }

// System appends events of the server's own.
func (c *Cluster) System(count int) {
	for i := range count {
		_, err := c.log.append(fmt.Sprintf("$stats-%d", i%7), expectAny, []proposal{{
			id: uuid.New(), typ: "$statsCollected", contentType: "application/json", data: []byte(`{"load":1}`),
		}})
		if err != nil {
			panic(err) // their ids are new
		}
	}
}

// Past moves all events days into the past.
func (c *Cluster) Past(days int) { c.log.past(days) }

// Lose removes the newest events and cuts no connection.
func (c *Cluster) Lose(count int) { c.log.cut(count) }

// Cut removes the newest events and cuts all connections, as a failover to a node that lagged behind does.
func (c *Cluster) Cut(t testing.TB, count int) {
	t.Helper()
	for _, n := range c.nodes {
		n.stop()
	}
	c.log.cut(count)
	for _, n := range c.nodes {
		n.serve(t, n.address)
	}
}

var errUnready = status.Error(codes.Unavailable, "Server Is Not Ready")

func (n *Node) readyUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if n.unready.Load() {
		return nil, errUnready
	}
	return handle(ctx, request)
}

func (n *Node) readyStream(service any, call grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if n.unready.Load() {
		return errUnready
	}
	return handle(service, call)
}

type featuresService struct {
	serverfeatures.UnimplementedServerFeaturesServer
	*Node
}

// GetSupportedMethods tells the node's version.
func (n featuresService) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: n.cluster.Version, Methods: []*serverfeatures.SupportedMethod{
		{ServiceName: "event_store.client.streams.streams", MethodName: "append"},
		{ServiceName: "event_store.client.streams.streams", MethodName: "batchappend"},
		{ServiceName: "event_store.client.streams.streams", MethodName: "read"},
	}}, nil
}

type gossipService struct {
	gossip.UnimplementedGossipServer
	*Node
}

// Read describes the cluster.
func (n gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	info := &gossip.ClusterInfo{}
	for _, other := range n.cluster.nodes {
		host, port, _ := net.SplitHostPort(other.address)
		var number uint32
		_, _ = fmt.Sscan(port, &number)
		member := &gossip.MemberInfo{
			InstanceId: wireID(uuid.NewSHA1(uuid.Nil, []byte(other.address))), TimeStamp: time.Now().UnixNano() / 100,
			State: gossip.MemberInfo_Follower, IsAlive: other.life.Err() == nil, HttpEndPoint: &gossip.EndPoint{Address: host, Port: number},
		}
		if other == n.cluster.leader {
			member.State = gossip.MemberInfo_Leader
		}
		info.Members = append(info.Members, member)
	}
	return info, nil
}

// put appends on behalf of a client. A follower forwards to the leader, and waits for it in vain when there is none; a client that
// requires the leader is told where it is.
func (n *Node) put(ctx context.Context, stream string, expected int64, proposals []proposal) (last recorded, err error) {
	n.Counts.Appends.Add(1)
	bytes := 0
	for _, p := range proposals {
		bytes += p.size()
	}
	if bytes > n.cluster.MaxAppend {
		return last, tooLarge(n.cluster.MaxAppend)
	}
	if !n.leads() {
		if required := metadata.ValueFromIncomingContext(ctx, "requires-leader"); len(required) > 0 && strings.EqualFold(required[0], "true") {
			return last, errNotLeader
		}
		if n.cluster.headless() {
			return last, status.Error(codes.Aborted, "Operation timed out: Forwarding timeout")
		}
	}
	do := func() (err error) {
		last, err = n.cluster.log.append(stream, expected, proposals)
		return err
	}
	if around := n.around.Load(); around != nil {
		err = (*around)(stream, do)
	} else {
		err = do()
	}
	return last, err
}

func (c *Cluster) headless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader == nil
}

var errNotLeader = errors.New("not the leader")

// tooLarge is the error of an append of more bytes than the server takes.
type tooLarge int

func (most tooLarge) Error() string {
	return fmt.Sprintf("Maximum Append Size of %d Exceeded.", int(most))
}

// GRPCStatus is what a call that appends to one stream is answered.
func (most tooLarge) GRPCStatus() *status.Status {
	return status.New(codes.InvalidArgument, most.Error())
}
