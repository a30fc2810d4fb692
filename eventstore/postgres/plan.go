package postgres

import (
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"bahi/domain/event"
	"bahi/eventstore"
)

// plan is the outcome of validating a group at the window's head.
type plan struct {
	accepted  []*pending
	refused   []*pending
	wrong     []error // error of each refused append
	undecided bool    // the window lacks a stream
	events    []event.Stored
	open      []bool // by event: appended without an exact revision
}

// lookedUp has the state, read under the log's lock, of streams that the window lacks.
type lookedUp struct {
	revisions map[string]int64
	repeated  map[appendedEvent]bool // events of transactions without an exact revision
	lost      map[uuid.UUID]bool     // AsOfIDs that are not in the log
}

// appendedEvent is an event that was appended to a stream without an exact revision.
type appendedEvent struct {
	stream string
	id     uuid.UUID
}

func (l *lookedUp) repeats(w eventstore.Write) bool {
	return slices.ContainsFunc(w.Events, func(e event.Proposed) bool { return l.repeated[appendedEvent{w.Stream, e.ID}] })
}

// isRecent reports whether the window has all events since the caller read its expected revisions. Otherwise the log may have lost events
// that the caller has read.
func (p *pending) isRecent(w *window) bool {
	return p.AsOfID == uuid.Nil || p.AsOf >= w.since && p.AsOf <= w.head
}

// plan validates the members of a group in order. Each sees the writes of those before it.
func (a *appender) plan(group []*pending, looked *lookedUp) *plan {
	var (
		p       = &plan{}
		written = map[string]int64{}
		next    = a.window.head
	)
	current := func(stream string) (revision int64, known bool) {
		if revision, known = written[stream]; known {
			return revision, true
		}
		if c, changed := a.window.last[stream]; changed {
			return c.revision, true
		}
		if looked != nil {
			revision, known = looked.revisions[stream]
		}
		return revision, known
	}
	refuses := func(m *pending) error {
		switch {
		case looked == nil && !m.isRecent(&a.window):
			p.undecided = true
			return nil
		case looked != nil && looked.lost[m.AsOfID]:
			return eventstore.ErrTailLost
		}
		for c, asOf := range m.streams {
			revision, known := current(c.Stream)
			switch {
			case !known && a.window.trusts(c.Expected, asOf):
			case !known && asOf < m.AsOf && looked == nil: // the insert detects whether the stream exists
			case !known:
				p.undecided = true
				return nil
			case !holds(c.Expected, revision) || m.open() && looked != nil && looked.repeats(m.Writes[0]):
				return &eventstore.WrongRevision{Stream: c.Stream, Expected: c.Expected, Actual: revision}
			}
		}
		p.undecided = m.open() && looked == nil
		return nil
	}
	for _, m := range group {
		wrong := refuses(m)
		switch {
		case p.undecided:
			return p
		case wrong != nil:
			p.refused, p.wrong = append(p.refused, m), append(p.wrong, wrong)
			continue
		}
		p.accepted = append(p.accepted, m)
		for _, w := range m.Writes {
			revision, exact := int64(w.Expected), w.Expected >= eventstore.NoStream
			if !exact {
				revision, _ = current(w.Stream)
			}
			for _, e := range w.Events {
				next, revision = next+1, revision+1
				p.events = append(p.events, event.Stored{
					Position: next, Stream: w.Stream, Revision: revision, ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta,
				})
				p.open = append(p.open, !exact)
			}
			written[w.Stream] = revision
		}
	}
	return p
}

// holds reports whether a stream with the last revision current matches expected.
func holds(expected eventstore.Expected, current int64) bool {
	switch expected {
	case eventstore.Any:
		return true
	case eventstore.StreamExists:
		return current >= 0
	default:
		return int64(expected) == current
	}
}

// columns returns the arguments of insertGroup.
func (p *plan) columns(head event.Position, locked bool) []any {
	var (
		n                            = len(p.events)
		streams, types, datas, metas = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		revisions                    = make([]int64, n)
		ids                          = make([]pgtype.UUID, n) // pgx encodes its own type faster
	)
	for i, e := range p.events {
		streams[i], revisions[i], ids[i], types[i] = e.Stream, e.Revision, pgUUID(e.ID), e.Type
		datas[i], metas[i] = string(e.Data), string(e.Meta)
	}
	return []any{int64(head), streams, revisions, ids, p.open, types, datas, metas, locked}
}

func pgUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
