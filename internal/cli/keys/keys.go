// Package keys has the commands for API keys and for the keys that sign tokens.
package keys

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"bahi/commands/accesscmd"
	"bahi/domain/access/apikey"
	"bahi/domain/actor"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/readmodels/accessview"
)

type APICommand struct {
	Create createKey `cmd:"" help:"Create a key; it is printed once."`
	List   listKeys  `cmd:"" help:"List a workspace's keys."`
	Revoke revokeKey `cmd:"" help:"Revoke a key."`
}

type createKey struct {
	app.Settings

	Workspace   string        `placeholder:"UUID" help:"A workspace's id, or new to create one. Without it, the operator's."`
	Name        string        `required:"" help:"Purpose of the key."`
	Ledger      actor.Level   `default:"write" enum:"none,read,write" help:"Access to the ledgers: none, read or write."`
	Messaging   actor.Level   `default:"none" enum:"none,read,write" help:"Access to messages: none, read or write."`
	Marketplace actor.Level   `default:"none" enum:"none,read,write" help:"Access to the marketplace: none, read or write."`
	Audit       actor.Level   `default:"none" enum:"none,read,write" help:"Access to the trail and the log: none, read or write."`
	Operator    bool          `help:"All permissions in every workspace."`
	ExpiresIn   time.Duration `help:"Lifetime of the key."`
}

// Run creates the key and prints it alone on standard output, for scripts.
func (c createKey) Run(ctx context.Context) error {
	c.MayBegin = true
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	workspace := sys.Home
	if c.Workspace == "new" {
		workspace = uuid.New()
	} else if c.Workspace != "" {
		if workspace, err = uuid.Parse(c.Workspace); err != nil {
			return err
		}
	}
	create := apikey.Create{
		Workspace: workspace, Now: time.Now(), Name: c.Name,
		Permissions: actor.Permissions{
			Ledger: c.Ledger, Messaging: c.Messaging, Marketplace: c.Marketplace, Audit: c.Audit, Operator: c.Operator,
		},
	}
	if c.ExpiresIn > 0 {
		at := time.Now().Add(c.ExpiresIn).UTC().Truncate(time.Second)
		create.ExpiresAt = &at
	}
	key, out, err := accesscmd.CreateAPIKey(ctx, sys.Commands, sys.ByOperator(workspace), create)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Err, "key %s for workspace %s, shown once:\n", out.ID, workspace)
	fmt.Fprintln(c.Shell.Out, key)
	return nil
}

// inWorkspace is the flag for the workspace of a request.
type inWorkspace struct {
	remote.Server

	Workspace string `placeholder:"UUID" help:"A workspace's id. Without it, the operator's."`
}

// request returns a request in the workspace.
func (c inWorkspace) request(method, path string) remote.Request {
	return remote.Request{Method: method, Path: "/api/v1/api-keys" + path, Header: map[string]string{"Bahi-Workspace": c.Workspace}}
}

type listKeys struct{ inWorkspace }

// Run prints one line per key.
func (c listKeys) Run(ctx context.Context) error {
	var keys []accessview.APIKey
	if err := c.Do(ctx, c.request("GET", ""), &keys); err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "ID\tNAME\tPERMISSIONS\tCREATED\tEXPIRES\tREVOKED")
	for _, k := range keys {
		permissions, err := json.Marshal(k.Permissions)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, permissions, progress.Moment(&k.CreatedAt), progress.Moment(k.ExpiresAt),
			progress.Moment(k.RevokedAt))
	}
	return out.Flush()
}

type revokeKey struct {
	inWorkspace

	ID uuid.UUID `arg:"" help:"The key's id, as listed."`
}

// Run revokes the key.
func (c revokeKey) Run(ctx context.Context) error {
	return c.Do(ctx, c.request("DELETE", "/"+c.ID.String()), nil)
}

type Command struct {
	Rotate rotateKeys `cmd:"" help:"Sign access and refresh tokens with a new key from now on."`
}

type rotateKeys struct {
	app.Settings

	Overlap time.Duration `default:"168h" help:"Time for which tokens of former keys stay valid. With 168h, the lifetime of refresh tokens, no user is affected. After a theft of keys use 0: it signs out everyone, even the attacker."`
}

// Run creates the key.
func (c rotateKeys) Run(ctx context.Context) error {
	if c.Overlap < 0 {
		return fmt.Errorf("an overlap of %s is negative", c.Overlap)
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	return sys.Accounts.Credentials.Keys.Rotate(ctx, c.Overlap)
}
