// Package cli has the commands of bahi, with a package below it for each group.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"bahi/internal/app"
	"bahi/internal/cli/auditcli"
	"bahi/internal/cli/backup"
	"bahi/internal/cli/bookscli"
	"bahi/internal/cli/demo"
	"bahi/internal/cli/doctor"
	"bahi/internal/cli/events"
	"bahi/internal/cli/feedcli"
	"bahi/internal/cli/gatewaycli"
	"bahi/internal/cli/health"
	"bahi/internal/cli/keys"
	"bahi/internal/cli/marketplacecli"
	"bahi/internal/cli/messagingcli"
	"bahi/internal/cli/people"
	"bahi/internal/cli/projectionscli"
	"bahi/internal/cli/reactorscli"
	"bahi/internal/cli/serve"
)

// Commands has all commands, for kong.
type Commands struct {
	Serve       serve.Command          `cmd:"" help:"Serve the HTTP interface. Needs no configuration."`
	Demo        demo.Command           `cmd:"" help:"Fill a workspace with invented records of one year."`
	Gateway     gatewaycli.Command     `cmd:"" help:"Serve the log alone over the EventStoreDB protocol, for example for journals of other deployments."`
	Events      events.Command         `cmd:"" help:"Show, export, import and copy the log."`
	Projections projectionscli.Command `cmd:"" help:"List and rebuild the tables."`
	Reactors    reactorscli.Command    `cmd:"" help:"List the reactors, and replay old events to them."`
	Feed        feedcli.Command        `cmd:"" help:"Show and repair the forwarding of events to a broker."`
	User        people.Command         `cmd:"" help:"Create, list, grant, keep and delete accounts of people."`
	Erase       people.EraseCommand    `cmd:"" help:"Erase a person from all areas, by email or phone."`
	marketplacecli.Commands
	Campaigns messagingcli.CampaignsCommand `cmd:"" help:"Watch campaigns."`
	Apikey    keys.APICommand               `cmd:"" name:"apikey" help:"Create, list and revoke API keys."`
	Keys      keys.Command                  `cmd:"" help:"Change the keys that sign tokens."`
	Backups   backup.Commands               `embed:""`
	Audit     auditcli.Command              `cmd:"" help:"Prove and verify the content of the log."`
	Books     bookscli.Command              `cmd:"" help:"Write the books with their digests, for a comparison with the log."`
	Doctor    doctor.Command                `cmd:"" help:"Fold the log again and compare it with every table, row by row; check the rules between records."`
	Health    health.Command                `cmd:"" help:"Check whether the server on this machine is ready."`
	Version   versionCommand                `cmd:"" help:"Print the version."`
}

// Run runs the command named by the arguments and returns the status of the process.
func Run(ctx context.Context, sh app.Shell, args ...string) (status int) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case exit:
			status = int(end)
		default:
			panic(end)
		}
	}()
	opened := &app.Opened{}
	k, err := kong.New(&Commands{},
		kong.Name("bahi"),
		kong.Description("Bahi keeps a workshop's books as a log of events. Each setting is a flag and an environment variable."),
		kong.UsageOnError(), kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(sh.Out, sh.Err), kong.Exit(func(status int) { panic(exit(status)) }), kong.Resolvers(environment(sh.Env)),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(sh, opened),
	)
	if err != nil {
		panic(err) // kong cannot read a tag
	}
	parsed, err := k.Parse(args)
	k.FatalIfErrorf(err)
	err = parsed.Run()
	if opened.System != nil {
		opened.Close()
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(sh.Err, "bahi:", err)
	var other interface{ ExitCode() int } // a status other than 1
	if errors.As(err, &other) {
		return other.ExitCode()
	}
	return 1
}

// exit is the status with which kong ends a process after help or a usage error.
type exit int

// help prints the help of a command. Only serve lists the server's settings: the flags with a group.
func help(options kong.HelpOptions, k *kong.Context) error {
	grouped := false
	if node := k.Selected(); node != nil && node.Name != "serve" {
		for _, flag := range slices.Concat(node.AllFlags(false)...) {
			flag.Hidden = flag.Hidden || flag.Group != nil
			grouped = grouped || flag.Group != nil
		}
	}
	if err := kong.DefaultHelpPrinter(options, k); err != nil || !grouped || options.Summary {
		return err
	}
	_, err := fmt.Fprintln(k.Stdout, "\nThe server's settings apply too, such as --data: see bahi serve --help.")
	return err
}

// environment resolves flags by an environment other than the process's.
func environment(env []string) kong.Resolver {
	values := map[string]string{}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	var find kong.ResolverFunc = func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, name := range flag.Envs {
			if value, given := values[name]; given {
				return value, nil
			}
		}
		return nil, nil //nolint:nilnil // kong's interface: not set
	}
	return find
}

type versionCommand struct{}

func (versionCommand) Run(sh app.Shell) error {
	_, err := fmt.Fprintln(sh.Out, "bahi", app.Version)
	return err
}
