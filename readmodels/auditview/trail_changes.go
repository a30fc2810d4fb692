package auditview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// changes returns the changes of events.
func (v *Trails) changes(ctx context.Context, at *readmodels.At, f TrailFilter, events []logged) ([]Change, error) {
	versions, err := v.versions(ctx, at, events)
	if err != nil {
		return nil, err
	}
	accounts, err := v.accounts(ctx, at, events)
	if err != nil {
		return nil, err
	}
	records, err := v.records(ctx, at, events)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, e := range events {
		var found []Change
		switch {
		case e.kind.IsBooks():
			change := lockChange
			if string(e.kind) == periodKind {
				change = periodChange
			}
			if c, ok, err := change(f, e); err != nil {
				return nil, err
			} else if ok {
				found = append(found, c)
			}
		case e.kind.IsAccount():
			if c, ok := accountChange(f, e, accounts[e.position]); ok {
				found = append(found, c)
			}
		case e.kind.IsRecord(): // as below
		default:
			if version, known := versions[place{e.position, e.row}]; known && (f.Workspace == nil || version.workspace == *f.Workspace) {
				if c, ok := version.change(f, e); ok {
					found = append(found, c)
				}
			}
		}
		for _, r := range records[e.position] {
			if c, ok := r.change(f, e); ok {
				found = append(found, c)
			}
		}
		for _, c := range found {
			if f.Kind == "" || c.Kind == f.Kind && (f.ID == "" || c.ID == f.ID) {
				changes = append(changes, c)
			}
		}
	}
	return changes, nil
}

// place is a row and the position at which a version of it begins.
type place struct {
	position event.Position
	row      int64
}

// versioned is a version of a row with the previous version.
type versioned struct {
	place

	account   Named
	ledger    string
	workspace uuid.UUID
	opened    time.Time
	now, was  state
}

// state is a version of a row with its effect on the account.
type state struct {
	book.Row

	cash, fine unit.Sum
}

const stateSums = `(%[1]s.in_cash - %[1]s.out_cash)::text, (%[1]s.in_fine - %[1]s.out_fine)::text`

var versionsSQL = `
	select w.position, w.row_id, v.account_id, n.name, a.ledger, a.workspace_id, coalesce(o.recorded_at, 'epoch'),
		` + columnsOf("v") + `, ` + columnsOf("b") + `
	from unnest($1::bigint[], $2::bigint[]) w (position, row_id)
	join books.row_version v on v.row_id = w.row_id and v.from_position = w.position
	join books.account a on a.id = v.account_id
	left join log.event o on o.position = a.opened_position
	join lateral (
		select n.name from books.account_name n where n.account_id = v.account_id and n.from_position <= w.position
		order by n.from_position desc limit 1
	) n on true
	left join books.row_version b on b.row_id = v.row_id and b.to_position = v.from_position`

func (v *Trails) versions(ctx context.Context, at *readmodels.At, events []logged) (map[place]versioned, error) {
	var positions, rows []int64
	for _, e := range events {
		if e.row != 0 {
			positions, rows = append(positions, int64(e.position)), append(rows, e.row)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "books"), toVersioned, versionsSQL, positions, rows)
	all := make(map[place]versioned, len(found))
	for _, one := range found {
		all[one.place] = one
	}
	return all, err
}

func columnsOf(version string) string {
	return ledgerview.RowColumns(version) + `, ` + fmt.Sprintf(stateSums, version)
}

func toVersioned(row pgx.CollectableRow) (v versioned, err error) {
	var (
		position int64
		now, was scanned
	)
	err = row.Scan(slices.Concat(
		[]any{&position, &v.row, &v.account.ID, &v.account.Name, &v.ledger, &v.workspace, &v.opened}, now.into(), was.into(),
	)...)
	v.position, v.now, v.was = event.Position(position), now.state(v.account.ID), was.state(v.account.ID)
	return v, err
}

// scanned receives a state's columns, which are all null without a version.
type scanned struct {
	ledgerview.RowScan

	cash, fine *unit.Sum
}

func (s *scanned) into() []any { return append(s.Into(), &s.cash, &s.fine) }

func (s *scanned) state(account int64) state {
	if s.cash == nil {
		return state{}
	}
	return state{Row: s.Row(account), cash: *s.cash, fine: *s.fine}
}

func (v versioned) change(f TrailFilter, e logged) (Change, bool) {
	c := e.change(e.kind, e.row)
	c.Change, c.Ledger, c.Account, c.opened = book.Change(v.was.Row, v.now.Row), v.ledger, &v.account, v.opened
	before, after := v.was.fields(), v.now.fields()
	c.Fields = differences(before, after)
	dated := f.First == nil && f.Last == nil
	for i, s := range []state{v.was, v.now} {
		if !s.Exists() {
			continue
		}
		day, sign := s.Date, int64(2*i-1)
		c.Date, dated = &day, dated || f.covers(day)
		c.moves = append(c.moves, move{day: day, cash: times(s.cash, sign), fine: times(s.fine, sign)})
	}
	return c, dated && (f.Account == 0 || f.Account == v.account.ID) &&
		matches(f.Party, slices.Concat([]string{v.account.Name}, written(before), written(after))...)
}

// change returns the change of a record by the event.
func (e logged) change(kind Kind, id int64) Change {
	return Change{
		Position: e.position, At: e.at, Workspace: e.meta.Workspace, Actor: e.meta.Actor, Reason: e.meta.Reason,
		Kind: kind, ID: strconv.FormatInt(id, 10),
	}
}

func times(s unit.Sum, sign int64) unit.Sum {
	if sign < 0 {
		return unit.Sum{Decimal: s.Neg()}
	}
	return s
}

func (f TrailFilter) covers(day unit.Date) bool {
	return (f.First == nil || *f.First <= day) && (f.Last == nil || day <= *f.Last)
}

// fields returns the fields of a row by name.
func (s state) fields() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if !s.Exists() {
		return all
	}
	all["date"] = quoted(s.Date.String())
	flatten(all, "in_entries", s.In.JSON())
	flatten(all, "out_entries", s.Out.JSON())
	if s.Void {
		all["void"] = json.RawMessage("true")
	}
	if s.Warnings != "" {
		all["warnings"] = json.RawMessage(s.Warnings)
	}
	for name, id := range map[string]int64{"reverses": s.Reverses, "reversed_by": s.ReversedBy, "paired_with": s.PairedWith} {
		if id != 0 {
			all[name] = json.RawMessage(strconv.FormatInt(id, 10))
		}
	}
	return all
}

// flatten adds each field of each entry of a side. In every ledger, an entry is an object of plain values.
func flatten(into map[string]json.RawMessage, side string, entries json.RawMessage) {
	var list []map[string]json.RawMessage
	if json.Unmarshal(entries, &list) != nil {
		into[side] = entries
		return
	}
	for i, entry := range list {
		for name, value := range entry {
			into[fmt.Sprintf("%s[%d].%s", side, i, name)] = value
		}
	}
}

// written returns the text values except the date.
func written(fields map[string]json.RawMessage) (all []string) {
	for name, value := range fields {
		var text string
		if name != "date" && json.Unmarshal(value, &text) == nil {
			all = append(all, text)
		}
	}
	return all
}

var null = json.RawMessage("null")

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return null
	}
	return value
}

// differences returns the differing fields. Entries are in order.
func differences(before, after map[string]json.RawMessage) []Field {
	names := maps.Clone(before)
	maps.Copy(names, after)
	fields := make([]Field, 0, len(names))
	for _, name := range slices.SortedFunc(maps.Keys(names), inOrder) {
		if was, now := before[name], after[name]; !bytes.Equal(was, now) {
			fields = append(fields, Field{Field: name, From: orNull(was), To: orNull(now)})
		}
	}
	return fields
}

// inOrder compares names. It compares numbers in names by value.
func inOrder(a, b string) int {
	for a != "" && b != "" {
		n, restA := leading(a)
		m, restB := leading(b)
		switch {
		case restA != a && restB != b:
			if n != m {
				return n - m
			}
			a, b = restA, restB
		case a[0] != b[0]:
			return int(a[0]) - int(b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) - len(b)
}

func leading(text string) (n int, rest string) {
	rest = text
	for rest != "" && rest[0] >= '0' && rest[0] <= '9' && n < 1_000_000 {
		n, rest = 10*n+int(rest[0]-'0'), rest[1:]
	}
	return n, rest
}

func quoted(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return b
}

// accounts returns the changes of accounts by events, by position.
func (v *Trails) accounts(ctx context.Context, at *readmodels.At, events []logged) (map[event.Position]renamed, error) {
	var positions, ids []int64
	for _, e := range events {
		if e.kind.IsAccount() {
			_, id := event.SplitStream(e.stream)
			if n, err := strconv.ParseInt(id, 10, 64); err == nil {
				positions, ids = append(positions, int64(e.position)), append(ids, n)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "books"), pgx.RowToStructByPos[renamed], `
		select w.position, a.id, a.ledger, a.workspace_id, was.name, n.name, was.type, n.type, a.deleted_position = w.position,
			coalesce(o.recorded_at, 'epoch')
		from unnest($1::bigint[], $2::bigint[]) w (position, id)
		join books.account a on a.id = w.id
		left join log.event o on o.position = a.opened_position
		left join books.account_name n on n.account_id = a.id and n.from_position = w.position
		left join lateral (
			select b.name, b.type from books.account_name b where b.account_id = a.id and b.from_position < w.position
			order by b.from_position desc limit 1
		) was on true
		where n.name is not null or a.deleted_position = w.position`, positions, ids)
	all := make(map[event.Position]renamed, len(found))
	for _, one := range found {
		all[event.Position(one.Position)] = one
	}
	return all, err
}

// renamed is a change of an account.
type renamed struct {
	Position  int64
	ID        int64
	Ledger    string
	Workspace uuid.UUID
	From, To  *string
	Was, Is   *int // types
	Deleted   bool
	Opened    time.Time
}

func accountChange(f TrailFilter, e logged, r renamed) (Change, bool) {
	c := e.change(e.kind, r.ID)
	c.Ledger, c.Account, c.Fields, c.opened = r.Ledger, &Named{ID: r.ID}, []Field{}, r.Opened
	name, kind := Field{Field: "name", From: null, To: null}, Field{Field: "type", From: null, To: null}
	var names []string
	for _, end := range []struct {
		name         *string
		kind         *int
		into, toKind *json.RawMessage
	}{{r.From, r.Was, &name.From, &kind.From}, {r.To, r.Is, &name.To, &kind.To}} {
		if end.name != nil {
			*end.into, c.Account.Name = quoted(*end.name), *end.name
			names = append(names, *end.name)
		}
		if end.kind != nil {
			*end.toKind = json.RawMessage(strconv.Itoa(*end.kind))
		}
	}
	for _, f := range []Field{name, kind} {
		if !bytes.Equal(f.From, f.To) {
			c.Fields = append(c.Fields, f)
		}
	}
	switch {
	case r.Deleted:
		var deleted book.AccountDeleted
		if json.Unmarshal(e.data, &deleted) == nil {
			c.ends = deleted.EarliestRow
		}
		c.Change = "deleted"
	case r.From == nil:
		c.Change = "opened"
	case bytes.Equal(name.From, name.To):
		c.Change = "edited"
	default:
		c.Change = "renamed"
	}
	return c, r.ID != 0 && f.First == nil && f.Last == nil && (f.Account == 0 || f.Account == r.ID) &&
		(f.Workspace == nil || *f.Workspace == r.Workspace) && matches(f.Party, names...)
}

func lockChange(f TrailFilter, e logged) (c Change, ok bool, err error) {
	var moved bookslock.Moved
	if err := json.Unmarshal(e.data, &moved); err != nil {
		return c, false, fmt.Errorf("the lock moved at position %d: %w", e.position, err)
	}
	field := Field{Field: "locked_through", From: null, To: null}
	dated := f.First == nil && f.Last == nil
	for _, end := range []struct {
		day  *unit.Date
		into *json.RawMessage
	}{{moved.From, &field.From}, {moved.To, &field.To}} {
		if end.day != nil {
			*end.into, dated = quoted(end.day.String()), dated || f.covers(*end.day)
		}
	}
	c = e.change(e.kind, 0)
	_, c.ID = event.SplitStream(e.stream)
	c.Change, c.Fields = "locked", []Field{field}
	return c, dated && f.Account == 0 && f.Party == "", nil
}
