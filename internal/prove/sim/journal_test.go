package sim

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore/journal"
)

// journalServer is a process's connection to the server of the log's journal. Its calls are steps of the scheduler.
type journalServer struct {
	w    *world
	node string
}

// call is a call to the journal's server. It may arrive even after its caller has given up.
type call struct {
	node, name string
	do         func() error
	reply      chan error
}

var errNoAnswer = errors.New("the journal's server did not respond")

func (j *journalServer) call(ctx context.Context, name string, do func() error) error {
	c := &call{j.node, name, do, make(chan error, 1)}
	j.w.mu.Lock()
	j.w.calls = append(j.w.calls, c)
	j.w.mu.Unlock()
	select {
	case err := <-c.reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive delivers a call, or loses its response.
func (w *world) arrive(c *call) {
	lot := w.rng.IntN(1000)
	if w.faults > 0 && lot < w.odds.fault {
		w.faults--
		w.say("LOST response of the journal  %s", c.name)
		c.answer(errNoAnswer)
		if lot%2 == 0 { // the call may come late
			return
		}
	}
	w.calls = slices.DeleteFunc(w.calls, func(other *call) bool { return other == c })
	err := c.do()
	w.say("%s journal %s: %v", c.node, c.name, short(err))
	c.answer(err)
}

// answer returns the result to the caller, once.
func (c *call) answer(err error) {
	select {
	case c.reply <- err:
	default:
	}
}

// Append implements [journal.Server].
func (j *journalServer) Append(ctx context.Context, stream string, last int64, events []event.Proposed) error {
	return j.call(ctx, "append", func() error {
		all := j.w.db.journal[stream]
		from := int(last) + 1
		if from > len(all) {
			return journal.ErrMoved
		}
		if from < len(all) { // the same append has the same result as the first time
			for i, e := range events {
				if from+i >= len(all) || all[from+i].ID != e.ID {
					return journal.ErrMoved
				}
			}
			return nil
		}
		for i, e := range events {
			all = append(all, event.Stored{
				Position: event.Position(from + i + 1), Stream: stream, Revision: int64(from + i), ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta,
			})
		}
		j.w.db.journal[stream] = all
		return nil
	})
}

// Read implements [journal.Server].
func (j *journalServer) Read(ctx context.Context, stream string, from int64, count int) (found []event.Stored, err error) {
	err = j.call(ctx, "read", func() error {
		all := j.w.db.journal[stream]
		from = min(max(from, 0), int64(len(all)))
		found = all[from:min(from+int64(count), int64(len(all)))]
		return nil
	})
	return found, err
}

// Last implements [journal.Server].
func (j *journalServer) Last(ctx context.Context, stream string) (e event.Stored, found bool, err error) {
	err = j.call(ctx, "last", func() error {
		if all := j.w.db.journal[stream]; len(all) > 0 {
			e, found = all[len(all)-1], true
		}
		return nil
	})
	return e, found, err
}

// Close implements [journal.Server].
func (j *journalServer) Close() {}

// journalStatements are the statements for a log with a journal.
var journalStatements = []known{
	{"select journal is not distinct from $1", "", "text", "bound:bool", func(x *execution) {
		r, bound := x.s.get("identity")
		x.row(bound && r["journal"] == x.value(1))
		x.tag = "SELECT 1"
	}},
	{"update log.identity set journal = $1", "", "text", "", func(x *execution) {
		x.change("identity", row{"journal": x.value(1)})
		x.tag = "UPDATE 1"
	}},
	{"select position, stream, revision", "recorded_at, open_ended from log.event", "int8 int8", eventColumns + " open:bool",
		func(x *execution) {
			for _, e := range between(x.s.log(), arg[int64](x, 1)+1, arg[int64](x, 2)) {
				x.row(int64(e.Position), e.Stream, e.Revision, e.ID, e.Type, string(e.Data), string(e.Meta), e.At, e.open)
			}
			x.tag = "SELECT 1"
		}},
	{"insert into log.event", "select u.position", "int8[] int8[] timestamptz[] uuid[] bool[] text[] text[] text[] text[]", "", insertEntries},
}

// insertEntries inserts entries of the journal at the log's end.
func insertEntries(x *execution) {
	positions, revisions, ids, open := arg[[]int64](x, 1), arg[[]int64](x, 2), arg[[][16]byte](x, 4), arg[[]bool](x, 5)
	streams, types, datas, metas := arg[[]string](x, 6), arg[[]string](x, 7), arg[[]string](x, 8), arg[[]string](x, 9)
	for i, at := range arg[[]time.Time](x, 3) {
		if positions[i] != int64(len(x.s.log())+1) {
			x.fail("23505", "event_pkey")
			return
		}
		x.s.tx.events = append(x.s.tx.events, logged{event.Stored{
			Position: event.Position(positions[i]), Stream: streams[i], Revision: revisions[i], ID: uuid.UUID(ids[i]), Type: types[i],
			Data: []byte(datas[i]), Meta: []byte(metas[i]), At: at.UTC(),
		}, open[i]})
	}
	x.tag = "INSERT 0 1"
}

// checkJournal checks that the journal has all that the log has.
func (w *world) checkJournal() {
	for stream, all := range w.db.journal {
		if stream == journal.NamesStream {
			continue
		}
		if len(all) < len(w.db.events) {
			w.wrong("the journal has %d events, and the log %d", len(all), len(w.db.events))
			return
		}
		for i, e := range w.db.events {
			var kept struct{ ID uuid.UUID }
			if err := json.Unmarshal(all[i].Meta, &kept); err != nil || kept.ID != e.ID {
				w.wrong("the journal has another event at %d", i+1)
				return
			}
		}
	}
}
