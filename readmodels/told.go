package readmodels

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// stateColumns are before a view's own in each row of its statement. One of them says whose of many
// callers the row is.
const (
	stateColumns = 7
	nthColumn    = 5
)

// standing says whether projections go on.
type standing int

const (
	goesOn     standing = iota
	standsIdle          // paused, or parked at an event
	standsLost          // parked, as the log does not have what it was made of
)

// toldRows are a view's rows, without the state of the projections that each of them begins with.
type toldRows struct {
	pgx.Rows

	position *int64 // nil: no generation of them is there
	live     bool
	stands   standing
	found    int
	head     int64

	first bool // the view's first row is at hand
	skip  []any
}

// begin reads the state, which the first row of the statement tells, also when the view has none.
func (r *toldRows) begin() error {
	if !r.Rows.Next() {
		return r.Rows.Err()
	}
	var (
		live, here *bool
		stands     *standing
		all        = make([]any, len(r.Rows.FieldDescriptions()))
	)
	copy(all, []any{&r.position, &live, &stands, &r.found, &r.head, nil, &here})
	if err := r.Rows.Scan(all...); err != nil {
		return err
	}
	if r.live, r.first = live != nil && *live, here != nil; stands != nil {
		r.stands = *stands
	}
	return nil
}

// Next goes to the view's next row.
func (r *toldRows) Next() bool {
	if r.first {
		r.first = false
		return true
	}
	return r.Rows.Next()
}

// Scan reads the view's columns.
func (r *toldRows) Scan(into ...any) error {
	if len(r.skip) != stateColumns+len(into) {
		r.skip = make([]any, stateColumns+len(into))
	}
	copy(r.skip[stateColumns:], into)
	return r.Rows.Scan(r.skip...)
}

// FieldDescriptions describes the view's columns.
func (r *toldRows) FieldDescriptions() []pgconn.FieldDescription {
	return r.Rows.FieldDescriptions()[stateColumns:]
}

// Values returns the view's values.
func (r *toldRows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		return nil, err
	}
	return values[stateColumns:], nil
}

// RawValues returns the view's values as they came.
func (r *toldRows) RawValues() [][]byte { return r.Rows.RawValues()[stateColumns:] }
