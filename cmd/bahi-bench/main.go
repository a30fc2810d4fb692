// Command bahi-bench measures bahi against the limits of this machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"bahi/internal/app"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi-bench:", err)
		os.Exit(1)
	}
}

func run() error {
	app.TuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c benchCommand
	kong.Parse(&c, kong.Name("bahi-bench"), kong.Description("Measure bahi against the limits of this machine."), kong.UsageOnError(),
		scenarioNames(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	return c.Run(ctx)
}
