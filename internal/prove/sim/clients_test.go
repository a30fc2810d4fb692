package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/readmodels"
)

// cell is a record with a sum. The sum of two cells is never negative.
type cell struct{ sum int }

type added struct {
	Op int `json:"op"`
	By int `json:"by"`
}

func (e added) Evolve(s cell) cell { return cell{s.sum + e.By} }

var cells = event.NewKind("cell", event.Of[added]("CellAdded", 1))

// add is the command.
type add struct {
	op, by int
	other  int // the sum of this cell and the one must not be negative
	guards bool
}

var errTooLittle = fault.New(fault.Conflict, "Too little")

func (c add) Decide(s cell) ([]event.Event[cell], error) {
	if c.guards && s.sum+c.by+c.other < 0 {
		return nil, errTooLittle
	}
	return []event.Event[cell]{added{c.op, c.by}}, nil
}

// operation is an operation of a client, with all its calls.
type operation struct {
	nth     int
	kind    string
	cells   [2]string
	by      int
	keyed   bool
	ids     []uuid.UUID
	calls   int
	outcome string // "", "done", "refused", "unknown"
	at      event.Position
}

// client starts operations when the scheduler chooses it.
type client struct {
	w    *world
	name string
	idle bool
	left int
	go_  chan *operation

	acknowledged event.Position // highest position of its writes
}

func (w *world) newClient(name string, operations int) *client {
	c := &client{w: w, name: name, left: operations, go_: make(chan *operation)}
	w.running.Go(c.run)
	c.idle = true
	return c
}

// kinds are the kinds of clients' operations. Odd seeds have no reads: they are older.
var kinds = []string{"add", "guarded", "transfer", "append", "each", "confirm", "read"}

// begin chooses an operation. The scheduler calls it.
func (c *client) begin() {
	w := c.w
	o := &operation{nth: len(w.operations) + 1, keyed: w.rng.IntN(2) == 0, by: w.rng.IntN(5) - 2}
	pair := w.rng.IntN(3)
	o.cells = [2]string{fmt.Sprintf("%da", pair), fmt.Sprintf("%db", pair)}
	if w.rng.IntN(2) == 0 {
		o.cells[0], o.cells[1] = o.cells[1], o.cells[0]
	}
	switch {
	case strings.HasPrefix(c.name, "operator"):
		o.kind = []string{"build", "rollback", "lease"}[w.rng.IntN(3)]
	default:
		o.kind = kinds[w.rng.IntN(len(kinds)-int(w.seed%2))]
	}
	if o.by == 0 {
		o.by = 1
	}
	for range 3 {
		o.ids = append(o.ids, w.newID())
	}
	w.operations = append(w.operations, o)
	c.idle = false
	c.left--
	w.say("%s begins %d: %s %s by %d keyed=%v", c.name, o.nth, o.kind, o.cells, o.by, o.keyed)
	c.go_ <- o
}

func (w *world) newID() uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(w.rng.IntN(256))
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

func (c *client) run() {
	for o := range c.go_ {
		if strings.HasPrefix(c.name, "operator") {
			c.w.mu.Lock()
			n := c.w.nodes[o.nth%len(c.w.nodes)]
			c.w.mu.Unlock()
			err := o.operate(n)
			c.w.mu.Lock()
			o.outcome, c.idle = "unknown", true
			c.w.say(c.name+" ends %d, a %s: %v", o.nth, o.kind, short(err))
			c.w.mu.Unlock()
			continue
		}
		if o.kind == "read" {
			c.read(o)
			continue
		}
		began := time.Now()
		for first := true; ; first = false {
			store, h := c.w.nodeFor(o.calls)
			if store == nil {
				time.Sleep(30 * time.Millisecond)
				continue
			}
			ctx, cancel := context.WithTimeout(as(context.Background(), c.name), 60*time.Second)
			at, err := o.call(ctx, store, h)
			cancel()
			o.calls++
			if c.w.settle(c, o, at, err, time.Since(began)) {
				break
			}
			time.Sleep(time.Duration(10+o.nth) * time.Millisecond)
			_ = first
		}
	}
}

// read makes an operation's read on one process. It waits until the projection is built.
func (c *client) read(o *operation) {
	err := readmodels.ErrNotBuilt
	for errors.Is(err, readmodels.ErrNotBuilt) {
		time.Sleep(50 * time.Millisecond)
		c.w.mu.Lock()
		n := c.w.nodes[o.nth%len(c.w.nodes)]
		c.w.mu.Unlock()
		n.mu.Lock()
		reader := n.reader
		n.mu.Unlock()
		if reader != nil {
			ctx, cancel := context.WithTimeout(as(n.life, c.name), 2*time.Minute)
			err = o.read(ctx, c.w, reader, c.acknowledged)
			cancel()
		}
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if errors.Is(err, readmodels.ErrBeyondHead) {
		c.w.wrong("read %d required position %d, which was acknowledged: %v", o.nth, c.acknowledged, err)
	}
	o.outcome, c.idle = "unknown", true
	c.w.say("%s ends %d, a read: %s", c.name, o.nth, short(err))
}

// call makes one call.
func (o *operation) call(ctx context.Context, store eventstore.Store, h *commands.Handler) (event.Position, error) {
	key := ""
	if o.keyed {
		key = fmt.Sprint("key", o.nth)
	}
	switch o.kind {
	case "append", "each":
		var all []eventstore.Transaction
		for i, id := range o.ids {
			e := event.Proposed{ID: id, Type: "CellAdded", Data: must(json.Marshal(added{Op: o.nth})), Meta: []byte(`{"schema":1}`)}
			stream, expected := fmt.Sprintf("raw-%d", i), eventstore.Any
			if o.keyed { // a stream of its own
				stream, expected = fmt.Sprintf("raw%d-%d", i, o.nth), eventstore.NoStream
			}
			all = append(all, eventstore.To(stream, expected, e))
		}
		if o.kind == "append" {
			done, err := store.Append(ctx, all[0])
			return done.Position, err
		}
		var at event.Position
		var failed error
		for _, r := range store.AppendEach(ctx, all) {
			at, failed = max(at, r.Position), errors.Join(failed, r.Err)
		}
		return at, failed
	default:
		out, err := commands.Do(ctx, h, requestOf(key), cells, func(ctx context.Context, tx *commands.Tx) error {
			switch o.kind {
			case "confirm":
				_, err := commands.Load(ctx, tx, cells, o.cells[0])
				return err
			case "transfer":
				if _, err := commands.Decide(ctx, tx, cells, o.cells[0], add{op: o.nth, by: o.by}); err != nil {
					return err
				}
				_, err := commands.Decide(ctx, tx, cells, o.cells[1], add{op: o.nth, by: -o.by})
				return err
			default:
				other, err := commands.Load(ctx, tx, cells, o.cells[1])
				if err == nil {
					_, err = commands.Decide(ctx, tx, cells, o.cells[0], add{o.nth, o.by, other.State.sum, true})
				}
				return err
			}
		})
		return out.Position, err
	}
}

// settle records the outcome of a call. It returns false if the client calls again.
func (w *world) settle(c *client, o *operation, at event.Position, err error, took time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := o.keyed || o.kind == "append" || o.kind == "each"
	refused, is := errors.AsType[*fault.Error](err)
	_, wrong := errors.AsType[*eventstore.WrongRevision](err)
	switch {
	case err == nil:
		o.outcome, o.at = "done", at
	case is && refused.Kind != fault.Unavailable:
		o.outcome = "refused"
	case wrong:
		w.wrong("operation %d was refused: %v", o.nth, err)
		o.outcome = "refused"
	case again && took < 20*time.Minute:
		w.say("%s calls %d again: %v", c.name, o.nth, short(err))
		o.outcome = "unknown"
		return false
	case errors.Is(err, eventstore.ErrUnavailable):
		o.outcome = "refused" // nothing was appended
		if o.kind == "each" {
			o.outcome = "unknown"
		}
	default:
		o.outcome = "unknown"
	}
	w.say("%s ends %d: %s at %d: %v", c.name, o.nth, o.outcome, o.at, short(err))
	if o.outcome == "done" {
		c.acknowledged = max(c.acknowledged, at)
		w.answered(o)
	}
	c.idle = true
	return true
}

func short(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return text[:min(len(text), 90)]
}

func (w *world) nodeFor(call int) (eventstore.Store, *commands.Handler) {
	w.mu.Lock()
	n := w.nodes[call%len(w.nodes)]
	w.mu.Unlock()
	store, h := n.open()
	if store == nil {
		return nil, nil
	}
	return store, h
}

// end ends the client. It starts no further operation.
func (c *client) end() {
	c.left = 0
	close(c.go_)
}
