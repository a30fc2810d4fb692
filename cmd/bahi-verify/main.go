//go:build !js

// Command bahi-verify verifies Bahi's log in an archive, a proof or a database against an auditor's kept checkpoints and keys. It requires
// no Bahi and, unless it reads a database, no network. Its exit status is 0 if the log is verified, 1 if something was tampered with, and
// 2 if it cannot tell.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/cli/progress"
)

// version is set by the linker.
var version = "development"

// The exit statuses.
const (
	statusVerified = iota
	statusTampered
	statusUndecided
)

type cli struct {
	Archive   archiveCommand   `cmd:"" help:"Verify an archive, as bahi audit export writes it."`
	Proof     proofCommand     `cmd:"" help:"Verify that the events of a .tlog-proof file are in a log."`
	Statement statementCommand `cmd:"" help:"Verify a statement that proves itself: all events of an account, and its balances."`
	Books     booksCommand     `cmd:"" help:"Replay an archive into the books, and compare them with those of a server."`
	Store     storeCommand     `cmd:"" help:"Verify the log in a database, read-only."`
	Version   kong.VersionFlag `help:"Print the version."`
}

// given has the options of all commands.
type given struct {
	Key        []string `placeholder:"FILE" type:"existingfile" sep:"none" help:"Public keys that you trust: the log's, and witnesses'. One per line, as bahi audit key prints them."`
	Checkpoint []string `placeholder:"FILE" type:"existingfile" sep:"none" help:"Checkpoints that you kept, each file with one or more."`
	JSON       bool     `name:"json" help:"Print the result in JSON."`
}

// compared has the options of commands about logs.
type compared struct {
	Compare string `placeholder:"ARCHIVE" help:"An older copy, to show the first changed event and its changed fields."`
}

func (c compared) source() (*archive.Source, error) {
	if c.Compare == "" {
		return nil, nil
	}
	a, err := openArchive(c.Compare)
	if err != nil {
		return nil, err
	}
	s := a.Source(c.Compare)
	return &s, nil
}

// openArchive opens a folder, a zip or a tar file. The file stays open until the program ends.
func openArchive(path string) (*archive.Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return archive.Open(path)
	}
	f, err := os.Open(path) //nolint:gosec // G304: the caller names it
	if err != nil {
		return nil, err
	}
	return archive.OpenPacked(f, info.Size())
}

type archiveCommand struct {
	given
	compared

	Archive string `arg:"" help:"The archive: its folder, or a zip or tar file of it."`
}

// Run prints the result for the archive.
func (c archiveCommand) Run(ctx context.Context, status *int) error {
	a, err := openArchive(c.Archive)
	if err != nil {
		return err
	}
	return c.verify(ctx, a.Source(c.Archive), a.Manifest.Events, c.given, status)
}

// verify prints the result for a log.
func (c compared) verify(ctx context.Context, log archive.Source, total uint64, g given, status *int) error {
	t, err := archive.ReadGiven(g.Key, g.Checkpoint)
	if err != nil {
		return err
	}
	other, err := c.source()
	if err != nil {
		return err
	}
	bars := progress.NewBars(os.Stderr, "events")
	a, err := archive.Examine(ctx, log, t, other, func(what string, events uint64) { bars.Show(what, what, int64(events), int64(total), 0) })
	bars.End()
	if err != nil {
		return err
	}
	return g.print(a, status)
}

type proofCommand struct {
	given

	Proof string `arg:"" type:"existingfile" help:"The file with one or more proofs."`
}

// Run prints the result for the proofs.
func (c proofCommand) Run(status *int) error {
	t, err := archive.ReadGiven(c.Key, c.Checkpoint)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Proof)
	if err != nil {
		return err
	}
	a, err := archive.ExamineProofs(text, t)
	if err != nil {
		return err
	}
	return c.print(a, status)
}

type statementCommand struct {
	given

	Code string `name:"pdf-code" placeholder:"TEXT" help:"The text of the QR code on the print, to compare the figures."`
	File string `arg:"" type:"existingfile" help:"The file statement.proof."`
}

// Run prints the result for the statement.
func (c statementCommand) Run(status *int) error {
	t, err := archive.ReadGiven(c.Key, c.Checkpoint)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	a, err := examineStatement(file, t, c.Code)
	if err != nil {
		return err
	}
	return c.print(a, status)
}

// print prints the result and sets the exit status.
func (g given) print(a archive.Report, status *int) error {
	switch a.Verdict {
	case tlog.Verified:
		*status = statusVerified
	case tlog.Tampered:
		*status = statusTampered
	case tlog.Undecided:
		*status = statusUndecided
	}
	if g.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(a)
	}
	if a.Result != nil {
		fmt.Printf("The log %s: %d events read.\n", printable(a.Log), a.Result.Events)
	}
	for _, sentence := range a.Sentences {
		fmt.Println(printable(sentence))
	}
	return nil
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	status = statusUndecided
	k, err := kong.New(&cli{}, kong.Name("bahi-verify"), kong.Vars{"version": version}, kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Description("Verify Bahi's log against kept evidence. Exit status: 0 verified, 1 tampered with, 2 cannot tell."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&status))
	if err == nil {
		var parsed *kong.Context
		if parsed, err = k.Parse(args); err == nil {
			err = parsed.Run()
		}
	}
	if err == nil {
		return status
	}
	fmt.Fprintln(os.Stderr, "bahi-verify:", printable(err.Error()))
	if _, broken := errors.AsType[*archive.CorruptError](err); broken {
		return statusTampered
	}
	return statusUndecided
}
