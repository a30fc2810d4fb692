package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/follower"
	"bahi/eventstore"
	"bahi/projections"
)

// Name is the feed's among reactors, whose table has its checkpoint. It is stored, so it is for ever.
const Name = "feed"

var (
	// ErrNotBegun tells that no process has ever forwarded an event of this database.
	ErrNotBegun = errors.New("the feed has never run")

	errMoved = errors.New("somebody else moved the checkpoint")
)

// Look answers how far the feed has come, whichever process forwards; [ErrNotBegun] where none ever did.
func Look(ctx context.Context, pool *pgxpool.Pool) (projections.Checkpoint, error) {
	all, err := projections.Checkpoints(ctx, pool)
	if err != nil {
		return projections.Checkpoint{}, err
	}
	for _, c := range all {
		if c.Name == Name {
			return c, nil
		}
	}
	return projections.Checkpoint{}, ErrNotBegun
}

// Replay lets the feed go on with the event at a position, whether that was forwarded or not, and whichever log it has
// followed until now; 0 and 1 are the log's beginning. A running feed heeds it within moments.
func Replay(ctx context.Context, pool *pgxpool.Pool, store eventstore.Store, from event.Position) (err error) {
	var at event.Position
	var id *uuid.UUID
	if from > 1 {
		if at, id, err = newestBefore(ctx, store, from); err != nil {
			return fmt.Errorf("find what stands before position %d: %w", from, err)
		}
	}
	return place(ctx, pool, store.ID(), uuid.Nil, at, id)
}

// newestBefore finds the last event before a position: 0 and none where there is none.
func newestBefore(ctx context.Context, store eventstore.Store, at event.Position) (event.Position, *uuid.UUID, error) {
	for e, err := range store.ReadAll(ctx, at, eventstore.Backwards) {
		return e.Position, &e.ID, err
	}
	return 0, nil, nil
}

type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// place puts the checkpoint behind an event, and takes it from whoever held it.
func place(ctx context.Context, db executor, log, owner uuid.UUID, at event.Position, id *uuid.UUID) error {
	_, err := db.Exec(ctx, `
		insert into reactor.checkpoint (name, store_id, position, event_id, owner) values ($1, $2, $3, $4, $5)
		on conflict (name) do update
		set store_id = $2, position = $3, event_id = $4, owner = $5, error = null, error_at = null, error_position = null`,
		Name, log, int64(at), id, owner)
	if err != nil {
		return fmt.Errorf("place the feed's checkpoint: %w", err)
	}
	return nil
}

// mismatch tells that the checkpoint is not of the log at hand.
type mismatch struct{ at projections.Checkpoint }

func (m *mismatch) Error() string {
	return fmt.Sprintf("the feed has forwarded the log %s up to position %d, which is not in this log: "+
		"nothing is forwarded until bahi feed replay says where to begin", m.at.StoreID, m.at.Position)
}

// hold is a checkpoint that this process alone may move.
type hold struct {
	f    *Feed
	conn *pgx.Conn
	at   event.Position
	most int // messages that the broker is given at once
}

// begin takes the checkpoint over, or makes one where there is none. One that does not match the log is refused.
func (f *Feed) begin(ctx context.Context, conn *pgx.Conn) (*hold, error) {
	h := &hold{f: f, conn: conn, most: mostAtOnce}
	rows, _ := conn.Query(ctx, `
		update reactor.checkpoint set owner = $2 where name = $1 returning name, store_id, position, event_id, error`, Name, f.owner)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[projections.Checkpoint])
	if errors.Is(err, pgx.ErrNoRows) {
		return h, h.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("take over the feed's checkpoint: %w", err)
	}
	h.at = c.Position
	known := c.StoreID == f.config.Store.ID()
	if known && c.EventID != nil {
		at, id, err := newestBefore(ctx, f.config.Store, c.Position+1)
		if err != nil {
			return nil, err
		}
		known = at == c.Position && id != nil && *id == *c.EventID
	}
	if !known {
		return h, &mismatch{c}
	}
	return h, nil
}

// start makes the first checkpoint.
func (h *hold) start(ctx context.Context) (err error) {
	var id *uuid.UUID
	if h.f.config.FromNow {
		if h.at, id, err = newestBefore(ctx, h.f.config.Store, eventstore.End); err != nil {
			return err
		}
	}
	h.f.config.Log.Info("the feed begins", "behind", h.at)
	return place(ctx, h.conn, h.f.config.Store.ID(), h.f.owner, h.at, id)
}

// move says that all events up to a position are forwarded, or passed over. id is of the one there, if it is known.
func (h *hold) move(ctx context.Context, to event.Position, id *uuid.UUID) error {
	done, err := h.conn.Exec(ctx, `
		update reactor.checkpoint set position = $4, event_id = $5, error = null, error_at = null, error_position = null
		where name = $1 and position = $2 and owner = $3`, Name, int64(h.at), h.f.owner, int64(to), id)
	switch {
	case err != nil:
		return fmt.Errorf("move the feed's checkpoint: %w", err)
	case done.RowsAffected() == 0:
		return errMoved
	}
	h.at = to
	return nil
}

// held answers errMoved when the checkpoint is no longer where this process left it.
func (h *hold) held(ctx context.Context) error {
	rows, _ := h.conn.Query(ctx, `select 1 from reactor.checkpoint where name = $1 and position = $2 and owner = $3`, Name, int64(h.at), h.f.owner)
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err == nil && len(found) == 0 {
		err = errMoved
	}
	return err
}

// note writes why the feed stands still, for whoever looks at what is parked.
func (f *Feed) note(ctx context.Context, why error) error {
	var at *int64
	var typ string
	if r, ok := errors.AsType[*refusal](why); ok {
		position := int64(r.at.Position)
		at, typ = &position, r.at.Type
	}
	_, err := f.config.Pool.Exec(ctx, `
		update reactor.checkpoint set error = $2, error_position = $3, error_type = $4, error_program = $5,
			error_at = case when error is distinct from $2 then now() else error_at end
		where name = $1`, Name, why.Error(), at, typ, f.config.Program)
	return err
}

// skipped answers the positions of events that an operator lets the feed pass over.
func skipped(ctx context.Context, store eventstore.Store) (map[event.Position]bool, error) {
	skips := map[event.Position]bool{}
	for stored, err := range store.ReadStream(ctx, follower.Kind.Stream(Name), 0, eventstore.Forwards) {
		var recorded event.Recorded[any]
		if err == nil {
			recorded, err = domain.Catalogue.Decode(stored)
		}
		if err != nil {
			return nil, fmt.Errorf("read what the feed skips: %w", err)
		}
		if e, isSkip := recorded.Data.(follower.Skipped); isSkip {
			skips[e.Position] = true
		}
	}
	return skips, nil
}
