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
	done, err := CopyLog(ctx, from, to, func(at, head event.Position) { bar.Show(int64(at), int64(head)) })
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

// maxCopied and maxCopiedBytes bound one append of consecutive events of one stream. Events that were appended one by one may be
// too much for one append: a server of EventStoreDB takes 1 MiB by default.
const (
	maxCopied      = 128
	maxCopiedBytes = 512 << 10
)

// CopyLog appends to one log the events that it lacks of another, in order. Its own events must be the beginning of the other log.
// Each event keeps its stream, revision, id, type, payload and metadata; its position and its time are the new log's. If an
// event's position changes, events that name it get the new one.
func CopyLog(ctx context.Context, from, to eventstore.Store, progress func(at, head event.Position)) (done Copied, err error) {
	if from.ID() == to.ID() {
		return done, fmt.Errorf("both are the log %s", from.ID())
	}
	head, err := from.Head(ctx)
	if err != nil {
		return done, err
	}
	there, stop := iter.Pull2(to.ReadAll(ctx, 0, eventstore.Forwards))
	defer stop()
	var (
		places  moved
		waiting []event.Stored // of one stream, for one append
		held    int            // bytes of their payloads and metadata
		more    = true
	)
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		err := appendCopies(ctx, to, waiting, &places, &done)
		waiting, held = waiting[:0], 0
		return err
	}
	for e, err := range from.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return done, err
		}
		if e.Position > head {
			break
		}
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
				places.add(e.Position, have.Position)
				done.There++
				continue
			}
		}
		size := len(e.Data) + len(e.Meta)
		if len(waiting) > 0 && (waiting[0].Stream != e.Stream || len(waiting) == maxCopied || held+size > maxCopiedBytes || namesPositions(e)) {
			if err := flush(); err != nil {
				return done, err
			}
		}
		waiting, held = append(waiting, e), held+size
		progress(e.Position, head)
	}
	if more {
		if have, err, extra := there(); err == nil && extra {
			return done, fmt.Errorf("after the end of the log to copy the other one has %s@%d: others write to it", have.Stream, have.Revision)
		}
	}
	return done, flush()
}

// appendCopies appends events of one stream, and notes their positions.
func appendCopies(ctx context.Context, to eventstore.Store, events []event.Stored, places *moved, done *Copied) error {
	first := events[0]
	copies := make([]event.New, len(events))
	for i, e := range events {
		renumbered, err := places.renumber(&e)
		if err != nil {
			return fmt.Errorf("copy %s@%d: %w", e.Stream, e.Revision, err)
		}
		if renumbered {
			done.Renumbered++
		}
		copies[i] = event.New{ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta}
	}
	at, err := to.Append(ctx, first.Stream, eventstore.Expected(first.Revision-1), copies...)
	if err != nil {
		return fmt.Errorf("copy %s@%d: %w", first.Stream, first.Revision, err)
	}
	if len(events) == 1 { // the usual case; saves queries over the network
		places.add(first.Position, at.Position)
		done.Copied++
		return nil
	}
	n := 0
	for e, err := range to.ReadStream(ctx, first.Stream, first.Revision, eventstore.Forwards) {
		if err != nil {
			return err
		}
		places.add(events[n].Position, e.Position)
		if n++; n == len(events) {
			break
		}
	}
	done.Copied += n
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

// rewrite replaces the positions under these names of a JSON object, and keeps every other byte.
func (m *moved) rewrite(text []byte, names []string) ([]byte, error) {
	if len(names) == 0 || len(m.old) == 0 {
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
		out = strconv.AppendUint(out, uint64(m.at(event.Position(old))), 10)
		kept = end
	}
	return append(out, text[kept:]...), nil
}

// namesPositions reports whether an event may name positions; then events before it must have their new positions first.
func namesPositions(e event.Stored) bool {
	t, known := domain.Catalogue.Lookup(e.Type)
	return known && (len(positionsIn(t.Go)) > 0 || bytes.Contains(e.Meta, []byte(`"of"`)))
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
