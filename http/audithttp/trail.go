package audithttp

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
	"bahi/readmodels/ledgerview"
)

// recorded returns the time at which an event was recorded.
type recorded interface {
	RecordedAt(ctx context.Context, position event.Position) (time.Time, error)
}

// TrailReport writes the audit trail: the changes of the books with author, old and new values, time and reason, and the changed closing
// balances.
type TrailReport struct {
	Trails *auditview.Trails
	Books  *ledgerview.Views
	Log    recorded
	Signed *auditview.Proofs // nil: nothing is signed
	Store  uuid.UUID
	Zone   *time.Location // the workshop's time zone, in which days begin
	Now    func() time.Time
}

// TrailQuery selects the changes and the format.
type TrailQuery struct {
	From    api.Optional[unit.Date] `query:"from"    doc:"First day"`
	To      api.Optional[unit.Date] `query:"to"      doc:"Last day"`
	Period  string                  `query:"period"  maxLength:"20"  doc:"In place of the two: a fiscal year such as FY 2026-27 (1 April to 31 March), a calendar year such as 2026, or a month such as 2026-04"`
	By      string                  `query:"by"      enum:"recorded,effective" default:"recorded" doc:"recorded: select by the day of the change; effective: by the date of the row before or after it"`
	Kind    auditview.Kind          `query:"kind"    doc:"Only accounts, rows, orders, takadas, the lock of the books, or closed periods"`
	ID      string                  `query:"id"      maxLength:"36"  doc:"Only this record of the kind"`
	Account int64                   `query:"account" minimum:"1"     doc:"Only this account and its rows"`
	User    string                  `query:"user"    maxLength:"200" doc:"Only changes of this user: an actor such as user:<id>, or the id alone"`
	Party   string                  `query:"party"   maxLength:"200" doc:"Only changes with this part of the account's name or of a text of the row"`
	Format  string                  `query:"format"  enum:"json,csv,pdf" default:"json" doc:"Format of the response"`
}

// days are the first and the last day of a trail.
type days struct {
	From *unit.Date `json:"from,omitempty" doc:"First day; null: the beginning"`
	To   *unit.Date `json:"to,omitempty" doc:"Last day; null: today"`
	By   string     `json:"by" enum:"recorded,effective" doc:"Kind of dates: recorded or effective"`
	Name string     `json:"period,omitempty" doc:"Requested period, such as FY 2026-27"`
}

// drawn is the state of the log that a trail shows.
type drawn struct {
	Store      uuid.UUID      `json:"store_id" doc:"ID of the log"`
	Position   event.Position `json:"position"             doc:"Position up to which the trail is complete"`
	RecordedAt time.Time      `json:"recorded_at,omitzero" doc:"Time of the event at this position; absent at position 0"`
	Checkpoint string         `json:"checkpoint,omitempty" doc:"The newest signed checkpoint that covers no later event (C2SP tlog-checkpoint)"`
}

// trail is the report as JSON.
type trail struct {
	Drawn        drawn                   `json:"drawn_from" doc:"Log and position of the trail"`
	Days         days                    `json:"days" doc:"Period of the trail"`
	Changes      []auditview.Change      `json:"changes"      doc:"Oldest first"`
	Restatements []auditview.Restatement `json:"restatements" doc:"Closing balances of months that the changes moved after the month was over"`
}

// drawing is a report before it is written.
type drawing struct {
	*TrailReport

	at     *readmodels.At
	filter auditview.TrailFilter
	days   days
	after  event.Position
	drawn  drawn
	moved  auditview.Restated
}

// kindNames returns the kinds of records in a trail.
func kindNames() (names []string) {
	for _, k := range auditview.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// kind is views.Kind in the OpenAPI document.
type kind string

// Schema implements huma's SchemaProvider.
func (kind) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, name := range kindNames() {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// trail registers the operation of the report.
func (t *TrailReport) trail(a *api.API) {
	a.ShowAs(reflect.TypeFor[auditview.Kind](), reflect.TypeFor[kind]())
	api.Download(a, api.Op{
		ID: "read-trail", Method: "GET", Path: "/audit/trail",
		Summary: "Read the trail of all changes of the books. Each change has its actor, time, reason and the fields before and after. " +
			"The trail ends with the restated closing balances.",
		Tags: tags, Area: area, Limit: "ledger_pdf", Reads: []string{"books", "orders"}, StrictQuery: true,
	}, map[string]any{jsonType: trail{}, "text/csv": nil, "application/pdf": nil}, func(ctx context.Context, in *struct {
		TrailQuery
		Workspace api.Optional[uuid.UUID] `query:"workspace" doc:"ID of a workspace, for operators only; absent: all workspaces"`
	}) (api.Content, error) {
		of, _, err := scope(ctx, in.Workspace)
		if err != nil {
			return api.Content{}, err
		}
		return t.Content(ctx, api.At(ctx), of, in.TrailQuery)
	})
}

// Content returns the report of a workspace's books; nil means all books.
func (t *TrailReport) Content(ctx context.Context, at *readmodels.At, workspace *uuid.UUID, q TrailQuery) (api.Content, error) {
	d := &drawing{TrailReport: t, at: at, moved: auditview.Restated{Zone: t.Zone}}
	var err error
	if d.days, err = q.days(); err != nil {
		return api.Content{}, err
	}
	if d.filter, err = q.filter(workspace); err != nil {
		return api.Content{}, err
	}
	var from, to *time.Time
	if d.days.By == effective {
		d.filter.First, d.filter.Last = d.days.From, d.days.To
	} else if from, to, err = t.moments(d.days); err != nil {
		return api.Content{}, err
	}
	if q.Account != 0 {
		if err := t.Trails.Account(ctx, at, workspace, q.Account); err != nil {
			return api.Content{}, err
		}
	}
	if d.after, d.drawn.Position, err = t.Trails.Begin(ctx, at, from, to); err != nil {
		return api.Content{}, err
	}
	d.drawn.Store = t.Store
	if d.drawn.RecordedAt, err = t.Log.RecordedAt(ctx, d.drawn.Position); err != nil {
		return api.Content{}, err
	}
	d.drawn.RecordedAt = d.drawn.RecordedAt.In(t.Zone)
	if t.Signed != nil {
		if d.drawn.Checkpoint, err = t.Signed.Upto(ctx, d.drawn.Position); err != nil {
			return api.Content{}, err
		}
	}
	switch q.Format {
	case "csv":
		return api.Content{Type: "text/csv; charset=utf-8", Name: "audit-trail.csv", Drawn: true, Write: d.writeCSV}, nil
	case "pdf":
		return api.Content{Type: "application/pdf", Name: "audit-trail.pdf", Drawn: true, Write: d.writePDF}, nil
	default:
		return api.Content{Type: jsonType, Drawn: true, Write: d.writeJSON}, nil
	}
}

const effective = "effective"

// days returns the period of the query.
func (q TrailQuery) days() (days, error) {
	d := days{From: q.From.Get(), To: q.To.Get(), By: q.By, Name: q.Period}
	d.By = cmp.Or(d.By, "recorded")
	if q.Period != "" {
		if d.From != nil || d.To != nil {
			return d, fault.Wrong("period", "cannot be given together with from or to")
		}
		first, last, ok := period(q.Period)
		if !ok {
			return d, fault.Wrong("period", "expected a fiscal year such as FY 2026-27, a year such as 2026, or a month such as 2026-04")
		}
		d.From, d.To = &first, &last
	}
	if d.From != nil && d.To != nil && *d.From > *d.To {
		return d, fault.Wrong("from", "must not be after to")
	}
	return d, nil
}

// period parses FY 2026-27, 2026 or 2026-04. India's fiscal years begin on 1 April.
func period(text string) (first, last unit.Date, ok bool) {
	day := func(year, month int) unit.Date {
		return unit.DateOf(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC))
	}
	years, fiscal := strings.CutPrefix(text, "FY")
	years = strings.TrimPrefix(years, " ")
	head, tail, two := strings.Cut(years, "-")
	year, err := strconv.Atoi(head)
	if err != nil || len(head) != 4 || year < 1900 || year > 2198 {
		return 0, 0, false
	}
	switch next := fmt.Sprintf("%04d", year+1); {
	case fiscal && two && (tail == next || tail == next[2:]):
		return day(year, 4), day(year+1, 4) - 1, true
	case fiscal:
		return 0, 0, false
	case !two:
		return day(year, 1), day(year+1, 1) - 1, true
	}
	month, err := time.Parse("01", tail)
	if err != nil {
		return 0, 0, false
	}
	return day(year, int(month.Month())), day(year, int(month.Month())+1) - 1, true
}

// moments returns when the days begin and end in the workshop's zone.
func (t *TrailReport) moments(d days) (from, to *time.Time, err error) {
	begins := func(day unit.Date) *time.Time {
		y, m, dd := day.Time().Date()
		at := time.Date(y, m, dd, 0, 0, 0, 0, t.Zone)
		return &at
	}
	if d.From != nil {
		if from = begins(*d.From); from.After(t.Now()) {
			field := "from"
			if d.Name != "" {
				field = "period"
			}
			return nil, nil, fault.Wrong(field, "must not be in the future")
		}
	}
	if d.To != nil {
		end := begins(*d.To + 1).Add(-time.Microsecond)
		to = &end
	}
	return from, to, nil
}

// filter refuses a contradictory query: an empty trail would claim that there were no changes.
func (q TrailQuery) filter(workspace *uuid.UUID) (auditview.TrailFilter, error) {
	f := auditview.TrailFilter{Workspace: workspace, Kind: q.Kind, ID: q.ID, Account: q.Account, Actor: q.User,
		Party: strings.TrimSpace(q.Party)}
	switch {
	case q.Kind != "" && !slices.Contains(auditview.Kinds(), q.Kind): // from the shell; HTTP refuses it earlier
		return f, fault.Wrong("kind", "expected one of "+strings.Join(kindNames(), ", "))
	case q.ID != "" && q.Kind == "":
		return f, fault.Wrong("id", "requires kind")
	case q.Kind.IsBooks() && q.Account != 0:
		return f, fault.Wrong("account", "has no lock of its own")
	case q.Kind.IsBooks() && f.Party != "":
		return f, fault.Wrong("party", "has no lock of its own")
	case strings.ContainsAny(q.User, "@ "):
		return f, fault.Wrong("user", "expected an id, or an actor such as user:<id>: names and addresses are sealed in the log")
	case q.Kind.IsAccount() && q.By == effective:
		return f, fault.Wrong("by", "accounts bear no day, only rows do and the lock")
	}
	if q.ID == "" {
		return f, nil
	}
	if q.Kind.IsBooks() {
		id, err := uuid.Parse(q.ID)
		if err != nil {
			return f, fault.Wrong("id", "expected a workspace's id")
		}
		f.ID = id.String()
		return f, nil
	}
	id, err := strconv.ParseInt(q.ID, 10, 64)
	if err != nil || id < 1 {
		return f, fault.Wrong("id", "expected a number")
	}
	f.ID = strconv.FormatInt(id, 10)
	return f, nil
}

// changes calls take for each change, oldest first.
func (d *drawing) changes(ctx context.Context, take func(auditview.Change) error) error {
	walk := d.Trails.Walk(d.filter, d.after, d.drawn.Position)
	for more := true; more; {
		var (
			found []auditview.Change
			err   error
		)
		if found, more, err = walk.Next(ctx, d.at); err != nil {
			return err
		}
		for _, c := range found {
			d.moved.Add(c)
			if err := take(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// restatements calls take for each closing balance that the changes have moved. The caller runs changes first.
func (d *drawing) restatements(ctx context.Context, take func(auditview.Restatement) error) error {
	return d.moved.Each(ctx, d.at, d.Books, take)
}
