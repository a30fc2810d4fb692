package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	official "github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"bahi/domain/ledger/bank"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	"bahi/internal/cli/serve"
)

// mostFollowed limits the events of the log: a round follows all of them.
const mostFollowed = 250_000

// door is a gateway in this process.
type door struct {
	address string
	ca      string // path of the certificate that clients trust
	stop    func() error
}

// gateways measures the cost of following the log and appending to it through the gateway. The gateway and its clients share this
// process and the processors, which a direct reader has alone.
func (b *benchmark) gateways(ctx context.Context) error {
	url, err := b.database(ctx, "gateway")
	if err != nil {
		return err
	}
	if err := b.fillForGateway(ctx, url); err != nil {
		return err
	}
	sys, err := b.system(ctx, url) // a new system, with nothing of the log in memory
	if err != nil {
		return err
	}
	defer sys.Close()
	d, err := b.openDoor(ctx, sys)
	if err != nil {
		return err
	}
	err = b.throughDoor(ctx, sys, d)
	if stopErr := d.stop(); err == nil {
		err = stopErr
	}
	return err
}

func (b *benchmark) fillForGateway(ctx context.Context, url string) error {
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	events := min(b.Rows, mostFollowed)
	m, err := newLogMaker(ctx, sys, events)
	if err != nil {
		return err
	}
	b.sayf("making a log of %d events", events)
	bar := screen.NewBar(os.Stderr, "making a log", "events")
	defer bar.End()
	if err := m.mixed(ctx, 1, events, bar.Show, bank.Ledger); err != nil {
		return err
	}
	return m.end()
}

// openDoor starts the gateway as serve does.
func (b *benchmark) openDoor(ctx context.Context, sys *app.System) (*door, error) {
	c := serve.Command{Settings: sys.Settings, GatewaySettings: app.GatewaySettings{GatewayWrite: true}}
	g, err := c.Gateway(sys, operatorKey)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	return &door{
		address: listener.Addr().String(), ca: filepath.Join(sys.Settings.Data, "gateway", "ca.crt"),
		stop: func() error { cancel(); return <-ended },
	}, nil
}

func (d *door) url() string {
	return "esdb://" + url.UserPassword("bench", operatorKey).String() + "@" + d.address + "?tlsCAFile=" + url.QueryEscape(d.ca)
}

func (b *benchmark) throughDoor(ctx context.Context, sys *app.System, d *door) error {
	config, err := official.ParseConnectionString(d.url())
	if err != nil {
		return err
	}
	config.Logger = official.NoopLogging()
	client, err := official.NewClient(config)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // the connection is discarded
	if err := b.following(ctx, sys.Store, d, client); err != nil {
		return err
	}
	return b.appendingThrough(ctx, sys.Store, client)
}

// following measures subscriptions that catch up with the whole log.
func (b *benchmark) following(ctx context.Context, store eventstore.Store, d *door, client *official.Client) error {
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	ways := []struct {
		name, title string
		follow      func(ctx context.Context, events int) error
	}{
		{"direct", "", subscriptionTo(store)},
		{"served", "catch-up subscription, as the gateway serves it", d.receive},
		{"official", "catch-up subscription, as the official client decodes it", readBy(client)},
	}
	var (
		cpu    = make([][]float64, len(ways)) // per event, in microseconds
		rounds = make([]func() (bench.Sample, error), len(ways))
	)
	for i, w := range ways {
		rounds[i] = func() (bench.Sample, error) {
			used, began := processTime(), time.Now()
			if err := w.follow(ctx, int(head)); err != nil { // positions are dense
				return bench.Sample{}, fmt.Errorf("%s subscription: %w", w.name, err)
			}
			took := time.Since(began)
			cpu[i] = append(cpu[i], float64((processTime()-used).Nanoseconds())/1000/float64(head))
			return bench.Sample{Rate: float64(head) / took.Seconds()}, nil
		}
	}
	direct, found, err := b.interleave(ctx, "catch-up subscriptions", rounds[0], rounds[1:]...)
	if err != nil {
		return err
	}
	for i, w := range ways[1:] {
		b.conclude(bench.Figure{Name: "gateway_" + w.name, Title: w.title, Unit: "events/s", Goal: bench.AtLeast(0.5)},
			found[i].By(bench.Rate), "directly", direct.By(bench.Rate))
		b.conclude(bench.Figure{Name: "gateway_" + w.name + "_cpu", Title: "the same: processor time of an event, gateway and client", Unit: "us"},
			cpu[i+1], "directly", cpu[0])
	}
	return nil
}

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail for this process
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// subscriptionTo returns a function that follows a store for a number of events.
func subscriptionTo(store eventstore.Store) func(context.Context, int) error {
	return func(ctx context.Context, events int) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for batch, err := range store.Subscribe(ctx, 0) {
			if err != nil {
				return err
			}
			if events -= len(batch.Events); events <= 0 {
				return nil
			}
		}
		return ctx.Err()
	}
}

// readBy returns a function that follows the log with the official client.
func readBy(client *official.Client) func(context.Context, int) error {
	return func(ctx context.Context, events int) error {
		subscription, err := client.SubscribeToAll(ctx, official.SubscribeToAllOptions{From: official.Start{}})
		if err != nil {
			return err
		}
		defer subscription.Close() //nolint:errcheck // the connection is discarded
		for events > 0 {
			switch e := subscription.Recv(); {
			case e.SubscriptionDropped != nil:
				return e.SubscriptionDropped.Error
			case e.EventAppeared != nil:
				events--
			}
		}
		return nil
	}
}

// undecoded is a codec that does not decode messages.
type undecoded struct{ encoding.CodecV2 }

func (undecoded) Unmarshal(data mem.BufferSlice, length any) error {
	*length.(*int) = data.Len() //nolint:forcetypeassert // receive passes an *int
	return nil
}

// receive follows the log without decoding events.
func (d *door) receive(ctx context.Context, events int) error {
	trust, err := credentials.NewClientTLSFromFile(d.ca, "")
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(d.address, grpc.WithTransportCredentials(trust))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the connection is discarded
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("bench:"+operatorKey)))
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, streams.Streams_Read_FullMethodName,
		grpc.ForceCodecV2(undecoded{encoding.GetCodecV2(proto.Name)}))
	if err != nil {
		return err
	}
	all := &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}}
	if err := call.SendMsg(&streams.ReadReq{Options: &streams.ReadReq_Options{
		CountOption:  &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}},
		StreamOption: &streams.ReadReq_Options_All{All: all},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
	}}); err != nil {
		return err
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	for range 1 + events { // the first message confirms the subscription
		var length int
		if err := call.RecvMsg(&length); err != nil {
			return err
		}
	}
	return nil
}

// appendingThrough measures appends through the gateway, and direct ones.
func (b *benchmark) appendingThrough(ctx context.Context, store eventstore.Store, client *official.Client) error {
	direct := &appender{store: store}
	direct.rows.Store(1 << 40) // row ids that the log does not have
	for clients, what := range map[int]string{1: "appends by the official client through the gateway, 1 client", 64: "appends by the official client through the gateway, 64 clients"} {
		limit, found, err := b.interleave(ctx, what,
			func() (bench.Sample, error) { return direct.run(ctx, clients, spreadOver, b.Round) },
			func() (bench.Sample, error) { return appendsByClient(ctx, client, clients, b.Round) })
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: fmt.Sprintf("gateway_appends_%d", clients), Title: what, Unit: "/s"},
			found[0].By(bench.Rate), "directly", limit.By(bench.Rate))
	}
	return nil
}

// appendsByClient appends events to new streams by the server's own client. Their type is none of ours, so that Bahi passes over them.
func appendsByClient(ctx context.Context, client *official.Client, clients int, during time.Duration) (bench.Sample, error) {
	var (
		running sync.WaitGroup
		took    = make([][]time.Duration, clients)
		failed  = make([]error, clients)
		began   = time.Now()
		all     []time.Duration
	)
	for i := range clients {
		running.Go(func() {
			for at := began; at.Before(began.Add(during)) && failed[i] == nil; {
				e := rowOf300Bytes(1, at)
				_, failed[i] = client.AppendToStream(ctx, "raw-"+uuid.NewString(), official.AppendToStreamOptions{ExpectedRevision: official.NoStream{}},
					official.EventData{EventID: e.ID, EventType: "RawAppended", ContentType: official.ContentTypeJson, Data: e.Data, Metadata: e.Meta})
				now := time.Now()
				took[i], at = append(took[i], now.Sub(at)), now
			}
		})
	}
	running.Wait()
	elapsed := time.Since(began)
	for _, t := range took {
		all = append(all, t...)
	}
	return bench.SampleOf(all, elapsed), errors.Join(failed...)
}
