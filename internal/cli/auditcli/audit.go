// Package auditcli has the commands that prove the content of the log and verify it.
package auditcli

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/internal/app"
	"bahi/internal/cli/events"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/projections/auditproj"
)

type Command struct {
	Verify        verifyAudit   `cmd:"" help:"Verify an archive, or with --store the log, against its signed checkpoints."`
	Key           keyAudit      `cmd:"" help:"Print the public keys of the log's checkpoints, former ones included. Give them to your auditor."`
	Checkpoint    newestAudit   `cmd:"" help:"Print the newest signed checkpoint. Keep it out of reach of this deployment's operators."`
	Proof         proofAudit    `cmd:"" help:"Print the proof that an event is in the log. The public key is enough to check it."`
	Trail         trailAudit    `cmd:"" help:"Report changes of the books: actor, old and new value, time and reason."`
	Export        exportAudit   `cmd:"" help:"Write the log and its checkpoints into a folder, for an auditor who verifies them elsewhere."`
	RotateKey     rotateAudit   `cmd:"" name:"rotate-key" help:"Sign checkpoints with another key from now on."`
	AcceptRestore acceptRestore `cmd:"" name:"accept-restore" help:"Accept that a restore lost signed events, and continue with the log. The log records this."`
}

type keyAudit struct{ remote.Server }

// Run prints one key per line.
func (c keyAudit) Run(ctx context.Context) error {
	return c.Print(ctx, "/audit/key?format=text", c.Shell.Out)
}

type newestAudit struct{ remote.Server }

// Run prints the checkpoint.
func (c newestAudit) Run(ctx context.Context) error {
	return c.Print(ctx, "/audit/checkpoint?format=tlog-checkpoint", c.Shell.Out)
}

type proofAudit struct {
	remote.Server

	Position event.Position `arg:"" help:"Position of the event."`
	Size     uint64         `placeholder:"N" help:"Number of events of the proof's checkpoint. Without it, the newest."`
}

// Run prints the proof.
func (c proofAudit) Run(ctx context.Context) error {
	path := fmt.Sprintf("/audit/proof/inclusion?format=tlog-proof&position=%d", c.Position)
	if c.Size > 0 {
		path += fmt.Sprintf("&size=%d", c.Size)
	}
	return c.Print(ctx, path, c.Shell.Out)
}

type exportAudit struct {
	app.Settings
	events.Archiving
}

// Run signs the newest events and writes the archive.
func (c exportAudit) Run(ctx context.Context, sys *app.System) error {
	if err := sys.SignAll(ctx); err != nil {
		return err
	}
	o, err := c.Options(ctx, sys)
	if err != nil {
		return err
	}
	m, err := c.Write(ctx, sys, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d events of the log %s; segments: %d, checkpoints: %d\n", m.Events, m.StoreID, len(m.Segments),
		len(o.Checkpoints))
	return nil
}

type rotateAudit struct {
	app.Settings

	Reason string `required:"" help:"The reason, for the log."`
	NewKey string `env:"BAHI_AUDIT_NEW_KEY" name:"new-key" placeholder:"BASE64" help:"New key: an Ed25519 seed of 32 bytes, also to be set as BAHI_AUDIT_KEY. Without it, a key is created and stored in the vault."`
}

// Run makes the new key the signing key. Both keys sign the checkpoint that covers the rotation.
func (c rotateAudit) Run(ctx context.Context, sys *app.System) error {
	given, err := app.SeedOf("--new-key", c.NewKey)
	if err != nil {
		return err
	}
	if err := sys.SignAll(ctx); err != nil { // the former key signs all events so far
		return err
	}
	current, _, err := sys.Signer.Ring.InUse(ctx)
	if err != nil {
		return err
	}
	var seed []byte
	if given != nil {
		seed = given[0]
		sys.Signer.Ring.Given = append(sys.Signer.Ring.Given, seed)
	}
	next, err := sys.Signer.Ring.Prepare(ctx, seed)
	if err != nil {
		return err
	}
	asked := sys.ByOperator(uuid.Nil)
	if _, err := commands.Handle(ctx, sys.Commands, asked, audit.Kind, audit.Log,
		audit.RotateKey{From: current.Public(), To: next, Reason: c.Reason}); err != nil {
		return err
	}
	if err := sys.WithProjections(ctx, sys.UntilSigned, auditproj.Tree); err != nil {
		return err
	}
	fmt.Fprintln(c.Shell.Out, next)
	if seed != nil {
		fmt.Fprintln(c.Shell.Err, "Set BAHI_AUDIT_KEY to this key and restart the server: it signs nothing until then.")
	}
	return nil
}

type acceptRestore struct {
	app.Settings

	Reason string `required:"" help:"Reason for the loss of the events, for the log and its auditors."`
}

// Run records the loss and abandons the checkpoints that covered the lost events.
func (c acceptRestore) Run(ctx context.Context, sys *app.System) error {
	bar := progress.NewBar(c.Shell.Err, "hashing", "events")
	found, err := sys.Signer.Recount(ctx, func(done, total event.Position) { bar.Show(int64(done), int64(total)) })
	bar.End()
	if err != nil {
		return err
	}
	former, moved, err := sys.Signer.Ring.Moved(ctx)
	if err != nil {
		return err
	}
	if found.Reached && !moved {
		fmt.Fprintln(c.Shell.Err, "The log is long enough for the first of these checkpoints, and differs from it. Other events were appended "+
			"after the restore, or the log was rewritten. bahi audit verify --store names the first bad event.")
	}
	asked := sys.ByOperator(uuid.Nil)
	var said []string
	if found.Broken > 0 || !moved {
		accept := audit.AcceptRestore{Kept: found.Kept, Newest: found.Newest, Abandoned: found.Broken, LastNumber: found.Last, Reason: c.Reason}
		done, err := commands.Handle(ctx, sys.Commands, asked, audit.Kind, audit.Log, accept)
		if err != nil {
			return err
		}
		said = append(said, fmt.Sprintf("%d checkpoints are abandoned, which is recorded at position %d. The log is compared with the "+
			"checkpoint of %d events.",
			accept.Abandoned, done.Position, accept.Kept.Size))
	}
	if moved {
		var seed []byte // nil: the vault creates one
		if given := sys.Signer.Ring.Given; len(given) > 0 {
			seed = given[0]
		}
		next, err := sys.Signer.Ring.Prepare(ctx, seed)
		if err != nil {
			return err
		}
		if _, err := commands.Handle(ctx, sys.Commands, asked, audit.Kind, audit.Log,
			audit.RotateKey{From: former, To: next, Reason: c.Reason}); err != nil {
			return err
		}
		said = append(said, "The log was moved here. A key contains its log's name, so another one signs from now on: "+next)
	}
	build := sys.Build(auditproj.Tree) // the old tree has the lost events
	build.How.Accept = true
	if err := build.Run(ctx); err != nil {
		return fmt.Errorf("rebuild the tree: %w", err)
	}
	if err := sys.Signer.Check(ctx); err != nil {
		return err
	}
	said = append(said, "bahi projections list names tables with lost events; rebuild them with bahi projections rebuild.")
	fmt.Fprintln(c.Shell.Out, strings.Join(said, "\n"))
	return nil
}
