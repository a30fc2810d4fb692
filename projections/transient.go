package projections

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// unreachable is an error of the log or of a lost connection, which no event causes.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// orUnreachable marks an error of a lost connection.
func orUnreachable(conn *pgx.Conn, err error) error {
	if err != nil && (conn.IsClosed() || isNetwork(err)) {
		return &unreachable{err}
	}
	return err
}

// isNetwork reports whether an error is the network's. After a cut in the middle of a write, pgx does not consider the connection closed at
// once.
func isNetwork(err error) bool {
	_, is := errors.AsType[*net.OpError](err)
	return is || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed)
}

// isTransient reports whether an error will pass without a repair, and no event causes it.
func isTransient(conn *pgx.Conn, err error) bool {
	if errors.Is(err, ErrFenced) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || conn.IsClosed() ||
		isNetwork(err) {
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
