package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

// Name is the feed's among reactors, whose table has its checkpoint. It is stored, so it is for ever.
const Name = "feed"

// ErrNotBegun tells that no process has ever forwarded an event of this database.
var ErrNotBegun = errors.New("the feed has never run")

// Look returns how far the feed has come, whichever process forwards; [ErrNotBegun] where none ever did.
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

// StateOf returns the state of a feed with this checkpoint, and why it is parked or waits.
func StateOf(c projections.Checkpoint) (state, why string) {
	switch {
	case c.Error != nil:
		return Parked, *c.Error
	case c.Waits != nil:
		return Waiting, *c.Waits
	default:
		return Live, ""
	}
}

// Replay lets the feed go on with the event at a position, whether that was forwarded or not, and whichever log it has
// followed until now; 0 and 1 are the log's beginning. A running feed heeds it within moments.
func Replay(ctx context.Context, pool *pgxpool.Pool, store eventstore.Store, from event.Position) (err error) {
	to := projections.Checkpoint{StoreID: store.ID()}
	if from > 1 {
		if to.Position, to.EventID, err = projections.NewestBefore(ctx, store, from); err != nil {
			return fmt.Errorf("find the event before position %d: %w", from, err)
		}
	}
	return projections.PlaceReactor(ctx, pool, Name, to, uuid.Nil)
}
