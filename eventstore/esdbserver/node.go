package esdbserver

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"
)

// protocolVersion is the EventStoreDB version of this protocol: the first that notifies subscribers when they have caught up.
const protocolVersion = "23.10.0"

// featuresService returns the list of supported calls.
type featuresService struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods needs no credentials, because clients send none with it.
func (featuresService) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	answer := &serverfeatures.SupportedMethods{EventStoreServerVersion: protocolVersion}
	for _, m := range []struct{ service, name string }{
		{"event_store.client.streams.streams", "append"},
		{"event_store.client.streams.streams", "batchappend"},
		{"event_store.client.streams.streams", "read"},
		{"event_store.client.gossip.gossip", "read"},
		{"event_store.client.server_features.serverfeatures", "getsupportedmethods"},
	} {
		answer.Methods = append(answer.Methods, &serverfeatures.SupportedMethod{ServiceName: m.service, MethodName: m.name})
	}
	return answer, nil
}

// gossipService describes a cluster of one node.
type gossipService struct {
	gossip.UnimplementedGossipServer
}

// Read needs no credentials, because clients send none with it. It returns the address that the client used: behind a proxy or in a
// container, the node does not know its public address.
func (gossipService) Read(ctx context.Context, _ *shared.Empty) (*gossip.ClusterInfo, error) {
	member := &gossip.MemberInfo{
		InstanceId: textID(uuid.NewSHA1(uuid.NameSpaceURL, []byte("bahi gateway"))),
		TimeStamp:  time.Now().UnixNano() / 100, // in .NET's ticks
		State:      gossip.MemberInfo_Leader, IsAlive: true,
	}
	if authority := metadata.ValueFromIncomingContext(ctx, ":authority"); len(authority) > 0 {
		host, port, err := net.SplitHostPort(authority[0])
		if err != nil {
			host, port = authority[0], "443"
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err == nil {
			member.HttpEndPoint = &gossip.EndPoint{Address: host, Port: uint32(number)}
		}
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{member}}, nil
}
