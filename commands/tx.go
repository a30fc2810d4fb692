package commands

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/request"
	"bahi/eventstore"
)

// Tx is one attempt of a decision: the records that it reads and their new events. One append writes all events if none of the records has
// changed.
type Tx struct {
	*try

	workspace uuid.UUID
}

type try struct {
	h       *Handler
	req     Request
	asOf    known             // newest event known to this process before the first read
	overdue map[string]bool   // streams that have changed since an earlier attempt read them
	made    map[string]any    // results of [Once]
	records []record          // in the order in which they were read
	read    map[string]record // by stream
	primary string            // category of the returned record
	first   record            // first decided record of that category
	decided int               // number of decided records
	count   int               // number of events to be written
}

// record is a *reading of any type.
type record interface {
	stream() string
	expected() eventstore.Expected
	count() int // number of events to be written
	guessed() bool
	place() int // index among the decided records, from 1; 0: not decided
	payloads() ([]any, error)
	replace(payloads []any) []any
	encode(req Request, follow int) (eventstore.Write, error)
	begin()
	end(done *eventstore.Appended, first event.Position)
}

func newTx(h *Handler, req Request, category string, overdue map[string]bool, made map[string]any) *Tx {
	t := &try{h: h, req: req, asOf: h.cache.newest(), primary: category, overdue: overdue, made: made, read: map[string]record{}}
	return &Tx{t, req.Workspace}
}

func (tx *Tx) source() source { return source{h: tx.h, tx: tx} }

// In returns the transaction for records of another workspace; [uuid.Nil]: records of no workspace.
func (tx *Tx) In(workspace uuid.UUID) *Tx { return &Tx{tx.try, workspace} }

// Workspace returns the workspace of the transaction's records.
func (tx *Tx) Workspace() uuid.UUID { return tx.workspace }

// Now returns the time by the handler's clock.
func (tx *Tx) Now() time.Time { return tx.h.now() }

// DryRun reports whether nothing will be written.
func (tx *Tx) DryRun() bool { return tx.req.DryRun }

// Once calls first in the first attempt, and returns that result in all attempts with the same name. It is for numbers and ids.
func Once[T any](tx *Tx, name string, first func() (T, error)) (T, error) {
	if known, ok := tx.made[name].(T); ok {
		return known, nil
	}
	v, err := first()
	if err == nil {
		tx.made[name] = v
	}
	return v, err
}

// reading is a record that a transaction has read.
type reading[S any] struct {
	h         *Handler
	kind      *event.Kind[S]
	id        string
	workspace uuid.UUID
	read, now Loaded[S] // states before and after the decided events
	events    []event.Event[S]
	nth       int  // see position
	guess     bool // not read: the caller assumes that the record does not exist
	encoded   []event.Proposed
	meta      event.Meta
	ticket    *ticket
}

// add adds a record to the transaction.
func add[S any](tx *Tx, kind *event.Kind[S], id string, l Loaded[S]) *reading[S] {
	r := &reading[S]{h: tx.h, kind: kind, id: id, workspace: tx.workspace, read: l, now: l}
	tx.records, tx.read[r.stream()] = append(tx.records, r), r
	return r
}

// NewRecord adds a record with a fresh id.
func NewRecord[S any](tx *Tx, kind *event.Kind[S], id string) {
	add(tx, kind, id, Loaded[S]{Revision: -1})
}

// Unseen adds a record without reading it: the caller assumes that its stream does not exist. The append checks that. After a wrong
// assumption, [Tx.Again] returns true.
func Unseen[S any](tx *Tx, kind *event.Kind[S], id string) {
	add(tx, kind, id, Loaded[S]{Revision: -1}).guess = true
}

// Again reports whether an earlier attempt failed because a record had changed.
func (tx *Tx) Again() bool { return len(tx.overdue) > 0 }

// read returns a record of the transaction. It loads the record on first use.
func read[S any](ctx context.Context, tx *Tx, kind *event.Kind[S], id string) (*reading[S], error) {
	stream := kind.Stream(id)
	if known, ok := tx.read[stream]; ok {
		if r, ok := known.(*reading[S]); ok {
			return r, nil
		}
		return &reading[S]{}, fmt.Errorf("stream %s was read as %T", stream, known)
	}
	l, err := Load(ctx, source{h: tx.h, fresh: tx.overdue[stream]}, kind, id)
	if err != nil {
		return &reading[S]{now: l}, err
	}
	return add(tx, kind, id, l), nil
}

// Decide adds the events of a command on a record to the transaction, and returns the record after them. [Do] returns the first decided
// record of its kind. If-Match applies to that record.
func Decide[S any](ctx context.Context, tx *Tx, kind *event.Kind[S], id string, cmd event.Command[S]) (Loaded[S], error) {
	r, err := read(ctx, tx, kind, id)
	if err == nil {
		err = r.decide(ctx, tx, cmd)
	}
	return r.now, err
}

// DecideNew is [Decide] for a new record. It calls newID once, after the command was accepted, and never in a dry run. The commands that
// cmd returns for the empty id and for the record's id must be refused for the same reasons.
func DecideNew[S any](
	ctx context.Context, tx *Tx, kind *event.Kind[S], newID func(context.Context) (string, error), cmd func(id string) event.Command[S],
) (Loaded[S], error) {
	trial := &reading[S]{h: tx.h, kind: kind, workspace: tx.workspace, read: Loaded[S]{Revision: -1}, now: Loaded[S]{Revision: -1}}
	if err := trial.decide(ctx, tx, cmd("")); err != nil || tx.req.DryRun || Untried(ctx) != nil {
		tx.records = append(tx.records, trial)
		return trial.now, err
	}
	if tx.first == record(trial) {
		tx.first = nil
	}
	id, err := Once(tx, kind.Category(), func() (string, error) { return newID(ctx) })
	if err != nil {
		return trial.now, err
	}
	var r *reading[S]
	if tx.overdue[kind.Stream(id)] { // another caller has created the record
		if r, err = read(ctx, tx, kind, id); err != nil {
			return r.now, err
		}
	} else {
		r = add(tx, kind, id, trial.read)
	}
	err = r.decide(ctx, tx, cmd(id))
	return r.now, err
}

func (r *reading[S]) decide(_ context.Context, tx *Tx, cmd event.Command[S]) error {
	if tx.first == nil && r.kind.Category() == tx.primary {
		tx.first = r
	}
	r.workspace = tx.workspace
	foreign := r.now.Revision >= 0 && r.now.Workspace != tx.workspace
	state := r.now.State
	if foreign { // as if it did not exist
		var zero S
		state = zero
	}
	events, err := cmd.Decide(state)
	switch {
	case err != nil:
		return err
	case foreign:
		return errForeign
	case tx.first == record(r) && len(r.events) == 0 && tx.req.IfMatch != nil && *tx.req.IfMatch != r.read.Revision:
		return ErrStale
	}
	for _, e := range events {
		r.now = r.now.and(r.kind, event.Recorded[event.Event[S]]{
			Position: eventstore.End, Stream: r.kind.Stream(r.id), Revision: r.now.Revision + 1, Data: e, Meta: event.Meta{Workspace: tx.workspace},
		}, 0)
	}
	if r.nth == 0 {
		tx.decided++
		r.nth = tx.decided
	}
	r.events = append(r.events, events...)
	return nil
}

// stream returns the name of the record's stream, "" for a new record of a dry run.
func (r *reading[S]) stream() string {
	if r.id == "" {
		return ""
	}
	return r.kind.Stream(r.id)
}

func (r *reading[S]) expected() eventstore.Expected { return eventstore.Expected(r.read.Revision) }
func (r *reading[S]) count() int                    { return len(r.events) }
func (r *reading[S]) place() int                    { return r.nth }
func (r *reading[S]) guessed() bool                 { return r.guess }

// payloads returns the payloads of the events to be written. It returns an error if one has a value of a subject that the kind does not
// declare.
func (r *reading[S]) payloads() ([]any, error) {
	if _, err := event.MapSealed(r.events, r.kind.MaySeal); err != nil {
		return nil, err
	}
	all := make([]any, len(r.events))
	for i, e := range r.events {
		all[i] = e
	}
	return all, nil
}

// replace replaces the record's payloads by the first given ones, and returns the other given ones.
func (r *reading[S]) replace(payloads []any) []any {
	events := make([]event.Event[S], len(r.events))
	for i := range events {
		events[i] = payloads[i].(event.Event[S]) //nolint:forcetypeassert // MapSealed keeps the types
	}
	r.events = events
	return payloads[len(events):]
}

// seal encrypts the personal and secret values of all events in one call, which may create keys.
func (h *Handler) seal(ctx context.Context, records []record) error {
	var all []any
	for _, r := range records {
		payloads, err := r.payloads()
		if err != nil {
			return err
		}
		all = append(all, payloads...)
	}
	all, err := event.MapSealed(all, func(values []*event.Sealed) error { return h.vault.Seal(ctx, values) })
	if err != nil {
		return fmt.Errorf("seal events: %w", err)
	}
	for _, r := range records {
		all = r.replace(all)
	}
	return nil
}

// encode returns the write of the sealed events. follow is the number of later events in the same transaction.
func (r *reading[S]) encode(req Request, follow int) (w eventstore.Write, err error) {
	r.encoded, r.meta = make([]event.Proposed, len(r.events)), r.h.meta(req.In(r.workspace))
	for i, e := range r.events {
		r.meta.More = follow + len(r.events) - 1 - i
		if r.encoded[i], err = r.kind.Encode(newEventID(), e, r.meta); err != nil {
			return w, err
		}
	}
	return eventstore.Write{Stream: r.stream(), Expected: r.expected(), Events: r.encoded, Guess: r.guess}, nil
}

func (r *reading[S]) begin() { r.ticket = r.h.cache.begin(r.stream()) }

// end records the positions of the events, beginning at first. If done is nil, no events were written.
func (r *reading[S]) end(done *eventstore.Appended, first event.Position) {
	var entry *cached
	if done != nil {
		r.now = r.read
		for i, e := range r.events {
			meta := r.meta
			meta.More = int(done.Position-first) - i
			r.now = r.now.and(r.kind, event.Recorded[event.Event[S]]{
				Position: first + event.Position(i), Stream: r.stream(), Revision: r.read.Revision + 1 + int64(i), ID: r.encoded[i].ID, At: done.At,
				Meta: meta, Data: e,
			}, len(r.encoded[i].Data))
		}
		entry = &cached{loaded: r.now, revision: r.now.Revision, bytes: r.now.bytes}
	}
	r.h.cache.end(r.ticket, entry)
}

// checks returns the checks of the records that are only read, and an event at whose position they hold.
func (tx *Tx) checks(written bool) (all []eventstore.Check, asOf known) {
	asOf = tx.asOf
	for _, r := range tx.records {
		if r.stream() != "" && (r.count() == 0 || !written) {
			all = append(all, eventstore.Check{Stream: r.stream(), Expected: r.expected()})
			if r.guessed() {
				asOf = known{}
			}
		}
	}
	return all, asOf
}

// confirm returns a position up to which none of the records has changed since it was read.
func (tx *Tx) confirm(ctx context.Context) (event.Position, error) {
	checks, asOf := tx.checks(false)
	if len(checks) == 0 {
		return 0, nil
	}
	done, err := tx.h.append(ctx, eventstore.Transaction{AsOf: asOf.position, AsOfID: asOf.id, Checks: checks})
	return done.Position, err
}

// commit writes the decided events.
func (tx *Tx) commit(ctx context.Context) (eventstore.Appended, error) {
	if err := Untried(ctx); err != nil { // before creating keys for the seals
		return eventstore.Appended{}, err
	}
	if err := tx.h.seal(ctx, tx.records); err != nil {
		return eventstore.Appended{}, err
	}
	t, err := tx.encode()
	if err != nil {
		return eventstore.Appended{}, err
	}
	tx.begin()
	done, err := tx.h.append(ctx, t)
	tx.end(done, err)
	return done, err
}

// encode returns the transaction of the decided, sealed events, in the order of the decisions.
func (tx *Tx) encode() (eventstore.Transaction, error) {
	slices.SortStableFunc(tx.records, func(a, b record) int { return a.place() - b.place() })
	checks, asOf := tx.checks(true)
	t := eventstore.Transaction{AsOf: asOf.position, AsOfID: asOf.id, Checks: checks}
	for _, r := range tx.records {
		tx.count += r.count()
	}
	follow := tx.count
	for _, r := range tx.records {
		if r.count() == 0 {
			continue
		}
		follow -= r.count()
		w, err := r.encode(tx.req, follow)
		if err != nil {
			return t, err
		}
		t.Writes = append(t.Writes, w)
	}
	return t, nil
}

// begin registers the append with the cache.
func (tx *Tx) begin() {
	for _, r := range tx.records {
		if r.count() > 0 {
			r.begin()
		}
	}
}

// end records the positions of the events.
func (tx *Tx) end(done eventstore.Appended, err error) {
	first := done.Position + 1 - event.Position(tx.count)
	for _, r := range tx.records {
		switch {
		case r.count() == 0:
		case err != nil:
			r.end(nil, 0)
		default:
			r.end(&done, first)
			first += event.Position(r.count())
		}
	}
}

// remember records that the request with an Idempotency-Key was executed on the first decided record. The request's own record was read
// first.
func (tx *Tx) remember(mark string) {
	revision := int64(tx.first.expected()) + int64(tx.first.count())
	if r, ok := tx.records[0].(*reading[request.State]); ok {
		r.events = []event.Event[request.State]{request.Accepted{
			Fingerprint: mark, Stream: tx.first.stream(), Nothing: tx.first.count() == 0, Revision: revision,
		}}
	}
}
