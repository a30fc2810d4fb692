package esdb

import (
	"context"
	"time"

	"bahi/eventstore"
)

// SetOutage sets how long subscriptions look for a lost server.
func (s *Store) SetOutage(outage time.Duration) { s.outage = outage }

// AppendAfterRefusal appends by way of a call that its server has refused before the append was sent.
func (s *Store) AppendAfterRefusal(ctx context.Context, r eventstore.Write) error {
	call, err := s.batches.open(ctx)
	if err != nil {
		return err
	}
	<-call.done
	sent, err := call.begin(ctx, r)
	if err == nil { // its sender has not ended yet
		_, _, err = s.batches.wait(ctx, sent)
	}
	return err
}

// ErrNotLeader reports that a follower refused a call.
var ErrNotLeader = errNotLeader
