// Package journal keeps a replicated journal of the log in EventStoreDB or KurrentDB.
//
// The log is in Postgres. Its journal is one stream, bahi-<log id>: revision n has the event at position n+1. Each group of transactions is
// appended in one call, at the exact expected revision, before Postgres commits the group. So an acknowledged write is on a majority of the
// servers. The log and the journal each restore the lost tail of the other.
//
// This relies on three facts about the server. An append is all or nothing. The response comes after replication. The same event ids at the
// same exact revision are the same append for ever, so a group without a response can be sent again. The journal cannot have a stream for
// each stream of the log, because no call appends to several streams. An asynchronous copy may lack acknowledged writes.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// Server has the three calls of EventStoreDB's protocol that a journal needs. [Connect] returns one. It reads streams from the leader.
type Server interface {
	// Append appends all events to a stream whose last revision is last (-1: there is no stream), or none of them. It returns nil when they
	// are replicated; ErrMoved if the stream has another last revision; ErrRefused or [eventstore.TooLarge] if the server never accepts
	// them; ErrNotSent if it has not received the call. After any other error the events may be appended, now or later.
	Append(ctx context.Context, stream string, last int64, events []event.Proposed) error

	// Read returns at most count events of a stream, from a revision on. At the stream's end, or without a stream, it returns none.
	Read(ctx context.Context, stream string, from int64, count int) ([]event.Stored, error)

	// Last returns the newest event of a stream; found is false if there is no stream.
	Last(ctx context.Context, stream string) (e event.Stored, found bool, err error)

	Close()
}

// Errors of a server.
var (
	ErrMoved   = errors.New("the journal and the log have different ends")
	ErrRefused = errors.New("the server of the journal refuses the call")
	ErrNotSent = errors.New("the server of the journal was not reached")
)

// Errors of a log and a journal that must not be joined.
var (
	ErrEmpty = errors.New("the journal is empty, and the log is not: EVENTSTORE_URL may name the wrong server. " +
		"bahi events copy fills an empty journal")
	ErrUnnamed  = errors.New("the log is empty, and its journal is not, but the server's stream " + NamesStream + " does not name this log")
	ErrDiverged = errors.New("the log and its journal are not copies of each other: they have different events at the same position")
	ErrCut      = errors.New("the journal does not begin with the log's first event: $maxCount, $maxAge, $tb or a deletion has cut it")
)

// NamesStream lists the logs whose journals are on a server.
const NamesStream = "bahi-identity"

// Limits of one append. The server's own default limit is 1,048,576 bytes. Only a larger transaction exceeds it.
const (
	MaxBytes = 1_000_000
	maxRead  = 512 // events
)

// MaxWait is the maximum duration of an append.
const MaxWait = 15 * time.Second

// timing has the durations of a journal.
type timing struct {
	answer time.Duration // timeout of one try
	reach  time.Duration // time to reach the server
	doubt  time.Duration // time until the outcome of a group is given up as unknown
	pause  time.Duration // between tries
}

var defaultTiming = timing{answer: 5 * time.Second, reach: 3 * time.Second, doubt: MaxWait, pause: 50 * time.Millisecond}

// Journal is the journal of a log.
type Journal struct {
	server Server
	log    uuid.UUID
	logger *slog.Logger
	timing timing
}

// New returns the journal of a log. It need not exist yet.
func New(server Server, log uuid.UUID, logger *slog.Logger) *Journal {
	return &Journal{server, log, logger, defaultTiming}
}

// Stream returns the name of the journal's stream.
func (j *Journal) Stream() string { return "bahi-" + j.log.String() }

// Append appends a group after the events up to a position. It returns nil once the group is replicated. It returns ErrMoved, and appends
// nothing, if the journal does not end at that position; ErrRefused or [eventstore.TooLarge] if the server never accepts the group;
// [eventstore.ErrUnavailable] if nothing was appended; [eventstore.ErrInDoubt] if the outcome stays unknown.
//
// Append sends a group without a response again, identical and at the same revision, until the outcome is known. Reading the journal's end
// instead would not do: a write in progress may complete after the read.
func (j *Journal) Append(ctx context.Context, after event.Position, group []Entry) error {
	events, err := encode(group)
	if err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrBadEvent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, j.timing.doubt)
	defer cancel()
	began := time.Now()
	for doubt, first := false, true; ; {
		err := j.try(ctx, after, events)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrMoved):
			switch ours, moved, lookErr := j.look(ctx, after, events); {
			case lookErr != nil:
				err = lookErr
			case ours:
				return nil
			case moved:
				return err
			}
			// The leader's revision includes writes that are not replicated yet, perhaps ours.
		case errors.Is(err, ErrRefused), errors.Is(err, eventstore.ErrBadEvent):
			if !doubt {
				return err
			}
		case errors.Is(err, ErrNotSent):
			if !doubt && time.Since(began) > j.timing.reach {
				return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
			}
		default:
			doubt = true
		}
		level := slog.LevelDebug
		if first {
			level, first = slog.LevelWarn, false
		}
		j.logger.Log(ctx, level, "appending to the journal failed; retrying", "after", after, "events", len(group), "error", err)
		switch {
		case signal.Sleep(ctx, j.timing.pause) == nil:
		case doubt:
			return fmt.Errorf("%w: %w", eventstore.ErrInDoubt, err)
		default:
			return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
		}
	}
}

func (j *Journal) try(ctx context.Context, after event.Position, events []event.Proposed) error {
	ctx, cancel := context.WithTimeout(ctx, j.timing.answer)
	defer cancel()
	return j.server.Append(ctx, j.Stream(), int64(after)-1, events)
}

// look reads the journal at the group's position. ours: the group is there. moved: other events are there, or the journal ends earlier.
func (j *Journal) look(ctx context.Context, after event.Position, events []event.Proposed) (ours, moved bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.timing.answer)
	defer cancel()
	for from, left := int64(after), events; ; {
		found, err := j.server.Read(ctx, j.Stream(), from, len(left))
		switch {
		case err != nil:
			return false, false, err
		case len(found) == 0 && len(left) < len(events): // a part of the group, from another one
			return false, true, nil
		case len(found) == 0:
			last, _, err := j.Last(ctx)
			return false, err == nil && last.Position != after, err
		}
		for i, e := range found {
			if i >= len(left) || e.ID != left[i].ID {
				return false, true, nil
			}
		}
		from += int64(len(found))
		if left = left[len(found):]; len(left) == 0 {
			return true, false, nil
		}
	}
}

// read reads the journal's stream.
func (j *Journal) read(ctx context.Context, from int64, count int) ([]event.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timing.doubt)
	defer cancel()
	return j.server.Read(ctx, j.Stream(), from, count)
}

// Last returns the newest entry; found is false in an empty journal.
func (j *Journal) Last(ctx context.Context) (e Entry, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.timing.doubt)
	defer cancel()
	raw, found, err := j.server.Last(ctx, j.Stream())
	if err == nil && found {
		e, err = decode(raw)
	}
	return e, found, err
}

// After yields the entries after a position, in parts.
func (j *Journal) After(ctx context.Context, position event.Position) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		for from := int64(position); ; {
			found, err := j.read(ctx, from, maxRead)
			if err != nil {
				yield(nil, err)
				return
			}
			entries := make([]Entry, len(found))
			for i, raw := range found {
				if raw.Revision != from {
					err = ErrCut
				}
				if from++; err == nil {
					entries[i], err = decode(raw)
				}
			}
			if len(found) == 0 || !yield(entries, err) || err != nil {
				return
			}
		}
	}
}

// At returns the entry at a position; found is false if the journal ends before it.
func (j *Journal) At(ctx context.Context, position event.Position) (e Entry, found bool, err error) {
	raw, err := j.read(ctx, int64(position)-1, 1)
	if err != nil || len(raw) == 0 {
		return e, false, err
	}
	e, err = decode(raw[0])
	return e, err == nil && e.Position == position, err
}

// Whole returns ErrCut if the journal lacks its first event.
func (j *Journal) Whole(ctx context.Context) error {
	if _, found, err := j.At(ctx, 1); err != nil || found {
		return err
	}
	_, found, err := j.Last(ctx)
	if err == nil && found {
		err = ErrCut
	}
	return err
}

// named is an event of NamesStream.
type named struct {
	ID uuid.UUID `json:"id"`
}

// names returns the logs whose journals are on a server.
func names(ctx context.Context, server Server) (logs []uuid.UUID, err error) {
	for {
		found, err := server.Read(ctx, NamesStream, int64(len(logs)), maxRead)
		if err != nil || len(found) == 0 {
			return logs, err
		}
		for _, e := range found {
			var n named
			if err := json.Unmarshal(e.Data, &n); err != nil {
				return nil, fmt.Errorf("read the stream %s: %w", NamesStream, err)
			}
			logs = append(logs, n.ID)
		}
	}
}

// Name adds the log to those that the server lists.
func (j *Journal) Name(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.timing.doubt)
	defer cancel()
	e := event.Proposed{
		ID: uuid.NewSHA1(j.log, []byte(NamesStream)), Type: "LogNamed", Data: fmt.Appendf(nil, `{"id":%q}`, j.log), Meta: []byte(`{"schema":1}`),
	}
	for {
		logs, err := names(ctx, j.server)
		if err != nil || slices.Contains(logs, j.log) {
			return err
		}
		if err := j.server.Append(ctx, NamesStream, int64(len(logs))-1, []event.Proposed{e}); !errors.Is(err, ErrMoved) { // by another log
			return err
		}
	}
}

// Named reports whether the server lists the log.
func (j *Journal) Named(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timing.doubt)
	defer cancel()
	logs, err := names(ctx, j.server)
	return slices.Contains(logs, j.log), err
}
