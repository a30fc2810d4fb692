package sim

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/readmodels"
)

// readStatements are the statements of reads outside the small language.
var readStatements = []known{
	{"select generation from projection.generation where", "", "text int4", "generation:int4", func(x *execution) {
		for _, g := range x.live() {
			x.row(g["generation"])
		}
		x.tag = "SELECT 1"
	}},
	{"select g.position, coalesce((select position from log.event", "", "", "position:int8 head:int8 state:int4", func(x *execution) {
		for _, g := range x.live() {
			if strings.Contains(x.st.sql, fmt.Sprintf("g.generation = %v)", g["generation"])) {
				x.row(g["position"], int64(len(x.s.log())), int64(0))
			}
		}
		x.tag = "SELECT 1"
	}},
	{"select stream, events, total from tally_g", "", "", "stream:text events:int8 total:int8", func(x *execution) {
		schema := tallySchema.FindString(x.st.sql)
		if _, there := x.s.get("schema|" + schema); !there {
			x.fail("42P01", "the table does not exist")
			return
		}
		for _, key := range x.s.all(schema + ".tally") {
			r, _ := x.s.get(key)
			x.row(r["stream"], r["events"], r["total"])
		}
		x.tag = "SELECT 1"
	}},
}

var tallySchema = regexp.MustCompile(`tally_g\d+`)

// live returns the live generations.
func (x *execution) live() (all []row) {
	for _, key := range x.s.all("projection.generation") {
		if g, _ := x.s.get(key); g["status"] == "live" {
			all = append(all, g)
		}
	}
	return all
}

// tallied is a record of the table.
type tallied struct {
	Stream        string
	Events, Total int64
}

// read reads the whole table, and checks that it has the events that the read requires.
func (o *operation) read(ctx context.Context, w *world, reader *readmodels.Reader, least event.Position) error {
	w.mu.Lock()
	head := event.Position(len(w.db.events))
	w.mu.Unlock()
	at := &readmodels.At{Wait: time.Duration(o.by+2) * 10 * time.Second}
	if o.keyed {
		at.Min = least
	}
	all, err := readmodels.Rows(ctx, reader.From(at, tally.Name), pgx.RowToStructByPos[tallied],
		`select stream, events, total from tally.tally`)
	if err != nil {
		return err
	}
	position, _ := at.Position()
	required := head
	if at.Min > 0 {
		required = at.Min
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if position < required && !at.Stale() || position < at.Min {
		w.wrong("read %d required position %d and returned position %d", o.nth, required, position)
	}
	want := w.tallyAt(int64(position))
	for _, t := range all {
		if want[t.Stream] != [2]int64{t.Events, t.Total} {
			w.wrong("read %d has %v at %d, and the log %v", o.nth, t, position, want[t.Stream])
		}
	}
	if len(all) != len(want) {
		w.wrong("read %d has %d rows at %d, and the log %d", o.nth, len(all), position, len(want))
	}
	return nil
}
