package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// columns are the columns of an event in the order that [row] scans.
const columns = `position, stream, revision, id, type, data, meta, recorded_at`

// inBinary requests all columns in Postgres's binary format, in which json is plain text. pgx ignores it only if the connection
// string sets a default_query_exec_mode that uses text.
var inBinary = pgx.QueryResultFormats{pgx.BinaryFormatCode}

// row is the event that was scanned last. It decodes binary columns itself, because pgx would look up a scan plan and allocate for each
// column of each row.
type row struct{ event.Stored }

// epoch is 2000-01-01, where Postgres's timestamps begin, in microseconds of Unix time.
const epoch = 946_684_800_000_000

// ScanRow implements [pgx.RowScanner]. An infinite timestamp, which only a forger writes, becomes a distant time: the log remains readable,
// and the event's hash exposes it.
func (r *row) ScanRow(rows pgx.Rows) error {
	if rows.FieldDescriptions()[0].Format != pgx.BinaryFormatCode {
		return r.scanText(rows)
	}
	v := rows.RawValues()
	position, stream, revision, id, kind, data, meta, at := v[0], v[1], v[2], v[3], v[4], v[5], v[6], integer(v[7])
	if r.Type != string(kind) { // usually the same as the previous event's
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
