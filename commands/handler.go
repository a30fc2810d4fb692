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
	"bahi/eventstore/signal"
)

// maxTries is the maximum number of decisions of a command after conflicts.
const maxTries = 16

// ErrBusy is the error of a command that had [maxTries] conflicts in a row.
var ErrBusy = fault.New(fault.Unavailable, "Too many changes at once, try again")

// ErrStale is the error of an If-Match with an outdated revision.
var ErrStale = fault.New(fault.Stale, "It was changed since you read it")

// errForeign prevents a command from writing into another workspace's stream.
var errForeign = fault.New(fault.NotFound, "Not found")

// Vault keeps the keys that all nodes share.
type Vault interface {
	// HMAC computes a keyed hash.
	HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error)
	// ForgetNamed drops the keys of keyed hashes from memory. A database that has lost its newest events may have lost such a key too.
	ForgetNamed()
	// Seal encrypts the personal and secret values of events before their append.
	Seal(ctx context.Context, values []*event.Sealed) error
	// OpenPersonal opens personal values, or marks them as erased.
	OpenPersonal(ctx context.Context, values []*event.Sealed) error
}

// Handler runs commands on one log.
type Handler struct {
	store   eventstore.Store
	vault   Vault
	now     func() time.Time
	cache   *cache
	numbers *numbers
	waiting waiting // requests that wait for their commands

	conflicts *prometheus.CounterVec
}

// New returns a Handler. It caches states only while Run runs.
func New(store eventstore.Store, vault Vault, now func() time.Time) *Handler {
	h := &Handler{store: store, vault: vault, now: now, cache: newCache()}
	h.numbers = newNumbers(h)
	h.conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bahi_append_conflicts_total", Help: "Appends refused because a stream had changed meanwhile, by the stream's category.",
	}, []string{"category"})
	return h
}

// Register adds the handler's metrics.
func (h *Handler) Register(metrics *prometheus.Registry) { metrics.MustRegister(h.conflicts) }

// Run subscribes to the log until ctx ends. It returns an error if the log is unreachable at first. If the subscription ends later, Run
// starts it again without cached states, because the log may have lost its newest events.
func (h *Handler) Run(ctx context.Context) error {
	for first := true; ctx.Err() == nil; first = false {
		head, err := h.store.Head(ctx)
		switch {
		case err == nil:
			h.follow(ctx, max(head, 1)-1) // the cache needs the newest event
		case first && ctx.Err() == nil:
			return fmt.Errorf("follow the log: %w", err)
		}
		h.forget()
		_ = signal.Sleep(ctx, followAgain)
	}
	return nil
}

const followAgain = 100 * time.Millisecond

func (h *Handler) follow(ctx context.Context, after event.Position) {
	h.cache.reset()
	for batch, err := range h.store.Subscribe(ctx, after) {
		if err != nil {
			return
		}
		h.numbers.saw(batch.Events)
		h.cache.feed(batch)
	}
}

// forget drops the states, numbers and keys of hashes that this process has in memory.
func (h *Handler) forget() {
	h.vault.ForgetNamed()
	h.cache.reset()
	h.numbers.forget()
}

// append appends to the store. If the log has lost its newest events, append drops derived states at once, before the log's subscribers
// detect the loss. The transaction may have no writes.
func (h *Handler) append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	fed := h.cache.newest().position
	done, err := h.store.Append(ctx, t)
	wrong, refused := h.conflict(err)
	if errors.Is(err, eventstore.ErrTailLost) || refused && wrong.Actual < int64(wrong.Expected) ||
		err == nil && len(t.Writes) > 0 && !done.Replayed && done.Position <= fed {
		h.forget()
	}
	return done, err
}

// conflict returns err if it is a conflict, and counts it; else nil.
func (h *Handler) conflict(err error) (*eventstore.WrongRevision, bool) {
	wrong, is := errors.AsType[*eventstore.WrongRevision](err)
	if is {
		category, _ := event.SplitStream(wrong.Stream)
		h.conflicts.WithLabelValues(category).Inc()
	}
	return wrong, is
}

// Cached returns a source of states that may lag behind the log.
func (h *Handler) Cached() Source { return source{h: h} }

// Fresh returns a source of states that are at least as new as the call.
func (h *Handler) Fresh() Source { return source{h: h, fresh: true} }

// AppendEach appends events of earlier decisions, each to its own stream.
func (h *Handler) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	if err := Untried(ctx); err != nil {
		return slices.Repeat([]eventstore.Result{{Err: err}}, len(appends))
	}
	results := h.store.AppendEach(ctx, appends)
	for _, r := range results {
		if _, _ = h.conflict(r.Err); errors.Is(r.Err, eventstore.ErrTailLost) {
			h.forget()
		}
	}
	return results
}

// Outcome is the outcome of a command on a record.
type Outcome[S any] struct {
	ID        string         // id of the aggregate
	State     S              // after the command
	Revision  int64          // revision of the stream after the command; unchanged if nothing was appended; -1: no stream
	Position  event.Position // position of the last event of its transaction; without events, the position of the decision's state
	At        time.Time      // when the last of its events was recorded
	CreatedAt time.Time      // when the first event of the stream was recorded
	Changed   bool           // events were appended to it
	Replayed  bool           // the outcome is that of an earlier request with the same key
}

// Number returns the number that is the id of the aggregate, 0 for another id and in a dry run.
func (o Outcome[S]) Number() int64 { return event.Number(o.ID) }

// Handle runs a command on a record. It returns the domain's refusal, [ErrStale], [ErrBusy], or an error of the store.
func Handle[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], id string, cmd event.Command[S]) (Outcome[S], error) {
	return Do(ctx, h, req, kind, func(ctx context.Context, tx *Tx) error {
		_, err := Decide(ctx, tx, kind, id, cmd)
		return err
	})
}

// always returns a function that returns cmd for each id.
func always[S any](cmd event.Command[S]) func(string) event.Command[S] {
	return func(string) event.Command[S] { return cmd }
}

// Create is [Handle] for a new record. It calls newID for the record's id after the command was accepted.
func Create[S any](ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error),
	cmd event.Command[S]) (Outcome[S], error) {
	return createWithID(ctx, h, req, kind, newID, always(cmd))
}

// createWithID is [Create] for a command that needs the id, for example to seal personal values of the new record. See [DecideNew].
func createWithID[S any](
	ctx context.Context, h *Handler, req Request, kind *event.Kind[S], newID func(context.Context) (string, error),
	cmd func(id string) event.Command[S],
) (Outcome[S], error) {
	return Do(ctx, h, req, kind, func(ctx context.Context, tx *Tx) error {
		_, err := DecideNew(ctx, tx, kind, newID, cmd)
		return err
	})
}

// newEventID returns ids that increase with time, which keeps indexes compact.
func newEventID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// meta returns the metadata of the events that a request causes.
func (h *Handler) meta(req Request) event.Meta {
	return event.Meta{
		Workspace: req.Workspace, Actor: req.Actor.String(), OccurredAt: h.now().UTC().Truncate(time.Microsecond),
		RequestID: req.RequestID, CorrelationID: req.CorrelationID, Reason: req.Reason,
	}
}

// FollowUpMeta returns the metadata of an event that repeats data of a stream's first event.
func (h *Handler) FollowUpMeta(ctx context.Context, stream string) (meta event.Meta, err error) {
	for stored, err := range h.store.ReadStream(ctx, stream, 0, eventstore.Forwards) {
		if err != nil {
			return meta, err
		}
		if err := json.Unmarshal(stored.Meta, &meta); err != nil {
			return meta, fmt.Errorf("decode metadata of %s: %w", stream, err)
		}
		meta.FollowUpOf, meta.CausationID, meta.More = stored.Position, stored.ID.String(), 0
		return meta, nil
	}
	return meta, fmt.Errorf("stream %s is not in the log", stream)
}

// Now returns the time by the handler's clock.
func (h *Handler) Now() time.Time { return h.now() }
