package commands

import (
	"context"
	"errors"
	"slices"

	"bahi/domain/event"
	"bahi/eventstore"
)

// StreamCommand is a command on a stream that the caller has loaded.
type StreamCommand[S any] struct {
	Loaded[S]

	ID      string
	Command event.Command[S]
	Reads   Reads // other records that the caller has read
}

// Begins returns a command that creates a stream. The caller need not have read the stream.
func Begins[S any](id string, c event.Command[S]) StreamCommand[S] {
	return StreamCommand[S]{Loaded: Loaded[S]{Revision: -1}, ID: id, Command: c}
}

// Reads are revisions of records that a caller has read, such as those of rows. The append checks them.
type Reads struct {
	asOf   known // newest event known to this process before the first read
	checks []eventstore.Check
}

// Reads returns no revisions. The caller must not have begun to read the records.
func (h *Handler) Reads() Reads { return Reads{asOf: h.cache.newest()} }

// And returns the reads with a record's revision.
func (r Reads) And(stream string, revision int64) Reads {
	r.checks = append(slices.Clip(r.checks), eventstore.Check{Stream: stream, Expected: eventstore.Expected(revision)})
	return r
}

// StreamResult is the outcome of one StreamCommand.
type StreamResult[S any] struct {
	Loaded[S]

	Changed bool // this call appended events; false: a conflict, or no events
}

// HandleEach handles commands on different streams, each in its own transaction, in as few round trips as the log allows. If a stream or
// one of the command's Reads has changed meanwhile, HandleEach does not decide again, and the stream's Changed is false.
func HandleEach[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []StreamCommand[S]) ([]StreamResult[S],
	error) {
	done, txs := make([]StreamResult[S], len(all)), make([]*Tx, len(all))
	var records []record
	for n, one := range all {
		done[n].Loaded = one.Loaded
		txs[n] = newTx(h, req, kind.Category(), map[string]bool{}, map[string]any{})
		txs[n].asOf = one.asOf
		r := add(txs[n], kind, one.ID, one.Loaded)
		if len(one.Reads.checks) > 0 {
			txs[n].asOf, r.guess = one.Reads.asOf, one.Revision < 0
		}
		if err := r.decide(ctx, txs[n], one.Command); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	if err := h.seal(ctx, records); err != nil {
		return nil, err
	}
	var appends []eventstore.Transaction
	var written []int
	for n, tx := range txs {
		t, err := tx.encode()
		if err != nil {
			return nil, err
		}
		t.Checks = append(t.Checks, all[n].Reads.checks...)
		if tx.count > 0 {
			appends, written = append(appends, t), append(written, n)
		}
	}
	for _, n := range written {
		txs[n].begin()
	}
	var err error
	for i, result := range h.AppendEach(ctx, appends) {
		n := written[i]
		txs[n].end(result.Appended, result.Err)
		if r, ok := records[n].(*reading[S]); ok && result.Err == nil {
			done[n] = StreamResult[S]{Loaded: r.now, Changed: true}
		}
		if _, moved := errors.AsType[*eventstore.WrongRevision](result.Err); !moved && !errors.Is(result.Err, eventstore.ErrTailLost) {
			err = errors.Join(err, result.Err)
		}
	}
	return done, err
}

// HandleAll is [HandleEach] for commands that must all take effect. After a conflict, it decides again on the newer state.
func HandleAll[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], all []StreamCommand[S]) error {
	done, err := HandleEach(ctx, h, req, kind, all)
	for i, d := range done {
		if err == nil && !d.Changed {
			_, err = Handle(ctx, h, req, kind, all[i].ID, all[i].Command)
		}
	}
	return err
}
