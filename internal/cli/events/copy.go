package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/postgres"
	"bahi/internal/app"
	"bahi/internal/cli/screen"
	"bahi/migrations"
)

type copyEvents struct {
	app.Settings

	From string `placeholder:"URL" help:"The log to copy: postgres://… or esdb://…. Without it, the log of the settings."`
	To   string `required:"" placeholder:"URL" help:"The destination, empty or with a part of the copy: postgres://… or esdb://…."`
}

// Run copies the missing events. An interrupted copy can be run again.
func (c copyEvents) Run(ctx context.Context) error {
	from, err := c.source(ctx)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer from.Close()
	to, err := c.openAt(ctx, c.To, true)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer to.Close()
	bar := screen.NewBar(c.Shell.Err, "copying", "events")
	done, err := CopyLog(ctx, from, to, bar.Show)
	bar.End()
	fmt.Fprintf(c.Shell.Out, "%d events copied, %d were there", done.Copied, done.There)
	if err == nil {
		fmt.Fprintf(c.Shell.Out, "; the log %s is now the log %s", from.ID(), to.ID())
	}
	fmt.Fprintln(c.Shell.Out)
	if done.Renumbered > 0 {
		fmt.Fprintf(c.Shell.Out, "%d events name positions of others, which are others there: they were written so.\n", done.Renumbered)
	}
	return err
}

func (c copyEvents) source(ctx context.Context) (app.EventLog, error) {
	if c.From != "" {
		return c.openAt(ctx, c.From, false)
	}
	sys, err := c.OpenBooks(ctx, false)
	if err != nil {
		return nil, err
	}
	return closing{sys.Store, sys.Close}, nil
}

// closing is a log with the function that closes it and its connections.
type closing struct {
	eventstore.Store

	shut func()
}

// Close implements eventLog.
func (c closing) Close() { c.shut() }

// openAt opens the log at an address. fresh allows it to make a log in a database.
func (c copyEvents) openAt(ctx context.Context, url string, fresh bool) (app.EventLog, error) {
	log := c.Logger(false)
	switch {
	case strings.HasPrefix(url, "esdb://"), strings.HasPrefix(url, "esdb+discover://"):
		return esdb.Open(ctx, url, log)
	case !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://"):
		return nil, errors.New("a log's address begins with postgres:// or esdb://")
	}
	if fresh {
		if err := migrations.Up(ctx, url); err != nil {
			return nil, err
		}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("it is not an address of a database") // the error may quote the password
	}
	config.ConnConfig.RuntimeParams["jit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, pool, log)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return closing{store, func() { store.Close(); pool.Close() }}, nil
}

// Copied counts the events of a copy.
type Copied struct{ There, Copied, Renumbered int }

// maxCopied and maxCopiedBytes bound one append of consecutive events of one stream, maxSent and maxSentBytes the appends that
// are sent together.
const (
	maxCopied      = 128
	maxCopiedBytes = eventstore.MaxAppend / 2
	maxSent        = 512
	maxSentBytes   = 4 << 20
)

// CopyLog appends to one log the events that it lacks of another, in order. Its own events must be the beginning of the other log.
// Each event keeps its stream, revision, id, type, payload and metadata; its position and its time are the new log's. If an
// event's position changes, events that name it get the new one. progress gets the number of events and an estimate of all.
func CopyLog(ctx context.Context, from, to eventstore.Store, progress func(done, total int64)) (done Copied, err error) {
	if from.ID() == to.ID() {
		return done, fmt.Errorf("both are the log %s", from.ID())
	}
	head, err := from.Head(ctx)
	if err != nil {
		return done, err
	}
	there, stop := iter.Pull2(to.ReadAll(ctx, 0, eventstore.Forwards))
	defer stop()
	c := copier{to: to, done: &done, streams: map[string]bool{}}
	more := true
	for e, err := range from.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return done, err
		}
		if e.Position > head {
			break
		}
		read := int64(done.There + done.Copied + c.count)
		progress(read, max(read+1, int64(float64(read+1)*float64(head)/float64(e.Position)))) // positions may be far apart
		if more {
			var have event.Stored
			if have, err, more = there(); err != nil {
				return done, err
			}
			if more && (have.ID != e.ID || have.Stream != e.Stream || have.Revision != e.Revision) {
				return done, fmt.Errorf("where the log to copy has %s@%d, the other one has %s@%d: it is not the beginning of a copy, or others write to it",
					e.Stream, e.Revision, have.Stream, have.Revision)
			}
			if more {
				c.places.add(e.Position, have.Position)
				done.There++
				continue
			}
		}
		if err := c.take(ctx, e); err != nil {
			return done, err
		}
	}
	if more {
		if have, err, extra := there(); err == nil && extra {
			return done, fmt.Errorf("after the end of the log to copy the other one has %s@%d: others write to it", have.Stream, have.Revision)
		}
	}
	return done, c.send(ctx)
}

// copier sends events in appends of consecutive events of one stream, many appends at once.
type copier struct {
	to     eventstore.Store
	done   *Copied
	places moved

	waiting [][]event.Stored // an append each, to different streams
	streams map[string]bool  // of these
	count   int              // number of their events
	bytes   int              // of all
	last    int              // bytes of the last append
}

// take adds an event. It sends the waiting ones first if the event may name the position of one of them, or begins another append to
// the stream of one: a log that groups appends would put that one behind all others.
func (c *copier) take(ctx context.Context, e event.Stored) error {
	size := len(e.Data) + len(e.Meta)
	n := len(c.waiting)
	joins := n > 0 && c.waiting[n-1][0].Stream == e.Stream && len(c.waiting[n-1]) < maxCopied && c.last+size <= maxCopiedBytes
	if n > 0 && (n >= maxSent || c.bytes+size > maxSentBytes || namesAfter(e, c.waiting[0][0].Position) || !joins && c.streams[e.Stream]) {
		if err := c.send(ctx); err != nil {
			return err
		}
		joins = false
	}
	if renumbered, err := c.places.renumber(&e); err != nil {
		return fmt.Errorf("copy %s@%d: %w", e.Stream, e.Revision, err)
	} else if renumbered {
		c.done.Renumbered++
	}
	if joins {
		c.waiting[n-1], c.last = append(c.waiting[n-1], e), c.last+size
	} else {
		c.waiting, c.last = append(c.waiting, []event.Stored{e}), size
		c.streams[e.Stream] = true
	}
	c.count, c.bytes = c.count+1, c.bytes+size
	return nil
}

// send appends the waiting events, and notes their positions.
func (c *copier) send(ctx context.Context) error {
	requests := make([]eventstore.Transaction, len(c.waiting))
	for i, events := range c.waiting {
		copied := make([]event.New, len(events))
		for j, e := range events {
			copied[j] = event.New{ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta}
		}
		requests[i] = eventstore.To(events[0].Stream, eventstore.Expected(events[0].Revision-1), copied...)
		if err := requests[i].Check(); err != nil { // before any is sent: those behind it would be out of order
			return fmt.Errorf("copy %s@%d: %w", events[0].Stream, events[0].Revision, err)
		}
	}
	for i, r := range c.to.AppendEach(ctx, requests) {
		events := c.waiting[i]
		if r.Err != nil {
			return fmt.Errorf("copy %s@%d: %w", events[0].Stream, events[0].Revision, r.Err)
		}
		if err := c.note(ctx, events, r.Appended); err != nil {
			return err
		}
		c.done.Copied += len(events)
	}
	c.waiting, c.count, c.bytes = c.waiting[:0], 0, 0
	clear(c.streams)
	return nil
}

// note notes the new positions of one append's events.
func (c *copier) note(ctx context.Context, events []event.Stored, at eventstore.Appended) error {
	if len(events) == 1 { // the usual case; saves queries over the network
		c.places.add(events[0].Position, at.Position)
		return nil
	}
	n := 0
	for e, err := range c.to.ReadStream(ctx, events[0].Stream, events[0].Revision, eventstore.Forwards) {
		if err != nil {
			return err
		}
		c.places.add(events[n].Position, e.Position)
		if n++; n == len(events) {
			break
		}
	}
	return nil
}

// moved maps old positions to new ones.
type moved struct {
	same     event.Position // positions up to here are unchanged
	old, new []event.Position
}

func (m *moved) add(old, now event.Position) {
	if len(m.old) == 0 && old == now {
		m.same = old
		return
	}
	m.old, m.new = append(m.old, old), append(m.new, now)
}

// at returns the new position for everything up to an old one.
func (m *moved) at(old event.Position) event.Position {
	if old <= m.same {
		return old
	}
	i, exact := slices.BinarySearch(m.old, old)
	switch {
	case exact:
		return m.new[i]
	case i == 0:
		return m.same
	default:
		return m.new[i-1]
	}
}

// renumber replaces the positions that an event names. It leaves events of other programs alone: their numbers may mean anything.
func (m *moved) renumber(e *event.Stored) (changed bool, err error) {
	t, known := domain.Catalogue.Lookup(e.Type)
	if !known {
		return false, nil
	}
	meta, err := m.rewrite(e.Meta, []string{"of"})
	if err != nil {
		return false, err
	}
	data, err := m.rewrite(e.Data, positionsIn(t.Go))
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(meta, e.Meta) || !bytes.Equal(data, e.Data)
	e.Meta, e.Data = meta, data
	return changed, nil
}

// rewrite replaces old positions under these names of a JSON object by new ones.
func (m *moved) rewrite(text []byte, names []string) ([]byte, error) {
	if len(m.old) == 0 {
		return text, nil
	}
	return replacePositions(text, names, m.at)
}

// replacePositions replaces the positions under these names of a JSON object, and keeps every other byte.
func replacePositions(text []byte, names []string, at func(event.Position) event.Position) ([]byte, error) {
	if len(names) == 0 {
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return text, err
	}
	var out []byte
	kept := 0
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		key, _ := name.(string)
		old, err := strconv.ParseUint(string(value), 10, 64)
		if !slices.Contains(names, key) || err != nil {
			continue
		}
		end := int(d.InputOffset())
		out = append(out, text[kept:end-len(value)]...)
		out = strconv.AppendUint(out, uint64(at(event.Position(old))), 10)
		kept = end
	}
	return append(out, text[kept:]...), nil
}

// namesAfter reports whether an event names a position at or after another.
func namesAfter(e event.Stored, least event.Position) bool {
	t, known := domain.Catalogue.Lookup(e.Type)
	if !known {
		return false
	}
	after := false
	look := func(at event.Position) event.Position {
		after = after || at >= least
		return at
	}
	_, badMeta := replacePositions(e.Meta, []string{"of"}, look)
	_, badData := replacePositions(e.Data, positionsIn(t.Go), look)
	return after || badMeta != nil || badData != nil
}

// positionsIn returns the JSON names of the positions in events of a type.
func positionsIn(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type == reflect.TypeFor[event.Position]() && name != "" {
			names = append(names, name)
		}
	}
	return names
}
