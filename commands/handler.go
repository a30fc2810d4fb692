package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
)

const (
	// maxTries is how often a command is decided again because its stream moved under it.
	maxTries = 16

	// feedPatience is how long the cache may take to learn of an append of this process before the
	// store is asked instead.
	feedPatience = 20 * time.Millisecond
)

// ErrBusy is the error of a command whose stream moved under it again and again.
var ErrBusy = fault.New(fault.Unavailable, "Too many changes at once, try again")

// ErrStale is the error of an If-Match with a revision that is not the newest.
var ErrStale = fault.New(fault.Stale, "It was changed since you read it")

// errForeign guards against a command that would write into another workspace's stream.
var errForeign = fault.New(fault.NotFound, "Not found")

// Vault keeps the keys that all nodes share.
type Vault interface {
	// HMAC computes a keyed hash.
	HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error)
	// Seal encrypts the personal and secret values of events that are about to be appended.
	Seal(ctx context.Context, values []*event.Sealed) error
	// Reveal opens personal values, or marks them as erased.
	Reveal(ctx context.Context, values []*event.Sealed) error
}

// Handler carries out commands on one log.
type Handler struct {
	store   eventstore.Store
	vault   Vault
	now     func() time.Time
	cache   *cache
	numbers *numbers
	rules   map[string]any // category: Rule[S]
	waiting waiting        // requests that wait for their commands

	conflicts *prometheus.CounterVec
}

// New makes a Handler. Run must be running for it to be fast.
func New(store eventstore.Store, vault Vault, now func() time.Time) *Handler {
	h := &Handler{store: store, vault: vault, now: now, cache: newCache(), rules: map[string]any{}}
	h.numbers = newNumbers(h)
	h.conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bahi_append_conflicts_total", Help: "Appends that were refused because a stream had changed meanwhile, by its category.",
	}, []string{"category"})
	return h
}

// Register adds the handler's metrics.
func (h *Handler) Register(metrics *prometheus.Registry) { metrics.MustRegister(h.conflicts) }

// Run follows the log until ctx ends. It answers an error when the log cannot be reached at first. Where what it follows
// breaks off, it begins again: the log may have lost its newest events.
func (h *Handler) Run(ctx context.Context) error {
	for first := true; ctx.Err() == nil; first = false {
		head, err := h.store.Head(ctx)
		switch {
		case err == nil:
			h.follow(ctx, head)
		case first && ctx.Err() == nil:
			return fmt.Errorf("follow the log: %w", err)
		}
		h.forget()
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
	return nil
}

const followAgain = 100 * time.Millisecond

func (h *Handler) follow(ctx context.Context, after event.Position) {
	h.cache.reset(after)
	for batch, err := range h.store.Subscribe(ctx, after) {
		if err != nil {
			return
		}
		h.numbers.saw(batch.Events)
		h.cache.feed(batch)
	}
}

// forget gives up what this process knows of the log without asking.
func (h *Handler) forget() {
	h.cache.reset(0)
	h.numbers.forget()
}

// append is the store's. When it shows that the log lost its newest events, what was made of them is forgotten at once,
// before the log's followers are told.
func (h *Handler) append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if err := Untried(ctx); err != nil {
		return eventstore.Appended{}, err
	}
	fed := h.cache.position()
	done, err := h.store.Append(ctx, t)
	wrong, refused := h.conflict(err)
	if refused && wrong.Actual < int64(wrong.Expected) || err == nil && !done.Replayed && done.Position <= fed {
		h.forget()
	}
	return done, err
}

// conflict returns the conflict that err is, and counts it.
func (h *Handler) conflict(err error) (*eventstore.WrongRevision, bool) {
	wrong, is := errors.AsType[*eventstore.WrongRevision](err)
	if is {
		category, _ := event.SplitStream(wrong.Stream)
		h.conflicts.WithLabelValues(category).Inc()
	}
	return wrong, is
}

// Cached is where states are loaded from that may be late by a moment.
func (h *Handler) Cached() Source { return Source{h: h} }

// Fresh is where states are loaded from that are as new as the call.
func (h *Handler) Fresh() Source { return Source{h: h, fresh: true} }

// AppendEach appends events that only carry out what is decided already, each to its own stream.
func (h *Handler) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	if err := Untried(ctx); err != nil {
		return slices.Repeat([]eventstore.Result{{Err: err}}, len(appends))
	}
	results := h.store.AppendEach(ctx, appends)
	for _, r := range results {
		h.conflict(r.Err)
	}
	return results
}

// Outcome is what became of a command.
type Outcome[S any] struct {
	ID       string         // of the aggregate
	State    S              // after it
	Revision int64          // of the stream after it, or as it is when nothing was appended; -1: no stream
	Position event.Position // of its last event; without one, up to which the command was decided
	At       time.Time      // when the last of its events was recorded
	Began    time.Time      // when the first event of the stream was recorded
	Changed  bool           // events were appended; with a refusal: they are void
	Replayed bool           // by an earlier request with the same key
}

// Handle decides the command on the aggregate and appends what follows. It answers the domain's
// refusal, [ErrStale], [ErrBusy], or what the store answers. The command is decided again, on newer
// state, as often as the stream moves under it.
func Handle[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], id string, cmd event.Command[S]) (Outcome[S], error) {
	return run(ctx, h, req, kind, func(context.Context) (string, error) { return id, nil }, false, always(cmd))
}

// always builds the same command whatever the id.
func always[S any](cmd event.Command[S]) func(string) event.Command[S] {
	return func(string) event.Command[S] { return cmd }
}

// Create is [Handle] for an aggregate that is to begin. newID gives its id, once the command is known
// to be in order, so that a refusal and a dry run use none up.
func Create[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error), cmd event.Command[S]) (Outcome[S], error) {
	return Begin(ctx, h, req, kind, newID, always(cmd))
}

// Begin is [Create] for a command that has to know the id, such as one with personal values of the new record. The command of a
// dry run gets an empty id, and so does the one that is checked before there is an id.
func Begin[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error), cmd func(id string) event.Command[S],
) (Outcome[S], error) {
	checked := func(ctx context.Context) (string, error) {
		var zero S
		_, err := cmd("").Decide(zero)
		switch {
		case err != nil || req.DryRun || Untried(ctx) != nil:
			return "", err
		case req.IfMatch != nil && *req.IfMatch >= 0: // nobody has seen a revision of what does not exist
			return "", ErrStale
		default:
			return newID(ctx)
		}
	}
	return run(ctx, h, req, kind, checked, true, cmd)
}

// run carries out the command on the aggregate id. begins says that the id is new, so that there is
// nothing to load.
func run[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], id func(context.Context) (string, error), begins bool, cmd func(id string) event.Command[S],
) (Outcome[S], error) {
	if req.RequestID != "" {
		defer h.waiting.begin()()
	}
	if req.Key != "" && !req.DryRun {
		return once(ctx, h, req, kind, id, begins, cmd)
	}
	target, err := id(ctx)
	if err != nil {
		return Outcome[S]{Revision: -1}, err
	}
	return repeat(ctx, h, req, kind, target, begins, cmd(target), func(int) uuid.UUID { return newEventID() }, nil)
}

// newEventID returns ids that rise with time, which keeps whatever indexes them compact.
func newEventID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// repeat decides and appends until the stream holds still. accept is called between the two, with
// what was decided.
func repeat[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], id string, begins bool, cmd event.Command[S],
	eventID func(int) uuid.UUID, accept func(stream string, nothing bool, revision int64) error,
) (Outcome[S], error) {
	from := h.Cached()
	if req.DryRun {
		from = h.Fresh() // no append will tell that the state was old
	}
	var head event.Position // of the log, before the state was read
	for range maxTries {
		l := Loaded[S]{Revision: -1, asOf: h.cache.position()} // the stream of a new id does not exist
		if !begins {
			var err error
			if l, err = Load(ctx, from, kind, id); err != nil {
				return Outcome[S]{ID: id, Revision: -1}, err
			}
		}
		events, err := decide(ctx, from, req, kind, l, cmd)
		_, refused := errors.AsType[*fault.Error](err)
		if (refused || err == nil && len(events) == 0) && !from.fresh {
			from = h.Fresh() // what no append will prove is answered on fresh state only
			if head, err = h.store.Head(ctx); err != nil {
				return Outcome[S]{ID: id, Revision: -1}, err
			}
			continue
		}
		out := Outcome[S]{ID: id, State: l.State, Revision: l.Revision, Position: l.Position, At: l.At, Began: l.Began}
		if err != nil {
			return out, err
		}
		if accept != nil {
			if err := accept(kind.Stream(id), len(events) == 0, l.Revision); err != nil {
				return out, err
			}
		}
		if len(events) == 0 {
			out.Position = max(out.Position, head)
			return out, nil
		}
		out, err = commit(ctx, h, req, kind, id, l, events, eventID)
		if _, moved := errors.AsType[*eventstore.WrongRevision](err); moved {
			from, begins = h.Fresh(), false
			continue
		}
		return out, err
	}
	return Outcome[S]{ID: id, Revision: -1}, ErrBusy
}

// decide returns the events that follow, as far as the domain and the rules between streams allow.
func decide[S any](
	ctx context.Context, from Source, req Request, kind *event.Kind[S], l Loaded[S], cmd event.Command[S],
) ([]event.Event[S], error) {
	state := l.State
	foreign := l.Revision >= 0 && l.Workspace != req.Workspace
	if foreign { // as if it were not there
		var zero S
		state = zero
	}
	events, err := cmd.Decide(state)
	if err != nil {
		return nil, err
	}
	if foreign {
		return nil, errForeign
	}
	if req.IfMatch != nil && *req.IfMatch != l.Revision {
		return nil, ErrStale
	}
	rule, governed := ruleOf(from.h, kind)
	for _, e := range events {
		r := event.Recorded[event.Event[S]]{
			Position: eventstore.End, Stream: kind.Stream(""), Data: e, Meta: event.Meta{Workspace: req.Workspace},
		}
		if governed {
			if err := rule.Refuses(ctx, from, state, r); err != nil {
				return nil, err
			}
		}
		state = kind.Evolve(state, r)
	}
	return events, nil
}

// commit appends events at the revision that they were decided on, unless it is only a dry run, and
// looks whether they hold where they landed.
func commit[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], id string, l Loaded[S], events []event.Event[S], eventID func(int) uuid.UUID,
) (Outcome[S], error) {
	out := Outcome[S]{ID: id, State: l.State, Revision: l.Revision, Position: l.Position, At: l.At, Began: l.Began}
	meta := h.meta(req)
	if req.DryRun {
		for _, e := range events {
			out.State = kind.Evolve(out.State, event.Recorded[event.Event[S]]{Position: eventstore.End, Data: e, Meta: meta})
		}
		out.Changed = true
		return out, nil
	}
	if err := Untried(ctx); err != nil { // before keys are made to seal with
		return out, err
	}
	events, err := event.MapSealed(events, func(values []*event.Sealed) error {
		if err := kind.MaySeal(values); err != nil {
			return err
		}
		return h.vault.Seal(ctx, values)
	})
	if err != nil {
		return out, fmt.Errorf("seal events of %s: %w", kind.Stream(id), err)
	}
	encoded := make([]event.New, len(events))
	for i, e := range events {
		var err error
		if encoded[i], err = kind.Encode(eventID(i), e, meta); err != nil {
			return out, err
		}
	}
	stream := kind.Stream(id)
	t := h.cache.begin(stream)
	done, err := h.append(ctx, l.write(stream, encoded...))
	if err != nil {
		h.cache.end(t, nil)
		return out, err
	}
	if done.Replayed { // the same request is under way in two places, and the other one was faster
		h.cache.end(t, nil)
		return replay(ctx, h, kind, stream, done.Revision)
	}
	landed, err := h.landed(ctx, stream, done, len(events))
	if err != nil {
		h.cache.end(t, nil)
		return out, fmt.Errorf("%w: %w", eventstore.ErrInDoubt, err)
	}
	after := l
	for i, e := range events {
		r := event.Recorded[event.Event[S]]{
			Position: landed[i].position, Stream: stream, Revision: landed[i].revision, ID: encoded[i].ID, At: landed[i].at, Meta: meta, Data: e,
		}
		void, err := isVoid(ctx, h, kind, after.State, r)
		if err != nil {
			h.cache.end(t, nil)
			return out, fmt.Errorf("%w: %w", eventstore.ErrInDoubt, err)
		}
		if void != nil {
			h.cache.end(t, nil)
			h.noteRefusal(ctx, req, stream, done, r.ID, refusalOf(h, kind, r.Position, void))
			out.Changed = true
			return out, void
		}
		after = after.and(kind, r, len(encoded[i].Data))
	}
	h.cache.end(t, &cached{loaded: after, revision: after.Revision, bytes: after.bytes})
	return Outcome[S]{ID: id, State: after.State, Revision: done.Revision, Position: done.Position, At: after.At, Began: after.Began, Changed: true}, nil
}

// dense returns where an append's events are if the store told that they follow each other.
func dense(done eventstore.Appended, count int) (all []landed, known bool) {
	first, before := done.Revision-int64(count)+1, event.Position(count-1) // the last one
	if done.At.IsZero() || count > 1 && (done.First == 0 || done.Position-done.First != before) {
		return nil, false
	}
	all = make([]landed, count)
	for i := range all {
		all[i] = landed{first + int64(i), done.Position - before + event.Position(i), done.At}
	}
	return all, true
}

// landed returns where an append's events are. What the store did not tell is read from the log.
func (h *Handler) landed(ctx context.Context, stream string, done eventstore.Appended, count int) ([]landed, error) {
	if all, known := dense(done, count); known {
		return all, nil
	}
	all := make([]landed, 0, count)
	for e, err := range h.store.ReadStream(ctx, stream, done.Revision-int64(count)+1, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		if e.Revision > done.Revision {
			break
		}
		all = append(all, landed{e.Revision, e.Position, e.At})
	}
	if len(all) != count {
		return nil, fmt.Errorf("stream %s does not have %d events up to revision %d", stream, count, done.Revision)
	}
	return all, nil
}

// meta returns the metadata of the events that a request causes.
func (h *Handler) meta(req Request) event.Meta {
	return event.Meta{
		Workspace: req.Workspace, Actor: req.Actor.String(), OccurredAt: h.now().UTC().Truncate(time.Microsecond),
		RequestID: req.RequestID, CorrelationID: req.CorrelationID, Reason: req.Reason, Attempt: req.attempt,
	}
}

// MetaOf is what events say of themselves that only carry out one that is in the log, the first of a
// stream: the same as that, for every process that carries it out, and which one it is.
func (h *Handler) MetaOf(ctx context.Context, stream string) (meta event.Meta, err error) {
	return h.MetaAt(ctx, stream, 0)
}

// MetaAt is [Handler.MetaOf] for the event of a stream at a position; 0: the first.
func (h *Handler) MetaAt(ctx context.Context, stream string, at event.Position) (meta event.Meta, err error) {
	for stored, err := range h.store.ReadStream(ctx, stream, 0, eventstore.Forwards) {
		if err != nil {
			return meta, err
		}
		if stored.Position < at {
			continue
		}
		if err := json.Unmarshal(stored.Meta, &meta); err != nil {
			return meta, fmt.Errorf("decode metadata of %s: %w", stream, err)
		}
		meta.Of, meta.CausationID = stored.Position, stored.ID.String()
		return meta, nil
	}
	return meta, fmt.Errorf("stream %s is not in the log", stream)
}

// refusalOf encodes the event that notes a void one.
func refusalOf[S any](h *Handler, kind *event.Kind[S], at event.Position, why *fault.Error) func(event.Meta) (event.New, error) {
	return func(meta event.Meta) (event.New, error) {
		rule, _ := ruleOf(h, kind)
		return kind.Encode(newEventID(), rule.Refusal(at, why.Detail), meta)
	}
}

// noteRefusal appends it. When that fails nothing is lost: what is void is void by its position, and
// the note is for people.
func (h *Handler) noteRefusal(ctx context.Context, req Request, stream string, done eventstore.Appended, of uuid.UUID, encode func(event.Meta) (event.New, error)) {
	meta := h.meta(req)
	meta.CausationID = of.String()
	if e, err := encode(meta); err == nil {
		_, _ = h.store.Append(context.WithoutCancel(ctx), eventstore.To(stream, eventstore.Expected(done.Revision), e))
	}
}

// Now returns the time by the handler's clock.
func (h *Handler) Now() time.Time { return h.now() }
