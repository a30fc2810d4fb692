package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"bahi/domain/event"
)

// liveness records how far readers have seen the live generation.
type liveness struct{ position int64 }

// events returns how many events the operation appends.
func (o *operation) events() int {
	switch o.kind {
	case "transfer":
		return 2
	case "each":
		return 3
	case "confirm", "read", "build", "rollback", "lease":
		return 0
	default:
		return 1
	}
}

func (e logged) added() (a added) {
	if e.Type == "CellAdded" {
		_ = json.Unmarshal(e.Data, &a)
	}
	return a
}

// answered checks an acknowledged write: it is committed, whole, and at the right position.
func (w *world) answered(o *operation) {
	w.checkJournal()
	n := 0
	for _, e := range w.db.events[:min(int(o.at), len(w.db.events))] {
		if e.added().Op == o.nth {
			n++
		}
	}
	if n != o.events() || int(o.at) > len(w.db.events) {
		w.wrong("operation %d was acknowledged at %d, where the log has %d of its %d events", o.nth, o.at, n, o.events())
	}
}

// check checks the log and the events that its followers received, at the end.
func (w *world) check() {
	count, sums, last, ends := map[int]int{}, map[string]int{}, map[string]int64{}, 0
	for i, e := range w.db.events {
		if int(e.Position) != i+1 {
			w.wrong("position %d has the event of position %d", i+1, e.Position)
		}
		revision, known := last[e.Stream]
		if !known {
			revision = -1
		}
		if last[e.Stream] = e.Revision; e.Revision != revision+1 {
			w.wrong("stream %s has revision %d after %d", e.Stream, e.Revision, revision)
		}
		a := e.added()
		count[a.Op]++
		if name, is := strings.CutPrefix(e.Stream, "cell-"); is {
			sums[name[:1]] += a.By
		}
		if i == ends {
			ends += event.More(e.Meta) + 1
		}
		if i+1 == ends { // between transactions
			for pair, sum := range sums {
				if sum < 0 {
					w.wrong("at %d, the cells %s have %d together", i+1, pair, sum)
				}
			}
		}
	}
	if ends != len(w.db.events) {
		w.wrong("the log ends inside a transaction")
	}
	for _, o := range w.operations {
		n := count[o.nth]
		if o.outcome == "done" && n != o.events() || o.outcome == "refused" && n != 0 || n != 0 && n != o.events() && o.kind != "each" {
			w.wrong("operation %d (%s, %s) has %d of %d events in the log", o.nth, o.kind, o.outcome, n, o.events())
		}
	}
	w.checkJournal()
	for _, n := range append(w.ended, w.nodes...) {
		w.checkFollower(n)
	}
}

func (w *world) checkFollower(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.followed) > len(w.db.events) {
		w.wrong("%s received %d events of %d", n.name, len(n.followed), len(w.db.events))
		return
	}
	for i, e := range n.followed {
		if e.ID != w.db.events[i].ID || e.Position != w.db.events[i].Position || !bytes.Equal(e.Data, w.db.events[i].Data) {
			w.wrong("%s received another event at %d", n.name, i+1)
			return
		}
	}
	for _, end := range n.batches {
		if event.More(n.followed[end-1].Meta) > 0 {
			w.wrong("%s received half a transaction, up to %d", n.name, end)
		}
	}
}

// tallyAt folds the log up to a position as the projection should.
func (w *world) tallyAt(position int64) map[string][2]int64 {
	all := map[string][2]int64{}
	for _, e := range w.db.events[:min(position, int64(len(w.db.events)))] {
		t := all[e.Stream]
		all[e.Stream] = [2]int64{t[0] + 1, t[1] + int64(e.added().By)}
	}
	return all
}

// checkTables checks that a generation's tables are the fold of the log up to its checkpoint.
func (w *world) checkTables(schema string) {
	name, nth, _ := strings.Cut(schema, "_g")
	g, found := w.db.rows["projection.generation|"+name+"|"+nth]
	if !found {
		return // dropped
	}
	position := g["position"].(int64)
	if part, filling := w.db.rows["projection.partition|"+name+"|"+nth+"|0"]; filling {
		position = part["position"].(int64)
	}
	want := w.tallyAt(position)
	n := 0
	for key, r := range w.db.rows {
		if strings.HasPrefix(key, schema+".tally|") {
			n++
			if t := want[r["stream"].(string)]; t[0] != r["events"] || t[1] != r["total"] {
				w.wrong("%s has %v of %s at %d, and the log %v", schema, r, r["stream"], position, t)
			}
		}
	}
	if n != len(want) {
		w.wrong("%s has %d rows at %d, and the log %d", schema, n, position, len(want))
	}
}

// checkLive checks that readers never see less than before, and that no fault parks a projection.
func (w *world) checkLive() {
	for key, g := range w.db.rows {
		if !strings.HasPrefix(key, "projection.generation|") {
			continue
		}
		if g["error"] != nil && g["status"] != "scratch" {
			w.wrong("generation %v is parked, although its events can be folded: %v", g["generation"], g["error"])
		}
		if g["status"] != "live" {
			continue
		}
		at := g["position"].(int64)
		if at < w.live.position {
			w.wrong("readers were at %d, and generation %v is live at %d", w.live.position, g["generation"], at)
		}
		w.live.position = at
	}
}

// late returns which follower has not caught up with the log.
func (w *world) late() (all []string) {
	for _, n := range w.nodes {
		n.mu.Lock()
		if len(n.followed) < len(w.db.events) {
			all = append(all, fmt.Sprintf("%s has followed %d of %d events", n.name, len(n.followed), len(w.db.events)))
		}
		n.mu.Unlock()
	}
	for _, c := range w.clients {
		if !c.idle || c.left > 0 {
			all = append(all, c.name+" waits")
		}
	}
	return append(all, w.lateTables()...)
}
