package audit

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/readmodels"
)

// Places looks up where events of the log begin. It waits for nothing: a place that is not noted yet only makes the caller read more.
type Places struct {
	Reader *readmodels.Reader
}

// Before returns the last noted position at or before a position, 0 if there is none.
func (p Places) Before(ctx context.Context, position event.Position) (event.Position, error) {
	return p.last(ctx, `select coalesce(max(position), 0) from places.place where position <= $1`, int64(min(position, 1<<62)))
}

// At returns the last noted position up to which all events were recorded at or before a time; 0 if there is none.
func (p Places) At(ctx context.Context, at time.Time) (event.Position, error) {
	return p.last(ctx, `select coalesce((select position from places.place where at <= $1 order by at desc, position desc limit 1), 0)`, at)
}

func (p Places) last(ctx context.Context, sql string, arg any) (event.Position, error) {
	ctx = readmodels.Past(readmodels.WithFreshness(ctx, &readmodels.Freshness{}), 0)
	at, err := readmodels.Row(ctx, p.Reader, nil, pgx.RowTo[int64], sql, arg)
	if errors.Is(err, readmodels.ErrNotBuilt) || errors.Is(err, readmodels.ErrNotYet) {
		return 0, nil
	}
	return event.Position(at), err
}
