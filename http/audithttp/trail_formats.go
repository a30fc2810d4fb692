package audithttp

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"bahi/domain/unit"
	"bahi/http/pdf"
	"bahi/http/sheet"
	"bahi/readmodels/auditview"
)

// writeJSON writes a [trail] while it reads the changes.
func (d *drawing) writeJSON(ctx context.Context, w io.Writer) error {
	separator := ""
	one := func(v any) error {
		text, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n%s", separator, text)
		}
		separator = ","
		return err
	}
	drawn, err := json.Marshal(d.drawn)
	if err != nil {
		return err
	}
	days, err := json.Marshal(d.days)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `{"drawn_from":%s,"days":%s,"changes":[`, drawn, days); err != nil {
		return err
	}
	if err := d.changes(ctx, func(c auditview.Change) error { return one(c) }); err != nil {
		return err
	}
	separator = ""
	if _, err := io.WriteString(w, "],\n\"restatements\":["); err != nil {
		return err
	}
	if err := d.restatements(ctx, func(r auditview.Restatement) error { return one(r) }); err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

// columns are those of the CSV. It has a line for each field of each change, a line for each restatement, and a last line
// with the state of the log.
var columns = []string{
	"section", "position", "recorded_at", "workspace", "actor", "reason", "change", "kind", "id", "ledger", "account_id", "account",
	"date", "field", "from", "to",
}

func (d *drawing) writeCSV(ctx context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, sheet.ByteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	err := d.changes(ctx, func(c auditview.Change) error {
		line := []string{
			"change", strconv.FormatUint(uint64(c.Position), 10), d.moment(c.At), c.Workspace.String(), sheet.Text(c.Actor), sheet.Text(c.Reason),
			c.Change, string(c.Kind), c.ID, c.Ledger,
			"", "", "", "", "", "",
		}
		if c.Account != nil {
			line[10], line[11] = strconv.FormatInt(c.Account.ID, 10), sheet.Text(c.Account.Name)
		}
		if c.Date != nil {
			line[12] = c.Date.String()
		}
		for _, f := range c.Fields {
			line[13], line[14], line[15] = f.Field, cellOf(f.From), cellOf(f.To)
			if err := out.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = d.restatements(ctx, func(r auditview.Restatement) error {
			return out.Write([]string{
				"restatement", strconv.FormatUint(uint64(r.Last), 10), "", r.Workspace.String(), "", counted(r), "moved", "closing", "", r.Ledger,
				strconv.FormatInt(r.Account.ID, 10), sheet.Text(r.Account.Name), r.Closing.String(), r.Unit, sumOf(r.From), sumOf(r.To),
			})
		})
	}
	if err == nil {
		err = out.Write([]string{
			"drawn_from", strconv.FormatUint(uint64(d.drawn.Position), 10), d.moment(d.drawn.RecordedAt), "", "", "", "", "store",
			d.drawn.Store.String(), "",
			"", "", "", "checkpoint", "", sheet.Text(d.drawn.Checkpoint),
		})
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

func (d *drawing) moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(d.Zone).Format("2006-01-02T15:04:05.000000Z07:00")
}

// cellOf returns a JSON value for a cell: numbers and booleans unchanged, texts without quotes, null as nothing.
func cellOf(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return sheet.Text(text)
	default:
		return string(value)
	}
}

func sumOf(s *unit.Sum) string {
	if s == nil {
		return ""
	}
	return s.String()
}

func counted(r auditview.Restatement) string {
	if r.Changes == 1 {
		return fmt.Sprintf("1 change, position %d", r.Last)
	}
	return fmt.Sprintf("%d changes, positions %d to %d", r.Changes, r.First, r.Last)
}

func (d *drawing) writePDF(ctx context.Context, w io.Writer) error {
	t := pdf.Trail{
		Title: "All books", Scope: d.scope(),
		Drawn: pdf.Drawn{
			StoreID: d.drawn.Store.String(), Position: uint64(d.drawn.Position), RecordedAt: d.drawn.RecordedAt, Checkpoint: d.drawn.Checkpoint,
		},
	}
	if d.filter.Workspace != nil {
		t.Title = "Books of workspace " + d.filter.Workspace.String()
	}
	t.Changes = func(take func(pdf.TrailChange) error) error {
		return d.changes(ctx, func(c auditview.Change) error {
			one := pdf.TrailChange{At: c.At.In(d.Zone), Position: uint64(c.Position), What: what(c), Who: c.Actor, Reason: c.Reason}
			for _, f := range c.Fields {
				one.Fields = append(one.Fields, pdf.TrailField{Name: f.Field, From: plain(f.From), To: plain(f.To)})
			}
			return take(one)
		})
	}
	t.Closings = func(take func(pdf.TrailClosing) error) error {
		return d.restatements(ctx, func(r auditview.Restatement) error {
			closing := pdf.TrailClosing{
				Account: fmt.Sprintf("%s (%s %d)", r.Account.Name, r.Ledger, r.Account.ID), Closing: r.Closing.Time().Format("02 Jan 2006"),
				Moved: counted(r),
				From:  amount(r.Unit, r.From), To: amount(r.Unit, r.To),
			}
			if r.FiscalYear != "" {
				closing.Closing += ", end of " + r.FiscalYear
			}
			return take(closing)
		})
	}
	return pdf.WriteTrail(w, t)
}

// scope returns words for the trail's period and filters.
func (d *drawing) scope() []string {
	by := "Recorded"
	if d.days.By == effective {
		by = "Rows dated"
	}
	text := by + " at any time"
	first, last := "the beginning", "now"
	if d.days.From != nil {
		first = d.days.From.Time().Format("02 Jan 2006")
	}
	if d.days.To != nil {
		last = d.days.To.Time().Format("02 Jan 2006")
	}
	if d.days.From != nil || d.days.To != nil {
		text = by + " from " + first + " to " + last
	}
	if d.days.Name != "" {
		text = d.days.Name + ": " + text
	}
	scope := []string{text}
	var only []string
	for _, f := range []struct{ name, value string }{
		{"kind", string(d.filter.Kind)}, {"id", d.filter.ID}, {"user", d.filter.Actor}, {"party", d.filter.Party},
	} {
		if f.value != "" {
			only = append(only, f.name+" "+f.value)
		}
	}
	if d.filter.Account != 0 {
		only = append(only, fmt.Sprintf("account %d", d.filter.Account))
	}
	if only != nil {
		scope = append(scope, "Only "+strings.Join(only, ", "))
	}
	return scope
}

// recordNames are the display names of records other than accounts and rows.
var recordNames = map[auditview.Kind]string{"clientorder": "Order", "takada": "Takada"}

// what returns the record and the kind of a change in words.
func what(c auditview.Change) string {
	switch {
	case c.Change == "closed":
		return "Period closed through " + plain(c.Fields[0].To)
	case c.Change == "reopened":
		return "Period through " + plain(c.Fields[0].From) + " reopened"
	case c.Account == nil && string(c.Fields[0].To) == "null":
		return "Books unlocked"
	case c.Account == nil:
		return "Books locked"
	case c.Kind.IsRecord():
		return fmt.Sprintf("%s %s of %s (%s %d) %s", recordNames[c.Kind], c.ID, c.Account.Name, c.Ledger, c.Account.ID, c.Change)
	case c.Date == nil: // every row bears a date
		return fmt.Sprintf("Account %s (%s %s) %s", c.Account.Name, c.Ledger, c.ID, c.Change)
	default:
		return fmt.Sprintf("Row %s of %s (%s %d) %s", c.ID, c.Account.Name, c.Ledger, c.Account.ID, c.Change)
	}
}

// plain returns a JSON value for people.
func plain(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	default:
		return string(bytes.TrimSpace(value))
	}
}

func amount(name string, s *unit.Sum) string {
	switch {
	case s == nil:
		return "no such account"
	case name == "cash":
		return pdf.Rupees.Text(s.Decimal)
	default:
		return pdf.FineGrams.Text(s.Decimal)
	}
}
