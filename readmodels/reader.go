package readmodels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
)

// defaultWait is how long a read waits for the log's head unless the request says otherwise (CONTRACT.md 0.3).
const defaultWait = 500 * time.Millisecond

// Reader reads projections. All methods may be called by many goroutines.
type Reader struct {
	Wait time.Duration // how long a read waits for the log's head unless the request says otherwise
	Poll time.Duration // how often a read looks that waits for another process's notice, which may be lost

	pool     *pgxpool.Pool
	lookups  *lookups
	versions map[string]int // of each projection, as this program knows it
	follow   Follow
	looks    looks
	kept     answers

	mu   sync.RWMutex
	live map[string]int // generation by projection
	sql  map[string]*statement
}

// statement is a view's SQL for the generations that were live when it was made.
type statement struct {
	text  string
	many  string   // the same for many callers at once; empty when that cannot be
	types []string // of the arrays that it takes
	nth   int      // of the reader's statements

	names       []string // of the projections that it reads
	generations []int    // of these
}

// Follow returns how far this process has folded a generation, and a channel that is closed at its next
// move. It returns false when this process does not fold it; the channel is then closed when another process tells that it has folded what
// was asked, and nil when none will. Events up to the asked position are folded without delay.
type Follow func(name string, generation int, asked event.Position) (at event.Position, moved <-chan struct{}, folds bool)

// NewReader makes a reader. Versions has the projections that this program reads. Follow may be nil. Each read finds the log's head in its
// own snapshot.
func NewReader(pool *pgxpool.Pool, versions map[string]int, follow Follow) *Reader {
	if follow == nil {
		follow = func(string, int, event.Position) (event.Position, <-chan struct{}, bool) { return 0, nil, false }
	}
	return &Reader{Wait: defaultWait, Poll: askedPoll, pool: pool, lookups: newLookups(pool), versions: versions, follow: follow,
		kept: answers{most: keptBytes}, live: map[string]int{}, sql: map[string]*statement{}}
}

// Rows returns a view's rows. The SQL names tables as projection.table.
func Rows[T any](ctx context.Context, r *Reader, as pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = r.read(ctx, sql, args, false, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, as)
		return err
	})
	return all, err
}

// RowsBatched returns the rows of a view that has few, in no order. Those of many callers take one statement, which costs Postgres more to
// set up than to run.
func RowsBatched[T any](ctx context.Context, r *Reader, as pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = r.read(ctx, sql, args, true, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, as)
		return err
	})
	return all, err
}

// Each hands over a view's rows as they come, once it is sure that this is the answer. A connection is taken until take has had all.
func Each[T any](ctx context.Context, r *Reader, as pgx.RowToFunc[T], take func(T) error, sql string, args ...any) error {
	return r.read(ctx, sql, args, false, func(rows pgx.Rows) error {
		for rows.Next() {
			row, err := as(rows)
			if err == nil {
				err = take(row)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Row returns a view's only row, or missing when there is none.
func Row[T any](ctx context.Context, r *Reader, missing error, as pgx.RowToFunc[T], sql string, args ...any) (one T, err error) {
	err = r.read(ctx, sql, args, true, func(rows pgx.Rows) (err error) {
		one, err = pgx.CollectExactlyOneRow(rows, as)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing
	}
	return one, err
}

// Await waits until the projections of these names have what ctx asks for, as a read of their tables does.
func (r *Reader) Await(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	// A read waits for what its SQL names, also in a comment.
	_, err := Rows(ctx, r, pgx.RowTo[bool], `select true where false /* `+strings.Join(names, ".tables ")+`.tables */`)
	return err
}

var errMoved = errors.New("another generation is live")

// read waits for the positions that the request asks for, then runs the view once. It runs the view first
// where nothing says that a wait is needed: mostly, the projections have the whole log.
func (r *Reader) read(ctx context.Context, sql string, args []any, few bool, collect func(pgx.Rows) error) error {
	f, args := FreshnessOf(ctx), plain(args)
	known, _ := ctx.Value(minKey{}).(event.Position)
	past, isPast := ctx.Value(pastKey{}).(event.Position)
	w := &wait{needed: max(f.Min, known, past), toHead: f.Min == 0 && !isPast, told: f.noteHead, most: cmp.Or(f.Wait, r.Wait)}
	if head, known := f.firstHead(); known && w.toHead {
		w.toHead, w.arrived, w.least = false, true, max(w.needed, head)
	}
	for tries, gone := 0, 0; ; tries++ {
		s, err := r.statement(ctx, sql, args)
		if err != nil {
			return err
		}
		if tries > 0 || r.behind(s, w) {
			if err := r.await(ctx, s, w); err != nil {
				return err
			}
		}
		settled, err := r.attempt(ctx, s, w, f, args, few, collect)
		if errors.Is(err, errMoved) {
			r.forget()
			if gone++; w.over() && gone > 1 { // the first time, others are there instead: a rebuild dropped these while the read waited
				return fmt.Errorf("the tables of %s are gone: %w", strings.Join(s.names, ", "), ErrNotBuilt)
			}
			if tries > 0 { // nothing has taken their place yet
				if err := w.pause(ctx, nil, pollInterval); err != nil {
					return err
				}
			}
			continue
		}
		if settled || err != nil {
			return err
		}
		r.looks.late()
	}
}

// attempt reads once: how far the projections are, where the log's head is, and the rows, in one
// statement and so in one snapshot. It collects the rows only if they are the answer.
func (r *Reader) attempt(ctx context.Context, s *statement, w *wait, f *Freshness, args []any, few bool,
	collect func(pgx.Rows) error) (settled bool, err error) {
	var (
		told  *toldRows
		stale bool
	)
	read := func(rows pgx.Rows) (err error) {
		told = &toldRows{Rows: rows}
		if err = told.begin(); err == nil {
			settled, stale, err = r.settle(told, s, w)
		}
		if settled {
			err = collect(told)
		}
		return err
	}
	if few {
		err = r.lookups.find(ctx, s, args, read)
	} else {
		var rows pgx.Rows
		if rows, err = r.pool.Query(ctx, s.text, args...); err == nil {
			err = (&lookup{collect: read}).read(rows)
		}
	}
	if !settled {
		return false, moved(err)
	}
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		f.note(event.Position(*told.position), s.generations[0], stale)
	}
	return true, err
}

// settle reports whether the rows are the answer, and whether it is stale, or why there is none.
func (r *Reader) settle(told *toldRows, s *statement, w *wait) (settled, stale bool, err error) {
	if told.position == nil || told.found != len(s.names) || !told.live {
		return false, false, errMoved
	}
	at, head := event.Position(*told.position), event.Position(told.head)
	if ahead := w.arrive(head); ahead != nil {
		return false, false, ahead
	}
	switch {
	case at > head: // the projection is of another log, or of one that lost its tail
		return true, true, nil
	case at >= w.least, told.stands != goesOn && w.needed <= at:
		return true, at < w.least || told.stands == standsLost, nil
	case w.over() && at < w.needed:
		return false, false, ErrPositionTimeout
	case w.over():
		return true, true, nil
	}
	return false, false, nil
}

// moved returns [errMoved] for an error that says that the tables of a generation are gone.
func moved(err error) error {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && (server.Code == "42P01" || server.Code == "3F000") {
		return errMoved
	}
	return err
}

func (r *Reader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.sql = map[string]int{}, map[string]*statement{}
}

// table finds projection.table in a view's SQL.
var table = regexp.MustCompile(`\b([a-z][a-z_]*)\.[a-z_]+`)

// parameter finds a parameter.
var parameter = regexp.MustCompile(`\$(\d+)`)

// headSQL and standsSQL are the log's head, and the standing of a generation g.
const (
	headSQL   = `coalesce((select position from log.event order by position desc limit 1), 0)`
	standsSQL = `case when g.error is not null and g.error_position is null then 2 when g.error is not null or g.paused then 1 else 0 end`
)

// numbered returns n names with numbers from 1.
func numbered(name string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%d", name, i+1)
	}
	return strings.Join(all, ", ")
}

// ErrNotBuilt is returned by a read of a projection that has no tables yet.
var ErrNotBuilt = errors.New("the projection is not built yet")

// statement returns the SQL with the live generations' schemas in place of the projections' names.
func (r *Reader) statement(ctx context.Context, sql string, args []any) (*statement, error) {
	r.mu.RLock()
	s := r.sql[sql]
	r.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	s = &statement{}
	for _, m := range table.FindAllStringSubmatch(sql, -1) {
		if _, known := r.versions[m[1]]; known && !slices.Contains(s.names, m[1]) {
			s.names = append(s.names, m[1])
		}
	}
	if len(s.names) == 0 {
		return nil, fmt.Errorf("no projection is named in: %s", sql)
	}
	s.generations = make([]int, len(s.names))
	for i, name := range s.names {
		g, err := r.generation(ctx, name)
		if err != nil {
			return nil, err
		}
		s.generations[i] = g
	}
	view := table.ReplaceAllStringFunc(sql, func(found string) string {
		name, rest, _ := strings.Cut(found, ".")
		if i := slices.Index(s.names, name); i >= 0 {
			return fmt.Sprintf("%s_g%d.%s", name, s.generations[i], rest)
		}
		return found
	})
	read := make([]string, len(s.names))
	for i, name := range s.names {
		read[i] = fmt.Sprintf("('%s', %d)", name, s.generations[i])
	}
	// The one row of state comes with each of the view's, and alone when there are none. A nested loop
	// over one row keeps the view's order.
	state := `
		select min(g.position), bool_and(g.live), max(` + standsSQL + `), count(*), ` + headSQL + `
		from projection.generation g where (g.name, g.generation) in (` + strings.Join(read, ", ") + `)`
	s.text = `select state.*, 1::bigint, view.* from (` + state + `) state
		left join lateral (select true, v.* from (` + view + `) v) view on true`
	// The offset keeps Postgres from joining all that is asked for with whole tables.
	if s.types = arrayTypes(args); len(args) > 0 && !slices.Contains(s.types, "") {
		asked := make([]string, len(args))
		for i, t := range s.types {
			asked[i] = fmt.Sprintf("$%d::%s", i+1, t)
		}
		s.many = `select state.*, asked.nth, view.* from (` + state + `) state
			cross join rows from (unnest(` + strings.Join(asked, ", ") + `)) with ordinality asked (` + numbered("a", len(args)) + `, nth)
			left join lateral (select true, v.* from (` + parameter.ReplaceAllString(view, "asked.a$1") + `) v offset 0) view on true
			order by asked.nth`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.nth = len(r.sql)
	r.sql[sql] = s
	return s, nil
}

func (r *Reader) generation(ctx context.Context, name string) (g int, err error) {
	r.mu.RLock()
	g, known := r.live[name]
	r.mu.RUnlock()
	if known {
		return g, nil
	}
	err = r.pool.QueryRow(ctx, `select generation from projection.generation where live and name = $1 and version = $2`, name,
		r.versions[name]).Scan(&g)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("%s: %w", name, ErrNotBuilt)
	}
	if err != nil {
		return 0, fmt.Errorf("find the live generation of %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[name] = g
	return g, nil
}
