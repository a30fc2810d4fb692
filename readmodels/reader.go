package readmodels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
)

// defaultWait is the time that a read waits for the log's head if the request sets none (CONTRACT.md 0.3).
const defaultWait = 500 * time.Millisecond

// Reader reads projections. All methods may be called by many goroutines.
type Reader struct {
	Wait time.Duration // time that a read waits for the log's head if the request sets none
	Poll time.Duration // poll interval while a read waits for another process's notice, which may be lost

	pool     *Pool
	versions map[string]int // this program's version of each projection
	follow   Follow
	late     atomic.Int64 // time when a view was last read too early, in nanoseconds

	mu   sync.RWMutex
	live map[string]int // generation by projection

	statements map[statementKey]statement
}

// Follow returns the position up to which this process has folded a generation, and a channel that is closed when the position changes. It
// returns false if this process does not fold the generation. Then the channel is closed when another process has folded the asked
// position, or is nil if no process sends notices. Events up to the asked position are folded without delay.
type Follow func(name string, generation int, asked event.Position) (at event.Position, moved <-chan struct{}, folds bool)

// Pool has connections for reads. A batch of statements without an explicit transaction reads one snapshot.
type Pool struct{ *pgxpool.Pool }

// OpenPool creates a pool for a database.
func OpenPool(ctx context.Context, config *pgxpool.Config) (*Pool, error) {
	config = config.Copy()
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &Pool{pool}, err
}

// NewReader creates a reader. versions has the projections that this program reads. follow may be nil. Each read finds the log's head in
// its own snapshot.
func NewReader(pool *Pool, versions map[string]int, follow Follow) *Reader {
	if follow == nil {
		follow = func(string, int, event.Position) (event.Position, <-chan struct{}, bool) { return 0, nil, false }
	}
	return &Reader{Wait: defaultWait, Poll: askedPoll, pool: pool, versions: versions, follow: follow, live: map[string]int{},
		statements: map[statementKey]statement{}}
}

// Tables are the live tables of projections with the freshness that a read requires.
type Tables struct {
	reader *Reader
	at     *At
	names  []string
}

// From returns the tables of projections with the freshness that at requires. SQL names them as projection.table.
func (r *Reader) From(at *At, names ...string) Tables { return Tables{r, at, names} }

// Await waits like a read until the tables have the required position.
func (t Tables) Await(ctx context.Context) error {
	if len(t.names) == 0 {
		return nil
	}
	return t.read(ctx)
}

// query is a statement of a read. collect reads its rows.
type query struct {
	sql     string
	args    []any
	collect func(pgx.Rows) error
}

// Rows returns a view's rows.
func Rows[T any](ctx context.Context, t Tables, as pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = t.read(ctx, query{sql, args, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, as)
		return err
	}})
	return all, err
}

// Each calls take for a view's rows one after the other if the tables are fresh enough. It holds a connection until the last call.
func Each[T any](ctx context.Context, t Tables, as pgx.RowToFunc[T], take func(T) error, sql string, args ...any) error {
	return t.read(ctx, query{sql, args, each(as, take)})
}

// each returns a collector that calls take for each row.
func each[T any](as pgx.RowToFunc[T], take func(T) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
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
	}
}

// Row returns a view's only row. Without a row it returns missing.
func Row[T any](ctx context.Context, t Tables, missing error, as pgx.RowToFunc[T], sql string, args ...any) (one T, err error) {
	found := false
	err = t.read(ctx, query{sql, args, func(rows pgx.Rows) (err error) {
		one, err = pgx.CollectExactlyOneRow(rows, as)
		if found = !errors.Is(err, pgx.ErrNoRows); !found {
			return nil
		}
		return err
	}})
	if err == nil && !found {
		err = missing
	}
	return one, err
}

// Errors of an attempt without a result.
var (
	errMoved = errors.New("another generation is live")
	errEarly = errors.New("the tables are not that far")
)

// ErrNotBuilt reports that a projection has no tables yet.
var ErrNotBuilt = errors.New("the projection is not built yet")

// read waits until the tables are fresh enough, then runs the queries once. It tries the queries first if the projections probably have the
// whole log.
func (t Tables) read(ctx context.Context, queries ...query) error {
	r, w := t.reader, t.at.begin(t.reader.Wait)
	for tries, gone := 0, 0; ; tries++ {
		generations, err := r.generations(ctx, t.names)
		if err != nil {
			return err
		}
		if tries > 0 || r.behind(t.names, generations, w) {
			if err := r.await(ctx, t.names, generations, w); err != nil {
				return err
			}
		}
		switch err := t.attempt(ctx, generations, w, queries); {
		case errors.Is(err, errEarly):
			r.late.Store(time.Now().UnixNano())
		case !errors.Is(err, errMoved):
			return err
		default:
			r.forget()
			if gone++; w.over() && gone > 1 { // the first time, a rebuild may have replaced them during the wait
				return fmt.Errorf("the tables of %s do not exist: %w", strings.Join(t.names, ", "), ErrNotBuilt)
			}
			if tries > 0 { // no other generation is live yet
				if err := w.pause(ctx, nil, pollInterval); err != nil {
					return err
				}
			}
		}
	}
}

// attempt reads the positions of the projections, the head of the log, and the rows in one batch and one snapshot. It collects the rows
// only if they are fresh enough.
func (t Tables) attempt(ctx context.Context, generations []int, w *wait, queries []query) error {
	var (
		found   state
		stale   bool
		settled error // nil: the rows are fresh enough
		batch   = &pgx.Batch{}
	)
	batch.Queue(stateSQL(t.names, generations)).Query(func(rows pgx.Rows) error {
		if err := found.scan(rows); err != nil {
			return err
		}
		stale, settled = w.settle(found, len(t.names))
		return nil
	})
	for _, q := range queries {
		sql, args, err := t.reader.statement(ctx, t.names, generations, q)
		if err != nil {
			return err
		}
		batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			if settled != nil {
				return nil //nolint:nilerr // an error would make pgx forget the prepared statements
			}
			return q.collect(rows)
		})
	}
	results := t.reader.pool.SendBatch(ctx, batch)
	defer results.Close() //nolint:errcheck // only after a panic; otherwise the next line closes it
	err := results.Close()
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && (server.Code == "42P01" || server.Code == "3F000") {
		return errMoved // the tables do not exist
	}
	if err = cmp.Or(settled, err); err == nil {
		t.at.note(found.position, stale)
	}
	return err
}

// statement is the text of a query with the schemas of generations and numbered parameters, and the parameters' names in order.
type statement struct {
	sql   string
	named []string
}

// statementKey identifies a statement.
type statementKey struct{ sql, generations string }

// maxStatements is the maximum number of cached statements. Usually all fit, because the texts of views are constants.
const maxStatements = 1000

// statement returns the text and the parameters of a query. It caches both, because pgx takes as long to number the parameters of a long
// text as Postgres takes to read a page.
func (r *Reader) statement(ctx context.Context, names []string, generations []int, q query) (sql string, args []any, err error) {
	var values pgx.NamedArgs
	if len(q.args) == 1 {
		values, _ = q.args[0].(pgx.NamedArgs)
	}
	key := statementKey{q.sql, fmt.Sprint(generations)}
	r.mu.RLock()
	s, known := r.statements[key]
	r.mu.RUnlock()
	if !known {
		s.sql = q.sql
		for i, name := range names {
			s.sql = strings.ReplaceAll(s.sql, name+".", fmt.Sprintf("%s_g%d.", name, generations[i]))
		}
		if values != nil {
			itself := make(pgx.NamedArgs, len(values))
			for name := range values {
				itself[name] = name
			}
			numbered, order, err := itself.RewriteQuery(ctx, nil, s.sql, nil)
			if err != nil {
				return "", nil, err
			}
			for _, name := range order {
				text, given := name.(string)
				if !given { // this call lacks a value; another call may have it
					return s.sql, q.args, nil
				}
				s.named = append(s.named, text)
			}
			s.sql = numbered
		}
		r.mu.Lock()
		if len(r.statements) >= maxStatements {
			clear(r.statements)
		}
		r.statements[key] = s
		r.mu.Unlock()
	}
	if values == nil {
		return s.sql, q.args, nil
	}
	args = make([]any, len(s.named))
	for i, name := range s.named {
		args[i] = values[name]
	}
	return s.sql, args, nil
}

// state is the state of projections and of the log.
type state struct {
	position event.Position  // lowest position of the projections
	head     event.Position  // head of the log
	worst    projectionState // worst state of the projections
	live     int             // number of live generations
}

// projectionState describes the progress of a projection.
type projectionState int

const (
	isRunning projectionState = iota
	isStopped                 // paused, or parked at an event
	isForeign                 // parked, because it was built from another log
)

const headSQL = `select position from log.event order by position desc limit 1`

// stateSQL returns the SQL of the state of generations, a record for each one that is live. It has constants in place of parameters, and
// no sums, because both would take Postgres longer than the rest.
func stateSQL(names []string, generations []int) string {
	var is []string
	for i, name := range names {
		is = append(is, fmt.Sprintf(`g.name = '%s' and g.generation = %d`, name, generations[i]))
	}
	return `select g.position, coalesce((` + headSQL + `), 0),
		case when g.error is not null and g.error_position is null then 2 when g.error is not null or g.paused then 1 else 0 end
		from projection.generation g where g.status = 'live' and (` + strings.Join(is, ` or `) + `)`
}

// scan reads the records of stateSQL.
func (s *state) scan(rows pgx.Rows) error {
	var one state
	_, err := pgx.ForEachRow(rows, []any{&one.position, &s.head, &one.worst}, func() error {
		if s.live == 0 {
			s.position = one.position
		}
		s.position, s.worst = min(s.position, one.position), max(s.worst, one.worst)
		s.live++
		return nil
	})
	return err
}

// state returns the state of the projections.
func (r *Reader) state(ctx context.Context, names []string, generations []int) (s state, err error) {
	rows, _ := r.pool.Query(ctx, stateSQL(names, generations)) // scan returns the error
	if err = s.scan(rows); err != nil {
		err = fmt.Errorf("read the positions of the projections: %w", err)
	}
	return s, err
}

// head returns the position of the log's last event; 0: none.
func (r *Reader) head(ctx context.Context) (at event.Position, err error) {
	if err = r.pool.QueryRow(ctx, `select coalesce((`+headSQL+`), 0)`).Scan(&at); err != nil {
		err = fmt.Errorf("read the head of the log: %w", err)
	}
	return at, err
}

func (r *Reader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = map[string]int{}
	clear(r.statements) // they name deleted generations
}

// generations returns the live generations of projections.
func (r *Reader) generations(ctx context.Context, names []string) ([]int, error) {
	all := make([]int, len(names))
	r.mu.RLock()
	for i, name := range names {
		all[i] = r.live[name]
	}
	r.mu.RUnlock()
	for i, name := range names {
		if all[i] != 0 {
			continue
		}
		err := r.pool.QueryRow(ctx, `select generation from projection.generation where status = 'live' and name = $1 and version = $2`, name,
			r.versions[name]).Scan(&all[i])
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, fmt.Errorf("%s: %w", name, ErrNotBuilt)
		}
		if err != nil {
			return nil, fmt.Errorf("find the live generation of %s: %w", name, err)
		}
		r.mu.Lock()
		r.live[name] = all[i]
		r.mu.Unlock()
	}
	return all, nil
}
