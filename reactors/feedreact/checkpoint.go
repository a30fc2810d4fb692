package feedreact

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

// Name is the feed's name in the table of reactors' checkpoints. It must not change.
const Name = "feed"

// StateOf returns the state of a feed with this checkpoint, and the reason if it is parked or waiting.
func StateOf(c *projections.Checkpoint) (state, why string) {
	switch {
	case c.Error != nil:
		return Parked, *c.Error
	case c.WaitReason != nil:
		return Waiting, *c.WaitReason
	default:
		return Live, ""
	}
}

// Replay makes the feed continue with the event at a position, even if that event was forwarded before or the checkpoint is of another log.
// Positions 0 and 1 are the log's beginning. A running feed detects the change within moments.
func Replay(ctx context.Context, pool *pgxpool.Pool, store eventstore.Store, from event.Position) (err error) {
	to := projections.Checkpoint{StoreID: store.ID()}
	if from > 1 {
		if to.Position, to.EventID, err = projections.NewestBefore(ctx, store, from); err != nil {
			return fmt.Errorf("find the event before position %d: %w", from, err)
		}
	}
	return projections.PlaceReactor(ctx, pool, Name, to, uuid.Nil)
}
