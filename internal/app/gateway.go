package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bahi/commands/accesscmd"
	"bahi/domain"
	"bahi/domain/event"
	"bahi/eventstore/esdbserver"
)

// GatewaySettings configure the gateway for EventStoreDB clients.
type GatewaySettings struct {
	GatewayAddr  string `env:"BAHI_GATEWAY_GRPC_ADDR" name:"gateway-grpc-addr" placeholder:"ADDRESS" example:"127.0.0.1:2113" help:"Address that serves the log over the EventStoreDB protocol. Without it, Bahi does not serve it."`
	GatewayWrite bool   `env:"BAHI_GATEWAY_WRITE" help:"Allow EventStoreDB clients to append events."`
	GatewayCert  string `env:"BAHI_GATEWAY_TLS_CERT" name:"gateway-tls-cert" placeholder:"FILE" help:"The gateway's certificate with its chain, in PEM. Without it, Bahi issues one by its own authority, gateway/ca.crt in the data folder."`
	GatewayKey   string `env:"BAHI_GATEWAY_TLS_KEY" name:"gateway-tls-key" placeholder:"FILE" example:"/etc/bahi/tls.key" help:"The private key of the gateway's certificate, in PEM."`
}

// DefaultGateway is the default address of EventStoreDB clients.
const DefaultGateway = "127.0.0.1:2113"

// CheckGateway returns the faults of the settings.
func (c GatewaySettings) CheckGateway(ctx context.Context) error {
	_, err := c.pair()
	if c.GatewayAddr != "" {
		_, wrong := Reachable(ctx, "BAHI_GATEWAY_GRPC_ADDR", c.GatewayAddr)
		err = errors.Join(err, wrong)
	}
	return err
}

// Listen returns the gateway's listener, nil if none is configured. Like the other checks of settings, it runs before anything is created.
func (c GatewaySettings) Listen(ctx context.Context) (net.Listener, error) {
	if c.GatewayAddr == "" {
		return nil, nil //nolint:nilnil // no gateway
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.GatewayAddr)
	if err != nil {
		return nil, fmt.Errorf("BAHI_GATEWAY_GRPC_ADDR: %w", err)
	}
	return listener, nil
}

// ServeWithGateway runs serve and the gateway, if it has a listener. When one ends, it ends the other.
func (c GatewaySettings) ServeWithGateway(ctx context.Context, sys *System, listener net.Listener, key string,
	serve func(context.Context) error) error {
	if listener == nil {
		return serve(ctx)
	}
	defer listener.Close() //nolint:errcheck // the server closes it first
	door, err := c.Gateway(sys, key)
	if err != nil {
		return err
	}
	sys.Log.Info("gateway listening", "address", listener.Addr(), "write", c.GatewayWrite)
	var serving errgroup.Group
	ctx, end := context.WithCancel(ctx)
	defer end()
	serving.Go(func() error { defer end(); return door.Serve(ctx, listener) })
	serving.Go(func() error { defer end(); return serve(ctx) })
	return serving.Wait()
}

func (c GatewaySettings) Gateway(sys *System, key string) (*esdbserver.Server, error) {
	certificates, err := c.certificates(sys.Settings.Data)
	if err != nil {
		return nil, err
	}
	ring := &accesscmd.KeyRing{Commands: sys.Commands, Admin: key, Home: sys.Home, Now: time.Now}
	return esdbserver.New(esdbserver.Config{
		Store: sys.written(), Writable: c.GatewayWrite, Check: CheckForeign, Guesses: sys.guesses, TLS: certificates, Log: sys.Log,
		Authenticate: func(ctx context.Context, key string) error {
			by, err := ring.Authenticate(ctx, key)
			switch {
			case errors.Is(err, accesscmd.ErrUnknownKey):
				return esdbserver.ErrUnknownKey
			case err == nil && !by.Permissions.Operator: // the log spans workspaces
				return esdbserver.ErrNotAllowed
			default:
				return err
			}
		},
	}), nil
}

// pair returns the configured certificate, nil without one.
func (c GatewaySettings) pair() ([]tls.Certificate, error) {
	if (c.GatewayCert == "") != (c.GatewayKey == "") {
		return nil, errors.New("BAHI_GATEWAY_TLS_CERT and BAHI_GATEWAY_TLS_KEY go together")
	}
	if c.GatewayCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.GatewayCert, c.GatewayKey)
	if err != nil {
		return nil, fmt.Errorf("BAHI_GATEWAY_TLS_CERT: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// certificates returns the configured certificate, or one by an authority in the data folder.
func (c GatewaySettings) certificates(data string) (*tls.Config, error) {
	if given, err := c.pair(); err != nil || given != nil {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: given}, err
	}
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if host, _, err := net.SplitHostPort(c.GatewayAddr); err == nil && host != "" && !slices.Contains(hosts, host) {
		hosts = append(hosts, host)
	}
	ca, err := esdbserver.OpenCA(filepath.Join(data, "gateway"), hosts, time.Now)
	if err != nil {
		return nil, err
	}
	return ca.TLS(), nil
}

// notText matches JSON that Postgres cannot convert to text. Similar but valid parts are removed before: escaped backslashes, and surrogate
// pairs.
var (
	aside   = regexp.MustCompile(`\\\\|\\u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}`)
	notText = regexp.MustCompile(`\\u(0000|[dD][89a-fA-F])`)
)

// CheckForeign returns an error if a client must not append an event to a stream. Only Bahi's commands append to its own streams, because a
// client's event would bypass their rules. Clients may use all other streams and types.
func CheckForeign(stream string, e event.Proposed) error {
	category, _ := event.SplitStream(stream)
	_, known := domain.Catalogue.Lookup(e.Type)
	switch {
	case slices.ContainsFunc(domain.Catalogue.All(), func(t event.TypeInfo) bool { return t.Category == category }):
		return fmt.Errorf("only Bahi appends to streams %s-…: send its commands over HTTP", category)
	case known:
		return fmt.Errorf("%s is an event of Bahi, which clients cannot append", e.Type)
	case notText.Match(aside.ReplaceAll(e.Meta, nil)):
		return fmt.Errorf("the metadata of %s contain a NUL or an unpaired surrogate, which would break searches of the log",
			e.Type)
	case event.More(e.Meta) > 0:
		return fmt.Errorf("the metadata of %s contain \"more\", which is reserved for transactions of Bahi", e.Type)
	default:
		return nil
	}
}
