package projections

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// isTransient says whether an error is the database's or ours to get over, rather than an event's.
func isTransient(conn *pgx.Conn, err error) bool {
	if errors.Is(err, ErrFenced) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || conn.IsClosed() {
		return true
	}
	server, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return false
	}
	switch server.Code[:2] {
	case "08", "40", "53", "55", "57", "58": // connection, rollback, resources, not now, intervention, system
		return true
	default:
		return false
	}
}
