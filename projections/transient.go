package projections

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// unreachable is an error of the log or of a lost connection. No event causes it.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// orUnreachable marks an error of a lost connection.
func orUnreachable(conn *pgx.Conn, err error) error {
	if err != nil && (conn.IsClosed() || isNetwork(err)) {
		return &unreachable{err}
	}
	return err
}

// isNetwork reports whether an error is an error of the network. After an interruption in the middle of a write, pgx does not immediately
// consider the connection closed.
func isNetwork(err error) bool {
	_, is := errors.AsType[*net.OpError](err)
	return is || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed)
}

// isTransient reports whether a retry may succeed without a repair, because no event causes the error.
func isTransient(conn *pgx.Conn, err error) bool { return conn.IsClosed() || IsTransient(err) }

// IsTransient reports whether a retry may succeed without a repair.
func IsTransient(err error) bool {
	if errors.Is(err, ErrFenced) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isNetwork(err) {
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
	case "08", "40", "53", "55", "57", "58": // connection, rollback, resources, busy, intervention, system
		return true
	default:
		return false
	}
}
