// Command bahi keeps the books: it serves the HTTP interface, and has the tools of those who run it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set by the linker.
var version = "development"

type cli struct {
	Serve       serveCommand       `cmd:"" help:"Serve the HTTP interface. Needs no configuration."`
	Gateway     gatewayCommand     `cmd:"" help:"Serve the log alone over the EventStoreDB protocol: other bahis may have their log there."`
	Events      eventsCommand      `cmd:"" help:"Look at the log, export it, import it."`
	Projections projectionsCommand `cmd:"" help:"List and rebuild what is read."`
	Reactors    reactorsCommand    `cmd:"" help:"List side effects' reactors, and let them go over old events."`
	Feed        feedCommand        `cmd:"" help:"Look after the forwarding of events to a broker."`
	User        userCommand        `cmd:"" help:"Make, list, grant, keep and delete accounts of people."`
	Apikey      apikeyCommand      `cmd:"" name:"apikey" help:"Make, list and revoke API keys."`
	Keys        keysCommand        `cmd:"" help:"Change the keys that tokens are signed with."`
	Vault       vaultCommand       `cmd:"" help:"Keep the list of who was erased, and apply it after a restore."`
	Backup      backupCommand      `cmd:"" help:"Copy what must not be lost into a folder, beside a running server or without one."`
	Restore     restoreCommand     `cmd:"" help:"Fill an empty data folder or database from a backup, or try with --drill whether that would work."`
	Audit       auditCommand       `cmd:"" help:"Prove what the log held, and verify it."`
	Doctor      doctorCommand      `cmd:"" help:"Fold the log anew and compare it with every table, row by row."`
	Bench       benchCommand       `cmd:"" help:"Measure how fast it is beside what this machine can do at all."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi:", err)
		os.Exit(1)
	}
}

// toolMemory is what a command at the shell should get along with, bytes: it runs beside a server. Only
// collecting more often keeps to it, so what really needs more gets it.
const toolMemory = 160 << 20

// gcPercent lets the heap grow further between collections than Go's default: it is small, and
// collecting was a tenth of the time of everything.
const gcPercent = 300

func run() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c cli
	k := kong.Parse(&c,
		kong.Name("bahi"),
		kong.Description("Bahi keeps a workshop's books as a log of events. Each setting is a flag and an environment variable."),
		kong.ExplicitGroups([]kong.Group{{Key: "shared", Title: "Settings that commands share:"}}),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if os.Getenv("GOMEMLIMIT") == "" && !slices.Contains([]string{"serve", "gateway", "bench"}, k.Command()) {
		debug.SetMemoryLimit(toolMemory)
	}
	return k.Run()
}

type versionCommand struct{}

func (versionCommand) Run() error {
	fmt.Println("bahi", version)
	return nil
}
