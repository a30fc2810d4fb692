package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/fault"
	ledgers "bahi/domain/ledger"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ops"
)

// Trails answers who changed what in the books, from what to what, when and why.
//
// The log says who did what, in its order; the versions in the books say what became of it, and whether it
// stood at all. So nothing has to be kept for the trail, and nothing can switch it off.
type Trails struct {
	Reader *readmodels.Reader
	Log    ops.Log // nil: it is in the same database

	// Look is how many positions of the log are looked at in one go, and Rows how many rows of them are read
	// at once; 0: 20,000 and 1,000. An event is taken whole, so one of many rows may add as many again.
	Look, Rows int
}

const (
	defaultLook = 20_000
	defaultRows = 1_000
)

// What a trail tells of, by the kinds of streams. The rows of a bulk are told of as rows.
var (
	lockKind     = bookslock.Kind.Category()
	accountKinds = func() map[string]bool {
		kinds := map[string]bool{}
		for _, l := range ledgers.All {
			kinds[l.Accounts.Category()] = true
		}
		return kinds
	}()
	rowKinds = func() map[string]string {
		kinds := map[string]string{}
		for _, l := range ledgers.All {
			row := l.Rows.Category()
			kinds[row], kinds[l.Bulks.Category()] = row, row
		}
		return kinds
	}()
)

// Kind is what a change is of: an account of a ledger (bank), a row (bankrow), the lock of the books (bookslock).
type Kind string

// Kinds lists them all.
func Kinds() (all []Kind) {
	for _, l := range ledgers.All {
		all = append(all, Kind(l.Accounts.Category()), Kind(l.Rows.Category()))
	}
	return append(all, Kind(lockKind))
}

// IsAccount reports whether it is a ledger's account.
func (k Kind) IsAccount() bool { return accountKinds[string(k)] }

// IsLock reports whether it is the lock of the books.
func (k Kind) IsLock() bool { return string(k) == lockKind }

// TrailFilter narrows a trail. The zero TrailFilter is everything.
type TrailFilter struct {
	Workspace *uuid.UUID // whose books; nil: everybody's
	Kind      Kind       // "": all
	ID        string     // of that kind: an account's, a row's, a workspace's
	Account   int64      // the account and its rows
	Actor     string     // who, such as user:<id> or api_key:<id>; or the id alone

	// Party is a part of the account's name or of a text in the row, before or after the change.
	Party string

	// First and Last are the days that a row bore before or after the change, or up to which a lock reaches.
	// Accounts have no such day, and are left out where one of the two is set.
	First, Last *unit.Date
}

// Named is an account as it was called when something happened.
type Named struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Field is one thing that a change changed.
type Field struct {
	Field string          `json:"field" doc:"Such as date, name or in_entries[0].amount"`
	From  json.RawMessage `json:"from"  doc:"As JSON; null: it was not there"`
	To    json.RawMessage `json:"to"    doc:"As JSON; null: it is not there"`
}

// Change is one thing that was changed, with all that was changed of it.
type Change struct {
	Position  event.Position `json:"position" doc:"In the log"`
	At        time.Time      `json:"recorded_at"`
	Workspace uuid.UUID      `json:"workspace"`
	Actor     string         `json:"actor"`
	Reason    string         `json:"reason,omitempty"`
	Change    string         `json:"change" enum:"opened,renamed,deleted,added,edited,voided,reversed,locked"`
	Kind      Kind           `json:"kind" doc:"Of the record: an account, a row, the lock of the books"`
	ID        string         `json:"id"     doc:"Of the record"`
	Ledger    string         `json:"ledger,omitempty"`
	Account   *Named         `json:"account,omitempty" doc:"As it was called then"`
	Date      *unit.Date     `json:"date,omitempty" doc:"The row's, after the change, or before it was deleted"`
	Fields    []Field        `json:"fields"`

	// What the change counts is for who looks for closing balances that it moved.
	moves    []move
	ends     *unit.Date     // the account with all its rows, of which this is the oldest day
	opened   time.Time      // the account
	openedAt event.Position // in the log
}

// move is what a change adds to the balance from a day on.
type move struct {
	day        unit.Date
	cash, fine unit.Sum
}

// Begin waits until the books are as fresh as the context wants, and answers the position up to which a
// trail is complete then, and between which positions lie the moments from and to, both included.
func (v *Trails) Begin(ctx context.Context, from, to *time.Time) (after, upTo event.Position, err error) {
	if v.Log != nil {
		return v.beginInLog(ctx, from, to)
	}
	type span struct{ After, UpTo int64 }
	s, err := readmodels.Row(ctx, v.Reader, errNoSpan, pgx.RowToStructByPos[span], `
		select case when $1::timestamptz is null then 0 else log.position_at($1::timestamptz - interval '1 microsecond') end,
			case when $2::timestamptz is null then log.head() else log.position_at($2::timestamptz) end
		from (select count(*) from books.account where false) the_books`, from, to)
	complete, _ := readmodels.FreshnessOf(ctx).Position()
	return event.Position(s.After), min(event.Position(s.UpTo), complete), err
}

var errNoSpan = errors.New("the log has no span")

// Walk is a trail on its way.
type Walk struct {
	trails   *Trails
	filter   TrailFilter
	at, upTo event.Position
	pending  []logged // found already, after at
	ahead    event.Position

	opened map[event.Position]time.Time // when accounts were, by where; for a log that is not in Postgres
}

// Walk begins a trail behind a position. Its reads are of what was known at the position up to which it goes.
func (v *Trails) Walk(f TrailFilter, after, upTo event.Position) *Walk {
	return &Walk{trails: v, filter: f, at: after, upTo: upTo, ahead: after}
}

// Next answers the changes that follow, oldest first; there may be none though more follow. More is false when
// nothing is left.
func (w *Walk) Next(ctx context.Context) (changes []Change, more bool, err error) {
	ctx = readmodels.Past(ctx, w.upTo)
	if len(w.pending) == 0 && w.at < w.upTo {
		if w.pending, w.ahead, err = w.trails.events(ctx, w.filter, w.at, w.upTo); err != nil {
			return nil, false, err
		}
	}
	rows, n := 0, 0
	for n < len(w.pending) && rows < cmp.Or(w.trails.Rows, defaultRows) {
		rows += len(w.pending[n].rows)
		n++
	}
	if changes, err = w.trails.changes(ctx, w.filter, w.pending[:n]); err != nil {
		return nil, false, err
	}
	if w.trails.Log != nil {
		if err := w.date(ctx, changes); err != nil {
			return nil, false, err
		}
	}
	if w.pending = w.pending[n:]; len(w.pending) == 0 {
		w.at = w.ahead
	}
	return changes, len(w.pending) > 0 || w.at < w.upTo, nil
}

// logged is an event of which a trail may tell.
type logged struct {
	position event.Position
	stream   string
	kind     Kind
	at       time.Time
	meta     event.Meta
	data     json.RawMessage // of an account or a lock
	rows     []int64         // that it may concern
}

// loggedColumns are of an event e. The rows of a bulk are new ones, numbered from the bulk's id on, and those
// that they take back.
const loggedColumns = `@.position, coalesce(e.stream, ''), coalesce(e.recorded_at, 'epoch'), coalesce(e.meta::text, '{}'),
	case when e.data -> 'rows' is null then coalesce(e.data::text, '') else '' end, coalesce(json_array_length(e.data -> 'rows'), 0),
	(select array_agg((r ->> 'reverses')::bigint) from json_array_elements(e.data -> 'rows') r where r ->> 'reverses' is not null)`

// told is the condition on events of the streams of which the filter wants to hear. It may let more through, but nothing less
// than [TrailFilter.hears], which reads metadata as the books do: what SQL reads in other ways may be what somebody hopes for who wrote
// them past Bahi.
func (f TrailFilter) told() string {
	var ranges []string
	for _, kind := range slices.Concat(slices.Sorted(maps.Keys(accountKinds)), slices.Sorted(maps.Keys(rowKinds)), []string{lockKind}) {
		if f.wants(kind) {
			in := `e.stream >= '` + kind + `-' and e.stream < '` + kind + `.'`
			if rowKinds[kind] == kind {
				in += ` and ` + decisive
			}
			ranges = append(ranges, in)
		}
	}
	return `(` + strings.Join(ranges, " or ") + `)`
}

// wants reports whether the filter wants to hear of a category of streams.
func (f TrailFilter) wants(category string) bool {
	return f.Kind == "" || string(f.Kind) == category || string(f.Kind) == rowKinds[category]
}

// decisive is the condition on a row's event that it does not only carry out what another one decides, in whatever letters that is said.
const decisive = `(e.meta ->> 'of' is null or e.meta ->> 'of' !~ '^[1-9]' or exists (select from json_object_keys(e.meta) k where k <> 'of' and lower(k) = 'of'))`

// hears says whether the filter wants to hear of an event, by its stream and what it says of itself. Rows' events that only carry out what
// is decided are told of with that.
func (f TrailFilter) hears(stream string, meta event.Meta) bool {
	category, _ := event.SplitStream(stream)
	return (meta.Of == 0 || rowKinds[category] != category) && (f.Workspace == nil || *f.Workspace == meta.Workspace) &&
		(f.Actor == "" || slices.Contains([]string{f.Actor, "user:" + f.Actor, "api_key:" + f.Actor}, meta.Actor))
}

// events answers the next events, and the position up to which they are all.
func (v *Trails) events(ctx context.Context, f TrailFilter, after, upTo event.Position) (events []logged, to event.Position, err error) {
	to = upTo
	args := []any{int64(after), int64(upTo)}
	condition := f.told()
	filter := func(more string, value any) {
		args = append(args, value)
		condition += fmt.Sprintf(" and "+more, len(args))
	}
	places, arg := f.places()
	if arg != nil {
		args = append(args, arg)
	}
	if v.Log != nil {
		return v.eventsInLog(ctx, f, places, args, after, upTo)
	}
	if f.Workspace != nil { // a UUID has several forms
		filter(`(e.meta::text ilike '%%' || $%[1]d || '%%' or e.meta::text ilike '%%' || replace($%[1]d, '-', '') || '%%' or position('\' in e.meta::text) > 0)`, f.Workspace.String())
	}
	if f.Actor != "" {
		filter(`(position($%d in e.meta::text) > 0 or position('\' in e.meta::text) > 0)`, f.Actor)
	}
	var looked string
	if places != "" {
		looked = `(select q.position from (` + places + `) q (position) order by 1 limit 500) p left join log.event e on e.position = p.position and ` + condition
	} else {
		to = min(upTo, after+event.Position(v.look()))
		args[1] = int64(to)
		looked = `(select * from log.event e where e.position > $1 and e.position <= $2 and ` + condition + ` order by 1 limit 500) e`
	}
	// The books are named so that their reader waits for them.
	found, err := readmodels.Rows(ctx, v.Reader, toLogged, `select l.* from (select count(*) from books.account where false) the_books,
		lateral (select `+strings.ReplaceAll(loggedColumns, "@", map[bool]string{true: "p", false: "e"}[places != ""])+` from `+looked+` order by 1) l`, args...)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == stepPlaces {
		to = found[len(found)-1].position
	}
	return slices.DeleteFunc(found, func(e logged) bool { return e.stream == "" || !f.hears(e.stream, e.meta) }), to, nil
}

func (v *Trails) look() int { return cmp.Or(v.Look, defaultLook) }

// stepPlaces is how many events, or places of what the filter names, are looked at in one go.
const stepPlaces = 500

// places answers the SQL of the positions between $1 and $2 at which something can have happened to what the
// filter names, found by indexes, and what $3 is; none when it names nothing.
func (f TrailFilter) places() (sql string, arg any) {
	id, _ := strconv.ParseInt(f.ID, 10, 64) // of what has no number there is nothing
	switch {
	case rowKinds[string(f.Kind)] != "" && f.ID != "":
		return placesOfRow, id
	case f.Kind.IsAccount() && f.ID != "":
		return placesOfAccount, id
	case f.Kind.IsLock() && f.ID != "":
		return placesOfStream, bookslock.Kind.Stream(f.ID)
	case f.Kind.IsLock() && f.Workspace != nil:
		return placesOfStream, bookslock.Kind.Stream(f.Workspace.String())
	case f.Account != 0:
		return placesOfAccount + ` union all ` + placesOfRows, f.Account
	default:
		return "", nil
	}
}

// Each answers the first ones, in order.
const (
	placesOfStream = `(select l.position from log.event l where l.stream = $3 and l.position > $1 and l.position <= $2 order by l.revision limit 500)`
	placesOfRow    = `(select v.from_position from books.row_version v where v.row_id = $3 and v.from_position > $1 and v.from_position <= $2 order by 1 limit 500)`
	placesOfRows   = `(select p.position from books.posting p where p.account_id = $3 and p.nth = 0 and p.position > $1 and p.position <= $2 order by 1 limit 500)`

	placesOfAccount = `(select n.from_position from books.account_name n where n.account_id = $3 and n.from_position > $1 and n.from_position <= $2 order by 1 limit 500)
		union all (select a.deleted_position from books.account a where a.id = $3 and a.deleted_position > $1 and a.deleted_position <= $2)`
)

func toLogged(row pgx.CollectableRow) (e logged, err error) {
	var (
		position   int64
		meta, data string
		posted     int
		reversed   []int64
	)
	if err := row.Scan(&position, &e.stream, &e.at, &meta, &data, &posted, &reversed); err != nil {
		return e, err
	}
	e.position, e.at, e.data = event.Position(position), e.at.UTC(), json.RawMessage(data)
	if e.stream == "" { // it is not what was asked for
		return e, nil
	}
	e.meta = ops.MetaOf(event.Stored{Meta: []byte(meta)})
	e.concern(posted, reversed)
	return e, nil
}

// concern notes what the event is about: of rows, those that it posts, or its stream's own, and those that it takes back.
func (e *logged) concern(posted int, reversed []int64) {
	category, id := event.SplitStream(e.stream)
	if e.kind = Kind(rowKinds[category]); e.kind == "" {
		e.kind = Kind(category)
		return
	}
	first, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return // no row has a number like that, so nothing happened to one
	}
	for n := range max(posted, 1) {
		e.rows = append(e.rows, first+int64(n))
	}
	e.rows = append(e.rows, reversed...)
}

// errUnknown answers a filter that names what there is not.
var errUnknown = fault.New(fault.NotFound, "Account not found")

// Account answers [fault.NotFound] when there is no such account, or never was, in the workspace or, when it is
// nil, anywhere.
func (v *Trails) Account(ctx context.Context, workspace *uuid.UUID, account int64) error {
	_, err := readmodels.Row(ctx, v.Reader, errUnknown, pgx.RowTo[int64], `
		select a.id from books.account a where a.id = $1 and ($2::uuid is null or a.workspace_id = $2)`, account, workspace)
	return err
}

// matches says whether a party is named in one of the texts.
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
