// Package gatewaycli has the command that serves the log alone.
package gatewaycli

import (
	"cmp"
	"context"
	"os"

	"bahi/http/api"
	"bahi/internal/app"
	"bahi/internal/pgcluster"
)

// Command serves the log alone: it folds no tables and sends no mails. Other bahis may store their log there.
type Command struct {
	app.Settings
	app.GatewaySettings
	app.OperatorSettings
}

// Run serves the log until the context ends.
func (c Command) Run(ctx context.Context) error {
	lock, err := pgcluster.Lock(c.Data)
	if err != nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // the process ends
	if c.Outside.Limits, err = api.ParseLimits(os.Environ()); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	c.GatewayAddr = cmp.Or(c.GatewayAddr, app.DefaultGateway)
	listener, err := c.Listen(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server closes it first
	sys, err := c.OpenBooks(ctx, true)
	if err != nil {
		return err
	}
	defer sys.Close()
	key, err := c.OperatorKey(c.Data, c.Shell.Err)
	if err != nil {
		return err
	}
	return c.ServeWithGateway(ctx, sys, listener, key, sys.Commands.Run)
}
