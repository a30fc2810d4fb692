package auditcli

import (
	"context"
	"errors"
	"net/url"
	"os"

	"bahi/internal/cli/remote"
)

type trailAudit struct {
	remote.Server

	From      string `placeholder:"DAY" help:"First day."`
	To        string `placeholder:"DAY" help:"Last day."`
	Period    string `placeholder:"P"   help:"Instead of --from and --to: a fiscal year such as \"FY 2026-27\", a year, or a month such as 2026-04."`
	By        string `enum:"recorded,effective" default:"recorded" help:"Meaning of the days: when a change was recorded, or the date of the row."`
	Kind      string `placeholder:"KIND" help:"Only accounts of a ledger (such as bank), its rows (bankrow), orders (clientorder), takadas (takada), the lock of the books (bookslock), or closed periods (period)."`
	ID        string `name:"id" help:"Only this record of the kind."`
	Account   string `placeholder:"N" help:"Only this account and its rows."`
	User      string `name:"by-user" help:"Only changes of this user: an actor such as user:<id>, or the id alone."`
	Party     string `help:"Only changes with this text in the account's name or in the row."`
	Workspace string `placeholder:"UUID" help:"Workspace of the books. Without it, all."`
	Format    string `enum:"csv,json,pdf" default:"csv" help:"Format: csv, json or pdf."`
	Out       string `short:"o" placeholder:"FILE" help:"File to write. Without it, standard output."`
}

// Run writes the report.
func (c trailAudit) Run(ctx context.Context) error {
	query := url.Values{}
	for name, value := range map[string]string{
		"from": c.From, "to": c.To, "period": c.Period, "by": c.By, "kind": c.Kind, "id": c.ID, "account": c.Account, "user": c.User,
		"party": c.Party, "workspace": c.Workspace, "format": c.Format,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	path := "/audit/trail?" + query.Encode()
	if c.Out == "" {
		return c.Print(ctx, path, c.Shell.Out)
	}
	file, err := os.OpenFile(c.Out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Print(ctx, path, file), file.Close()); err != nil {
		_ = os.Remove(c.Out) // otherwise a part would look like the whole
		return err
	}
	return nil
}
