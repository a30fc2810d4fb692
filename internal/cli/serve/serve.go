// Package serve has the command that serves the HTTP interface.
package serve

import (
	"context"
	"errors"
	"time"

	"bahi/http/api"
	"bahi/internal/app"
)

type Command struct {
	Addr string `env:"BAHI_ADDR" default:"127.0.0.1:8080" help:"Address that HTTP listens on." group:"Server"`
	app.OperatorSettings
	app.Settings
	app.IntegrationSettings
	app.GatewaySettings `group:"EventStoreDB clients"`

	OTLP string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" name:"otlp-endpoint" placeholder:"URL" example:"http://127.0.0.1:4318" help:"Collector of traces (OTLP over HTTP). Without it, Bahi sends no traces." group:"Server"`
}

// Run serves until the context ends.
func (c Command) Run(ctx context.Context) error {
	began := time.Now()
	var limits error
	c.Limits, limits = api.ParseLimits(c.Shell.Env)
	_, addr := app.Reachable(ctx, "BAHI_ADDR", c.Addr)
	c.TokensOf, c.Outside = c.PublicURL, c.IntegrationSettings
	tracer, flush, err := app.Tracing(ctx, c.OTLP)
	if err = errors.Join(limits, addr, err, c.Check(), c.CheckGateway(ctx), c.Settings.CheckSettings(ctx)); err != nil {
		return err
	}
	defer flush()
	listener, done, err := app.TakePlace(ctx, c.Data, c.Addr)
	if err != nil {
		return err
	}
	defer done()
	if c.PublicURL == "" && c.Addr != app.DefaultAddr {
		own, _ := app.Reachable(ctx, "BAHI_ADDR", listener.Addr().String()) // a listener's address is valid
		c.PublicURL = "http://" + own
	}
	c.Outside = c.IntegrationSettings
	door, err := c.GatewaySettings.Listen(ctx)
	if err != nil {
		return err
	}
	if door != nil {
		defer door.Close() //nolint:errcheck // the server closes it first
	}
	sys, err := c.Open(ctx, true)
	if err != nil {
		return err
	}
	defer sys.Close()
	key, err := c.OperatorKey(c.Data, c.Shell.Err)
	if err != nil {
		return err
	}
	sys.SayTokens()
	sys.Log.Info("serving", "address", "http://"+listener.Addr().String(), "after", time.Since(began).Round(time.Millisecond),
		"log", sys.Store.ID())
	return c.ServeWithGateway(ctx, sys, door, key, func(ctx context.Context) error { return sys.Serve(ctx, listener, key, tracer) })
}
