package auditview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/opsview"
)

// Trails reads the audit trail of the books: the actor, time, reason and effect of each change.
//
// The log has the actors and the order of the changes. The versions in the projection have the effects of events. So the trail requires no
// records of its own, and cannot be disabled.
type Trails struct {
	Reader *readmodels.Reader

	// Look is the number of positions of the log in one step of a search, and Rows the number of rows of events; 0:
	// 20,000 and 1,000. A step never splits an event, so an event of many rows may double the number.
	Look, Rows int
}

const (
	defaultLook = 20_000
	defaultRows = 1_000
)

// Categories of streams in a trail.
var (
	lockKind     = bookslock.Kind.Category()
	accountKinds = func() map[string]bool {
		kinds := map[string]bool{}
		for _, l := range ledger.All {
			kinds[l.Accounts.Category()] = true
		}
		return kinds
	}()
	rowKinds = func() map[string]bool {
		kinds := map[string]bool{}
		for _, l := range ledger.All {
			kinds[l.Rows.Category()] = true
		}
		return kinds
	}()
)

// Kind is the kind of a changed record: an account of a ledger (bank), a row (bankrow), a client's order (clientorder), a takada, the lock
// of the books (bookslock), their closed periods (period).
type Kind string

// Kinds returns all kinds.
func Kinds() (all []Kind) {
	for _, l := range ledger.All {
		all = append(all, Kind(l.Accounts.Category()), Kind(l.Rows.Category()))
	}
	return append(append(all, Kind(order.Kind.Category()), Kind(takada.Kind.Category())), Kind(lockKind), Kind(periodKind))
}

// IsAccount reports whether the kind is a ledger's account.
func (k Kind) IsAccount() bool { return accountKinds[string(k)] }

// isRow reports whether the kind is a ledger's row.
func (k Kind) isRow() bool { return rowKinds[string(k)] }

// IsBooks reports whether the kind is about all books of a workspace: their lock, or their closed periods.
func (k Kind) IsBooks() bool { return string(k) == lockKind || string(k) == periodKind }

// TrailFilter narrows a trail. The zero TrailFilter selects everything.
type TrailFilter struct {
	Workspace *uuid.UUID // nil: all workspaces
	Kind      Kind       // "": all
	ID        string     // id of a record of that kind: an account, a row, a workspace
	Account   int64      // the account and its rows
	Actor     string     // user:<id>, api_key:<id>, or the id alone

	// Party is a part of the account's name or of a text in the row, before or after the change.
	Party string

	// First and Last bound the date of a row, an order or a takada before or after the change, or the last day of a lock or a closed
	// period. Accounts have no date, so a filter with a bound excludes them.
	First, Last *unit.Date
}

// Named is an account with its name at the time.
type Named struct {
	ID   int64  `json:"id" doc:"ID of the account"`
	Name string `json:"name" doc:"Name of the account"`
}

// Field is a changed field.
type Field struct {
	Field string          `json:"field" doc:"Name of the field, such as date, name or in_entries[0].amount"`
	From  json.RawMessage `json:"from"  doc:"Former value as JSON; null: none"`
	To    json.RawMessage `json:"to"    doc:"New value as JSON; null: none"`
}

// Change is a change of one record, with all its changed fields.
type Change struct {
	Position  event.Position `json:"position" doc:"Position in the log"`
	At        time.Time      `json:"recorded_at" doc:"Time when the event was recorded"`
	Workspace uuid.UUID      `json:"workspace" doc:"ID of the workspace"`
	Actor     string         `json:"actor" doc:"Actor, such as user:<id> or api_key:<id>"`
	Reason    string         `json:"reason,omitempty" doc:"Reason of the change; empty: none given"`
	Change    string         `json:"change" enum:"opened,renamed,deleted,added,edited,voided,reversed,paired,unpaired,locked,closed,reopened" doc:"Kind of the change"`
	Kind      Kind           `json:"kind" doc:"Kind of the record: an account, a row, the lock of the books, a closed period"`
	ID        string         `json:"id"     doc:"ID of the record"`
	Ledger    string         `json:"ledger,omitempty" doc:"Ledger of the record"`
	Account   *Named         `json:"account,omitempty" doc:"Account with its name at the time"`
	Date      *unit.Date     `json:"date,omitempty" doc:"Date of the row after the change, or before its deletion"`
	Fields    []Field        `json:"fields" doc:"Changed fields, before and after"`

	// The other fields are for [Restated].
	moves  []move
	ends   *unit.Date // the oldest date of a row that the deletion of an account removes
	opened time.Time  // when the account was opened
}

// move is an amount that a change adds to the balance from a date on.
type move struct {
	day        unit.Date
	cash, fine unit.Sum
}

// Begin waits until the projection is as fresh as at requires. It returns the position before the time from and the position at
// the time to. upTo does not exceed the position up to which a trail is complete.
func (v *Trails) Begin(ctx context.Context, at *readmodels.At, from, to *time.Time) (after, upTo event.Position, err error) {
	type span struct{ After, UpTo int64 }
	seen := at.After(0)
	s, err := readmodels.Row(ctx, v.Reader.From(seen, "books", "orders"), errNoSpan, pgx.RowToStructByPos[span], `
		select case when $1::timestamptz is null then 0 else log.position_at($1::timestamptz - interval '1 microsecond') end,
			case when $2::timestamptz is null then log.head() else log.position_at($2::timestamptz) end`, from, to)
	complete, _ := seen.Position()
	return event.Position(s.After), min(event.Position(s.UpTo), complete), err
}

var errNoSpan = errors.New("the log has no span")

// Walk reads a trail step by step.
type Walk struct {
	trails   *Trails
	filter   TrailFilter
	at, upTo event.Position
	pending  []logged // found events after at
	ahead    event.Position
}

// Walk begins a trail after a position. It reads the state as known at position upTo.
func (v *Trails) Walk(f TrailFilter, after, upTo event.Position) *Walk {
	return &Walk{trails: v, filter: f, at: after, upTo: upTo, ahead: after}
}

// Next returns the next changes, oldest first. It may return none although more follow. More is false at the end.
func (w *Walk) Next(ctx context.Context, at *readmodels.At) (changes []Change, more bool, err error) {
	at = at.AsKnownAt(w.upTo)
	if len(w.pending) == 0 && w.at < w.upTo {
		if w.pending, w.ahead, err = w.trails.events(ctx, at, w.filter, w.at, w.upTo); err != nil {
			return nil, false, err
		}
	}
	n := min(len(w.pending), cmp.Or(w.trails.Rows, defaultRows))
	if changes, err = w.trails.changes(ctx, at, w.filter, w.pending[:n]); err != nil {
		return nil, false, err
	}
	if w.pending = w.pending[n:]; len(w.pending) == 0 {
		w.at = w.ahead
	}
	return changes, len(w.pending) > 0 || w.at < w.upTo, nil
}

// logged is an event that a trail may show.
type logged struct {
	position event.Position
	stream   string
	kind     Kind
	at       time.Time
	meta     event.Meta
	data     json.RawMessage // payload of an account's or a lock's event
	row      int64           // the row that the event changes; 0: none
}

// streamCondition returns the SQL condition on events of the streams that the filter selects.
func (f TrailFilter) streamCondition() string {
	var ranges []string
	for _, kind := range slices.Concat(slices.Sorted(maps.Keys(accountKinds)), slices.Sorted(maps.Keys(rowKinds)),
		slices.Sorted(maps.Keys(recordKinds)), []string{lockKind, periodKind}) {
		if f.wants(kind) {
			ranges = append(ranges, `e.stream >= '`+kind+`-' and e.stream < '`+kind+`.'`)
		}
	}
	return `(` + strings.Join(ranges, " or ") + `)`
}

// wants reports whether the filter may select events of a category of streams.
func (f TrailFilter) wants(category string) bool {
	return f.Kind == "" || string(f.Kind) == category || slices.Contains(recordKinds[string(f.Kind)], category)
}

// selects reports whether the filter selects an event, by its metadata.
func (f TrailFilter) selects(meta event.Meta) bool {
	return (f.Workspace == nil || *f.Workspace == meta.Workspace) &&
		(f.Actor == "" || slices.Contains([]string{f.Actor, "user:" + f.Actor, "api_key:" + f.Actor}, meta.Actor))
}

// events returns the next events, and the position up to which they are complete.
func (v *Trails) events(ctx context.Context, at *readmodels.At, f TrailFilter, after, upTo event.Position) (events []logged,
	to event.Position, err error) {
	places, place := f.places()
	condition := f.streamCondition()
	if f.Workspace != nil { // a UUID has several textual forms
		condition += ` and (e.meta::text ilike '%' || @workspace || '%' or e.meta::text ilike '%' || replace(@workspace, '-', '') || '%'
			or position('\' in e.meta::text) > 0)`
	}
	if f.Actor != "" {
		condition += ` and (position(@actor in e.meta::text) > 0 or position('\' in e.meta::text) > 0)`
	}
	position, looked := `p.position`, `(select distinct q.position from (`+places+`) q (position) order by 1 limit 500) p
		left join log.event e on e.position = p.position and `+condition
	if to = upTo; places == "" {
		to, position = min(upTo, after+event.Position(v.look())), `e.position`
		looked = `(select * from log.event e where e.position > @after and e.position <= @upto and ` + condition + ` order by 1 limit 500) e`
	}
	args := pgx.NamedArgs{"after": int64(after), "upto": int64(to), "place": place, "actor": f.Actor}
	if f.Workspace != nil {
		args["workspace"] = f.Workspace.String()
	}
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "books", "orders"), toLogged, `select `+position+`, coalesce(e.stream, ''),
		coalesce(e.recorded_at, 'epoch'), coalesce(e.meta::text, '{}'), coalesce(e.data::text, '') from `+looked+` order by 1`, args)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == stepPlaces {
		to = found[len(found)-1].position
	}
	return slices.DeleteFunc(found, func(e logged) bool { return e.stream == "" || !f.selects(e.meta) }), to, nil
}

func (v *Trails) look() int { return cmp.Or(v.Look, defaultLook) }

// stepPlaces is the number of events, or of positions from the indexes, that one step looks at.
const stepPlaces = 500

// places returns SQL that uses indexes, and the value of its parameter @place. The SQL finds the positions between @after and @upto at
// which the filter's record may have changed. It is "" if the filter names no record.
func (f TrailFilter) places() (sql string, arg any) {
	id, _ := strconv.ParseInt(f.ID, 10, 64) // 0 finds no rows
	switch {
	case f.Kind.isRow() && f.ID != "":
		return placesOfRow, id
	case f.Kind.IsAccount() && f.ID != "":
		return placesOfAccount, id
	case f.Kind == Kind(order.Kind.Category()) && f.ID != "":
		return placesOfOrder, id
	case f.Kind == Kind(takada.Kind.Category()) && f.ID != "":
		return placesOfTakada, id
	case f.Kind.IsBooks() && f.ID != "":
		return placesOfStream, string(f.Kind) + "-" + f.ID
	case f.Kind.IsBooks() && f.Workspace != nil:
		return placesOfStream, string(f.Kind) + "-" + f.Workspace.String()
	case f.Account != 0:
		return placesOfAccount + ` union all ` + placesOfRows + ` union all ` + placesOfRecords, f.Account
	default:
		return "", nil
	}
}

// between returns SQL that bounds and sorts the positions of a step.
func between(position string) string {
	return position + ` > @after and ` + position + ` <= @upto order by 1 limit 500)`
}

// SQL of the first positions, in order.
var (
	placesOfStream = `(select l.position from log.event l where l.stream = @place and l.position > @after and l.position <= @upto
		order by l.revision limit 500)`
	placesOfRow  = `(select v.from_position from books.row_version v where v.row_id = @place and ` + between(`v.from_position`)
	placesOfRows = `(select p.position from books.balance_history p where p.account_id = @place and p.ordinal = 0 and ` + between(`p.position`)

	placesOfAccount = `(select n.from_position from books.account_name n where n.account_id = @place and ` + between(`n.from_position`) + `
		union all (select a.deleted_position from books.account a where a.id = @place and ` + between(`a.deleted_position`)
)

func toLogged(row pgx.CollectableRow) (e logged, err error) {
	var (
		position   int64
		meta, data string
	)
	if err := row.Scan(&position, &e.stream, &e.at, &meta, &data); err != nil {
		return e, err
	}
	e.position, e.at, e.data = event.Position(position), e.at.UTC(), json.RawMessage(data)
	if e.stream == "" { // the event at the position is not selected
		return e, nil
	}
	e.meta = opsview.MetaOf([]byte(meta))
	category, id := event.SplitStream(e.stream)
	if e.kind = Kind(category); e.kind.isRow() {
		e.row, _ = strconv.ParseInt(id, 10, 64) // 0, the id of no row, for an invalid id
	}
	return e, nil
}

// errUnknown is the error for a filter with an unknown account.
var errUnknown = fault.New(fault.NotFound, "Account not found")

// Account returns [fault.NotFound] if the workspace never had such an account; a nil workspace means any.
func (v *Trails) Account(ctx context.Context, at *readmodels.At, workspace *uuid.UUID, account int64) error {
	_, err := readmodels.Row(ctx, v.Reader.From(at, "books"), errUnknown, pgx.RowTo[int64], `
		select a.id from books.account a where a.id = $1 and ($2::uuid is null or a.workspace_id = $2)`, account, workspace)
	return err
}

// matches reports whether one of the texts contains the name of a party.
func matches(party string, texts ...string) bool {
	if party == "" {
		return true
	}
	party = strings.ToLower(party)
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), party) {
			return true
		}
	}
	return false
}
