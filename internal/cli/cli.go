// Package cli has the commands of bahi at the shell, one package below it for each group of them.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"bahi/internal/app"
	"bahi/internal/cli/audit"
	"bahi/internal/cli/backup"
	"bahi/internal/cli/doctor"
	"bahi/internal/cli/events"
	"bahi/internal/cli/feed"
	"bahi/internal/cli/gateway"
	"bahi/internal/cli/keys"
	"bahi/internal/cli/people"
	"bahi/internal/cli/projections"
	"bahi/internal/cli/reactors"
	"bahi/internal/cli/serve"
)

// Commands are all of them, as kong reads them.
type Commands struct {
	Serve       serve.Command         `cmd:"" help:"Serve the HTTP interface. Needs no configuration."`
	Gateway     gateway.Command       `cmd:"" help:"Serve the log alone over the EventStoreDB protocol: other bahis may have their log there."`
	Events      events.Command        `cmd:"" help:"Look at the log, export it, import it."`
	Projections projections.Command   `cmd:"" help:"List and rebuild what is read."`
	Reactors    reactors.Command      `cmd:"" help:"List side effects' reactors, and let them go over old events."`
	Feed        feed.Command          `cmd:"" help:"Look after the forwarding of events to a broker."`
	User        people.Command        `cmd:"" help:"Make, list, grant, keep and delete accounts of people."`
	Apikey      keys.APICommand       `cmd:"" name:"apikey" help:"Make, list and revoke API keys."`
	Keys        keys.Command          `cmd:"" help:"Change the keys that tokens are signed with."`
	Vault       backup.VaultCommand   `cmd:"" help:"Keep the list of who was erased, and apply it after a restore."`
	Backup      backup.Command        `cmd:"" help:"Copy what must not be lost into a folder, beside a running server or without one."`
	Restore     backup.RestoreCommand `cmd:"" help:"Fill an empty data folder or database from a backup, or try with --drill whether that would work."`
	Audit       audit.Command         `cmd:"" help:"Prove what the log held, and verify it."`
	Doctor      doctor.Command        `cmd:"" help:"Fold the log anew and compare it with every table, row by row."`
	Version     versionCommand        `cmd:"" help:"Print the version."`
}

// toolMemory is what a command at the shell should get along with, bytes: it runs beside a server. Only
// collecting more often keeps to it, so what really needs more gets it.
const toolMemory = 160 << 20

// Run runs the command that the process's arguments name.
func Run() error {
	app.TuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c Commands
	k := kong.Parse(&c,
		kong.Name("bahi"),
		kong.Description("Bahi keeps a workshop's books as a log of events. Each setting is a flag and an environment variable."),
		kong.ExplicitGroups([]kong.Group{{Key: "shared", Title: "Settings that commands share:"}}),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if os.Getenv("GOMEMLIMIT") == "" && !slices.Contains([]string{"serve", "gateway"}, k.Command()) {
		debug.SetMemoryLimit(toolMemory)
	}
	return k.Run()
}

type versionCommand struct{}

func (versionCommand) Run() error {
	fmt.Println("bahi", app.Version)
	return nil
}
