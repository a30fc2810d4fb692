package auditcli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/audithttp"
	"bahi/internal/app"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
)

type trailAudit struct {
	app.Settings

	From      string    `placeholder:"DAY" help:"First day."`
	To        string    `placeholder:"DAY" help:"Last day."`
	Period    string    `placeholder:"P"   help:"Instead of --from and --to: a fiscal year such as \"FY 2026-27\", a year, or a month such as 2026-04."`
	By        string    `enum:"recorded,effective" default:"recorded" help:"Meaning of the days: when a change was recorded, or the date of the row."`
	Kind      string    `placeholder:"KIND" help:"Only accounts of a ledger (such as bank), its rows (bankrow), orders (clientorder), takadas (takada), the lock of the books (bookslock), or closed periods (period)."`
	ID        string    `name:"id" help:"Only this record of the kind."`
	Account   int64     `help:"Only this account and its rows."`
	User      string    `name:"by-user" help:"Only changes of this user: an actor such as user:<id>, or the id alone."`
	Party     string    `help:"Only if the account's name, or a text of the row, contains this."`
	Workspace uuid.UUID `help:"Workspace of the books. Without it, all."`
	Format    string    `enum:"csv,json,pdf" default:"csv" help:"csv, json or pdf."`
	Out       string    `short:"o" placeholder:"FILE" help:"File to write. Without it, standard output."`
}

// Run writes the report.
func (c trailAudit) Run(ctx context.Context, sys *app.System) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	var workspace *uuid.UUID
	if c.Workspace != uuid.Nil {
		workspace = &c.Workspace
	}
	fresh := &readmodels.At{}
	content, err := sys.Trail().Content(ctx, fresh, workspace, query)
	if err != nil {
		return err
	}
	if fresh.Stale() {
		position, _ := fresh.Position()
		fmt.Fprintf(c.Shell.Err, "The tables end at position %d, and so does this report: start a server to bring them up to date.\n", position)
	}
	if c.Out == "" {
		return written(ctx, c.Shell.Out, content)
	}
	file, err := os.OpenFile(c.Out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := written(ctx, file, content); err != nil {
		_ = file.Close()
		_ = os.Remove(c.Out) // otherwise a part would look like the whole
		return err
	}
	return file.Close()
}

func written(ctx context.Context, to io.Writer, content api.Content) error {
	out := bufio.NewWriter(to)
	if err := content.Write(ctx, out); err != nil {
		return err
	}
	return out.Flush()
}

// query returns the query of the report.
func (c trailAudit) query() (q audithttp.TrailQuery, err error) {
	q = audithttp.TrailQuery{Period: c.Period, By: c.By, Kind: auditview.Kind(c.Kind), ID: c.ID, Account: c.Account, User: c.User,
		Party: c.Party, Format: c.Format}
	for name, day := range map[string]struct {
		text string
		into *api.Optional[unit.Date]
	}{"from": {c.From, &q.From}, "to": {c.To, &q.To}} {
		if day.text == "" {
			continue
		}
		if day.into.Value, err = unit.ParseDate(day.text); err != nil {
			return q, fmt.Errorf("--%s: %w", name, err)
		}
		day.into.Set = true
	}
	return q, nil
}
