package projections

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// unreachable is an error of the log, or of a connection that was lost: no event is to blame for it.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// orUnreachable says of an error on a connection whether that is because it was lost.
func orUnreachable(conn *pgx.Conn, err error) error {
	if err != nil && (conn.IsClosed() || isNetwork(err)) {
		return &unreachable{err}
	}
	return err
}

// isNetwork says whether an error is of the line to Postgres. One that was cut in the middle of a write is not taken for closed by
// pgx at once.
func isNetwork(err error) bool {
	_, is := errors.AsType[*net.OpError](err)
	return is || errors.Is(err, io.ErrUnexpectedEOF)
}

// isTransient says whether an error is the database's or ours to get over, rather than an event's.
func isTransient(conn *pgx.Conn, err error) bool {
	if errors.Is(err, ErrFenced) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || conn.IsClosed() || isNetwork(err) {
		return true
	}
	if _, lost := errors.AsType[*unreachable](err); lost {
		return true
	}
	if _, refused := errors.AsType[*pgconn.ConnectError](err); refused {
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
