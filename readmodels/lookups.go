package readmodels

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxLookups go together in one round trip: each waits for those before it.
	maxLookups = 32

	// lookupLanes is how many groups are under way at once.
	lookupLanes = 2

	// lookupPatience bounds a group, whose callers' own deadlines differ.
	lookupPatience = 10 * time.Second
)

// lookups sends statements that find few rows each together: those of many callers take one round trip,
// and those with the same text one statement, which cost more than finding the rows. The waiting
// callers send in turn.
type lookups struct {
	pool    *pgxpool.Pool
	waiting chan *lookup
	lanes   chan struct{}
}

// lookup is one caller's statement.
type lookup struct {
	statement *statement
	args      []any
	collect   func(pgx.Rows) error
	shares    bool // its statement with others
	claimed   atomic.Bool
	answer    chan error // takes one, never blocks
}

func newLookups(pool *pgxpool.Pool) *lookups {
	return &lookups{pool: pool, waiting: make(chan *lookup, 1024), lanes: make(chan struct{}, lookupLanes)}
}

// find runs the statement and lets collect read its rows. It answers collect's error, or the database's.
func (l *lookups) find(ctx context.Context, s *statement, args []any, collect func(pgx.Rows) error) error {
	k := &lookup{statement: s, shares: s.takesMany(args), args: args, collect: collect, answer: make(chan error, 1)}
	select {
	case l.waiting <- k:
	case <-ctx.Done():
		return ctx.Err()
	}
	gone, lanes := ctx.Done(), l.lanes
	for {
		select {
		case err := <-k.answer:
			return err
		case lanes <- struct{}{}:
			if k.claimed.Load() { // somebody has it on its way
				lanes = nil
			} else {
				l.lead(context.WithoutCancel(ctx))
			}
			<-l.lanes
		case <-gone:
			if !k.claimed.Swap(true) {
				return ctx.Err()
			}
			gone = nil // it is on its way, and collect may run
		}
	}
}

// lead sends what waits, as one group.
func (l *lookups) lead(ctx context.Context) {
	var group []*lookup
	for len(group) < maxLookups {
		select {
		case k := <-l.waiting:
			if !k.claimed.Swap(true) {
				group = append(group, k)
			}
			continue
		default:
		}
		break
	}
	if len(group) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	if len(group) > 1 {
		group = l.together(ctx, group)
	}
	for _, k := range group {
		rows, err := l.pool.Query(ctx, k.statement.text, k.args...)
		if err == nil {
			err = k.read(rows)
		}
		k.answer <- err
	}
}

// together sends a group in one round trip. It answers those behind a failure, the failed one included,
// for another try alone: Postgres skips what follows on an error.
func (l *lookups) together(ctx context.Context, group []*lookup) (again []*lookup) {
	batch := &pgx.Batch{}
	slices.SortStableFunc(group, func(a, b *lookup) int { return a.statement.nth - b.statement.nth })
	var like [][]*lookup // those that share a statement
	for first, i := 0, 1; i <= len(group); i++ {
		if i == len(group) || group[i].statement != group[first].statement || !group[first].shares || !group[i].shares {
			like, first = append(like, group[first:i]), i
		}
	}
	for _, of := range like {
		if s := of[0].statement; len(of) == 1 {
			batch.Queue(s.text, of[0].args...)
		} else {
			batch.Queue(s.many, arrays(of)...)
		}
	}
	answers := l.pool.SendBatch(ctx, batch)
	defer answers.Close() //nolint:errcheck // each answer's error was looked at
	done := 0
	for _, of := range like {
		rows, err := answers.Query()
		if err != nil {
			return group[done:]
		}
		all := &sharedRows{Rows: rows, single: len(of) == 1}
		all.advance()
		for i, k := range of {
			result := guarded(k.collect, all.of(i+1))
			if all.Err() != nil {
				return group[done:]
			}
			k.answer <- result
			done++
		}
		rows.Close()
	}
	return nil
}

// sharedRows are the rows of many callers, those of the first caller first.
type sharedRows struct {
	pgx.Rows

	single bool
	at     int // whose row it is at; 0 behind the last
}

func (s *sharedRows) advance() {
	s.at = 0
	if !s.Next() {
		return
	}
	s.at = 1
	if !s.single {
		s.at = int(binary.BigEndian.Uint64(s.RawValues()[nthColumn]))
	}
}

// of returns the rows of one caller, which have to be read before those of the next.
func (s *sharedRows) of(caller int) pgx.Rows {
	for s.at != 0 && s.at < caller {
		s.advance()
	}
	return &callersRows{sharedRows: s, caller: caller}
}

type callersRows struct {
	*sharedRows

	caller int
	begun  bool
}

func (r *callersRows) Next() bool {
	if r.begun && r.at == r.caller {
		r.advance()
	}
	r.begun = true
	return r.at == r.caller
}

// Close leaves the rows to the others.
func (r *callersRows) Close() {
	for r.Next() {
	}
}

// arrayType returns the type of the array that carries an argument of many callers, empty when there is
// none.
func arrayType(arg any) string {
	switch arg.(type) {
	case int64:
		return "bigint[]"
	case string:
		return "text[]"
	case pgtype.UUID:
		return "uuid[]"
	default:
		return ""
	}
}

func arrayTypes(args []any) []string {
	types := make([]string, len(args))
	for i, a := range args {
		types[i] = arrayType(a)
	}
	return types
}

// takesMany says whether these arguments may go together with those of others.
func (s *statement) takesMany(args []any) bool {
	for i, a := range args {
		if t := arrayType(a); t == "" || t != s.types[i] {
			return false
		}
	}
	return s.many != ""
}

// arrays turns the arguments of the callers of one statement into its columns.
func arrays(of []*lookup) []any {
	columns := make([]any, len(of[0].args))
	for i := range columns {
		switch of[0].args[i].(type) {
		case int64:
			columns[i] = column[int64](of, i)
		case string:
			columns[i] = column[string](of, i)
		default:
			columns[i] = column[pgtype.UUID](of, i)
		}
	}
	return columns
}

func column[T any](of []*lookup, i int) []T {
	all := make([]T, len(of))
	for n, k := range of {
		all[n], _ = k.args[i].(T) // the statement was made for these types
	}
	return all
}

// plain lets pgx encode ids at once, where it would try several ways first.
func plain(args []any) []any {
	for i, a := range args {
		if id, ok := a.(uuid.UUID); ok {
			args[i] = pgtype.UUID{Bytes: id, Valid: true}
		}
	}
	return args
}

// read lets the caller's collect read the rows. It runs for another caller, whom its panic must not
// concern.
func (k *lookup) read(rows pgx.Rows) error {
	err := guarded(k.collect, rows)
	rows.Close()
	if failed := rows.Err(); failed != nil {
		return failed
	}
	return err
}

func guarded(collect func(pgx.Rows) error, rows pgx.Rows) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return collect(rows)
}
