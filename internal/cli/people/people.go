// Package people has the commands for users' accounts.
package people

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/projections/accessproj"
	"bahi/readmodels"
)

type Command struct {
	Create createUser `cmd:"" help:"Create an account with a verified address. Prints the password once."`
	List   listUsers  `cmd:"" help:"List the accounts of the deployment."`
	Grant  grantUser  `cmd:"" help:"Make a user an operator of the deployment, or an operator a plain user."`
	Keep   keepUser   `cmd:"" help:"Cancel a deletion that a user requested."`
	Delete deleteUser `cmd:"" help:"Request a user's deletion in their name, with the usual delay."`
}

type createUser struct {
	app.Settings

	Email         string `required:"" help:"Address. No other user may have it."`
	FirstName     string `required:"" help:"First name."`
	LastName      string `required:"" help:"Last name."`
	Operator      bool   `help:"Make the user an operator of the deployment."`
	PasswordStdin bool   `help:"Read the password from standard input, up to the end of the line. Without it, one is generated."`
	MinPassword   int    `env:"BAHI_PASSWORD_MINIMUM" name:"password-minimum" default:"8" help:"Minimum password length."`
}

// Run creates the account. It prints a generated password alone on standard output, for scripts.
func (c createUser) Run(ctx context.Context) error {
	password := rand.Text()
	if c.PasswordStdin {
		line := bufio.NewScanner(c.Shell.In)
		line.Scan()
		if err := line.Err(); err != nil {
			return fmt.Errorf("read the password: %w", err)
		}
		password = line.Text()
	}
	c.Outside.MinPassword = c.MinPassword
	c.MayBegin = true
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	req := sys.ByOperator(uuid.Nil)
	made, err := sys.Accounts.RegisterVerified(ctx, req, accesscmd.Registration{
		Email: c.Email, Password: password, FirstName: c.FirstName, LastName: c.LastName,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Shell.Err, "user", made.ID)
	if !c.PasswordStdin {
		fmt.Fprintln(c.Shell.Err, "password, shown once:")
		fmt.Fprintln(c.Shell.Out, password)
	}
	if c.Operator {
		return sys.Accounts.Grant(ctx, req, made.ID, true)
	}
	return nil
}

type listUsers struct{ app.Settings }

// Run prints one line per user, oldest account first.
func (c listUsers) Run(ctx context.Context, sys *app.System) error {
	if err := sys.CatchUp(ctx, accessproj.Users, accessproj.Workspaces); err != nil {
		return err
	}
	users, err := sys.Access.Users(ctx, &readmodels.At{Wait: app.CatchUpTimeout})
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.Shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "ID\tEMAIL\tNAME\tVERIFIED\tOPERATOR\tWORKSPACE\tCREATED\tLAST LOGIN\tDELETE AFTER")
	for _, u := range users {
		fmt.Fprintf(out, "%s\t%s\t%s\t%t\t%t\t%s\t%s\t%s\t%s\n", u.ID, joined(u.Email), joined(u.FirstName, u.LastName),
			u.EmailVerified, u.Operator, u.WorkspaceID, progress.Moment(&u.CreatedAt), progress.Moment(u.LastLoginAt),
			progress.Moment(u.DeleteAfter))
	}
	return out.Flush()
}

// joined joins the texts that are not nil.
func joined(texts ...*string) string {
	var all []string
	for _, text := range texts {
		if text != nil {
			all = append(all, *text)
		}
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, " ")
}

// ofUser is the argument for the command's user.
type ofUser struct {
	app.Settings

	ID uuid.UUID `arg:"" help:"The user's id, as listed."`
}

// run calls do on the user.
func (c ofUser) run(ctx context.Context, do func(ctx context.Context, req commands.Request, a *accesscmd.Accounts) error) error {
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	return do(ctx, sys.ByOperator(uuid.Nil), sys.Accounts)
}

type grantUser struct {
	ofUser

	Operator bool `required:"" negatable:"" help:"The user is an operator of the deployment; --operator=false revokes that."`
}

// Run sets or removes the operator's permission.
func (c grantUser) Run(ctx context.Context) error {
	return c.run(ctx, func(ctx context.Context, req commands.Request, a *accesscmd.Accounts) error {
		return a.Grant(ctx, req, c.ID, c.Operator)
	})
}

type keepUser struct{ ofUser }

// Run cancels the deletion.
func (c keepUser) Run(ctx context.Context) error {
	return c.run(ctx, func(ctx context.Context, req commands.Request, a *accesscmd.Accounts) error {
		return a.CancelDeletion(ctx, req, c.ID)
	})
}

type deleteUser struct {
	ofUser

	Grace time.Duration `env:"BAHI_DELETION_GRACE" name:"deletion-grace" default:"336h" help:"Time until the deletion; 0s deletes at once. Maximum 696h."`
}

// Run requests the deletion and prints when it is due.
func (c deleteUser) Run(ctx context.Context) error {
	c.Outside.Grace = &c.Grace
	return c.run(ctx, func(ctx context.Context, req commands.Request, a *accesscmd.Accounts) error {
		if _, err := a.RequestDeletion(ctx, req, c.ID); err != nil {
			return err
		}
		s, err := a.Load(ctx, c.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Shell.Out, "to be deleted after %s\n", progress.Moment(s.DeleteAfter))
		return nil
	})
}

// EraseCommand erases a person from all areas.
type EraseCommand struct {
	remote.Server

	Email string `help:"The person's address."`
	Phone string `help:"The person's phone, with the country code."`
}

// Run erases the person. The server rewrites the tables that had the person's data.
func (c EraseCommand) Run(ctx context.Context) error {
	var erased opshttp.Erased
	err := c.Do(ctx, remote.Request{Method: "POST", Path: "/ops/erasures",
		Body: map[string]string{"email": c.Email, "phone": c.Phone}}, &erased)
	if err == nil {
		fmt.Fprintf(c.Shell.Out, "erased: %d\n", erased.Subjects)
	}
	return err
}
