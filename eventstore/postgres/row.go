package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// columns are those of an event, as [row] takes them.
const columns = `position, stream, revision, id, type, data, meta, recorded_at`

// inBinary asks for all columns in Postgres's binary format, in which json is its text. pgx passes it on unless the connection
// string has a default_query_exec_mode that wants text.
var inBinary = pgx.QueryResultFormats{pgx.BinaryFormatCode}

// row is the event that was read last. It takes binary columns as they come, since a log is read by the million: pgx would look
// for the way to read each column of each row, and allocate for each.
type row struct{ event.Stored }

// epoch is 2000-01-01, from which Postgres counts microseconds, in those of Unix.
const epoch = 946_684_800_000_000

// ScanRow implements [pgx.RowScanner]. A time that is infinite, which nobody but a forger writes, is one of another age: so the log can be
// read on, and the event is found by its hash.
func (r *row) ScanRow(rows pgx.Rows) error {
	if rows.FieldDescriptions()[0].Format != pgx.BinaryFormatCode {
		return r.scanText(rows)
	}
	v := rows.RawValues()
	position, stream, revision, id, kind, data, meta, at := v[0], v[1], v[2], v[3], v[4], v[5], v[6], integer(v[7])
	if r.Type != string(kind) { // as often as not it is that of the event before
		r.Type = string(kind)
	}
	payload := slices.Concat(data, meta)
	r.Position, r.Stream, r.Revision = event.Position(integer(position)), string(stream), integer(revision)
	r.ID, r.At = [16]byte(id), time.UnixMicro(at+epoch).UTC()
	r.Data, r.Meta = payload[:len(data):len(data)], payload[len(data):]
	return nil
}

func (r *row) scanText(rows pgx.Rows) error {
	var (
		e        event.Stored
		position int64
	)
	err := rows.Scan(&position, &e.Stream, &e.Revision, &e.ID, &e.Type, &e.Data, &e.Meta, &e.At)
	e.Position, e.At = event.Position(position), e.At.UTC()
	r.Stored = e
	return err
}

func integer(v []byte) int64 { return int64(binary.BigEndian.Uint64(v)) }
