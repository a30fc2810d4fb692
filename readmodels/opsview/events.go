package opsview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
)

// Event is an event in the log. Sealed values in its payload stay sealed.
type Event struct {
	Position event.Position
	Stream   string
	Revision int64
	ID       uuid.UUID
	Type     string
	At       time.Time
	Meta     event.Meta
	MetaText json.RawMessage // as stored
	Data     json.RawMessage
}

// Filter narrows a search. The zero Filter matches every event.
type Filter struct {
	Stream   string
	Category string
	Type     string
	Actor    string
	// Workspace is the workspace of the events; nil: all.
	Workspace *uuid.UUID
	From, To  *time.Time     // times of recording, both inclusive
	After     event.Position // minimum position minus 1
	Before    event.Position // maximum position plus 1; 0: the log's end
}

// Found is the result of a search, newest first.
type Found struct {
	Events []Event
	// From and To are the searched positions, both inclusive. A search of one stream reads only that stream's events. From is greater than
	// To if there was nothing to search.
	From, To event.Position
	// More reports that older events were not searched: continue with Before = From.
	More bool
}

// Events searches the log. A log may be huge and matches rare, so a search goes backwards in windows of limited size, stops after some of
// them, and reports the searched positions.
type Events struct {
	DB *pgxpool.Pool

	// Window is the number of events that one statement searches, and Windows the maximum number of statements of a search; 0: 20,000 and
	// 10.
	Window, Windows int
}

const (
	defaultWindow  = 20_000
	defaultWindows = 10

	// statementTimeout is the timeout of each statement, in Postgres's syntax. After searchWithin a search starts no further window.
	statementTimeout = "5s"
	searchTimeout    = 2 * time.Second
)

const eventColumns = `e.position, e.stream, e.revision, e.id, e.type, e.recorded_at, e.meta, e.data`

// matching is the SQL of a filter's conditions that have no index.
const matching = `
	and ($1 = '' or e.stream = $1)
	and ($2 = '' or e.stream >= $2 || '-' and e.stream < $2 || '.')
	and ($3 = '' or e.type = $3)
	and ($4 = '' or e.meta ->> 'actor' = $4)
	and ($5::uuid is null or e.meta ->> 'workspace' = $5::text)`

// matching returns the events that meet a condition and match the filter. The condition's parameters begin at $6.
func (f Filter) matching(ctx context.Context, tx pgx.Tx, condition, order string, more ...any) ([]Event, error) {
	rows, _ := tx.Query(ctx, `select `+eventColumns+` from log.event e where `+condition+matching+order,
		append([]any{f.Stream, f.Category, f.Type, f.Actor, f.Workspace}, more...)...)
	return pgx.CollectRows(rows, toEvent)
}

// Search returns at most size events, newest first.
func (v *Events) Search(ctx context.Context, f Filter, size int) (Found, error) {
	return v.search(ctx, f, size, v.searchLog, v.searchStream)
}

// Onward is [Events.Search] forwards: it returns at most size events, oldest first. If there is More, continue with After = To.
func (v *Events) Onward(ctx context.Context, f Filter, size int) (Found, error) {
	return v.search(ctx, f, size, v.logOnward, v.streamOnward)
}

// part searches the log or a stream between two positions, both included.
type part func(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error)

func (v *Events) search(ctx context.Context, f Filter, size int, log, stream part) (found Found, err error) {
	err = v.reading(ctx, func(tx pgx.Tx) error {
		low, high, err := f.bounds(ctx, tx)
		if err != nil {
			return err
		}
		if f.Stream != "" {
			log = stream
		}
		found, err = log(ctx, tx, f, low, high, size)
		return err
	})
	if err != nil {
		return Found{}, fmt.Errorf("search the log: %w", err)
	}
	return found, nil
}

// bounds returns the positions between which a filter may match, both inclusive.
func (f Filter) bounds(ctx context.Context, tx pgx.Tx) (low, high event.Position, err error) {
	err = tx.QueryRow(ctx, `
		select greatest($1::bigint, case when $2::timestamptz is null then 0 else log.position_at($2::timestamptz - interval '1 microsecond') `+
		`end) + 1,
			least(log.head(), case when $3::timestamptz is null then log.head() else log.position_at($3::timestamptz) end)`,
		int64(f.After), f.From, f.To).Scan(&low, &high)
	if f.Before > 0 {
		high = min(high, f.Before-1)
	}
	return low, high, err
}

func (v *Events) searchLog(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error) {
	found := Found{From: high + 1, To: high}
	for began, n := time.Now(), 0; found.From > low && n < v.windows() && time.Since(began) < searchTimeout; n++ {
		from := low
		if found.From > low+event.Position(v.window()) {
			from = found.From - event.Position(v.window())
		}
		events, err := f.matching(ctx, tx, `e.position between $6 and $7`, ` order by e.position desc limit $8`,
			int64(from), int64(found.From-1), size-len(found.Events))
		if err != nil {
			return found, err
		}
		found.Events = append(found.Events, events...)
		if len(found.Events) == size { // older events in this window were not searched
			found.From = found.Events[size-1].Position
			break
		}
		found.From = from
	}
	found.More = found.From > low
	return found, nil
}

// searchStream searches by the stream's revisions: its events may be far apart in the log.
func (v *Events) searchStream(ctx context.Context, tx pgx.Tx, f Filter, low, high event.Position, size int) (Found, error) {
	found := Found{From: high + 1, To: high}
	newest, err := revisionBefore(ctx, tx, f.Stream, high+1)
	if err != nil || newest < 0 {
		found.From = min(low, high+1)
		return found, err
	}
	oldest := max(0, newest-int64(v.window()*v.windows())+1)
	found.Events, err = f.matching(ctx, tx, `e.stream = $1 and e.revision between $6 and $7 and e.position >= $8`,
		` order by e.revision desc limit $9`, oldest, newest, int64(low), size)
	switch {
	case err != nil:
		return found, err
	case len(found.Events) == size:
		found.From = found.Events[size-1].Position
		found.More = found.Events[size-1].Revision > 0 && found.From > low
	case oldest > 0:
		err = tx.QueryRow(ctx, `select position from log.event where stream = $1 and revision = $2`, f.Stream, oldest).Scan(&found.From)
		found.More = found.From > low
	default:
		found.From = low
	}
	return found, err
}

// revisionBefore returns the greatest revision of a stream before a position, or -1, by bisection: revisions have no gaps and increase with
// positions.
func revisionBefore(ctx context.Context, tx pgx.Tx, stream string, position event.Position) (int64, error) {
	low, high := int64(-1), int64(-1)
	err := tx.QueryRow(ctx, `select coalesce((select revision from log.event where stream = $1 order by revision desc limit 1), -1)`,
		stream).Scan(&high)
	for err == nil && low < high {
		middle := low + (high-low+1)/2
		var at event.Position
		if err = tx.QueryRow(ctx, `select position from log.event where stream = $1 and revision = $2`, stream, middle).Scan(&at); at < position {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, err
}

func (v *Events) window() int  { return cmp.Or(v.Window, defaultWindow) }
func (v *Events) windows() int { return cmp.Or(v.Windows, defaultWindows) }

// Head returns the log's head and its time: the zero time for an empty log.
func (v *Events) Head(ctx context.Context) (at event.Position, recorded time.Time, err error) {
	err = v.DB.QueryRow(ctx, `select position, recorded_at from log.event order by position desc limit 1`).Scan(&at, &recorded)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return at, recorded, err
}

// reading calls do with a snapshot whose statements have a timeout.
func (v *Events) reading(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, v.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, statementTimeout); err != nil {
			return err
		}
		return do(tx)
	})
}

func toEvent(row pgx.CollectableRow) (e Event, err error) {
	var meta, data []byte
	if err := row.Scan(&e.Position, &e.Stream, &e.Revision, &e.ID, &e.Type, &e.At, &meta, &data); err != nil {
		return e, err
	}
	e.At, e.Data, e.MetaText, e.Meta = e.At.UTC(), data, meta, MetaOf(meta)
	return e, nil
}
