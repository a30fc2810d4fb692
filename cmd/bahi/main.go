// Command bahi serves the HTTP interface and has the operators' tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"bahi/internal/app"
	"bahi/internal/cli"
)

// toolMemory is a shell command's soft memory limit, in bytes: it runs beside a server. It only makes the collector run more often, so a
// command that needs more gets it. A demo has no limit, because it runs a server: with this limit, the collector takes half of its time.
const toolMemory = 160 << 20

func main() {
	app.TuneCollector()
	args := os.Args[1:]
	if serves := len(args) > 0 && slices.Contains([]string{"serve", "gateway", "demo"}, args[0]); !serves && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(toolMemory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := cli.Run(ctx, app.Shell{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}, args...)
	stop()
	os.Exit(status)
}
