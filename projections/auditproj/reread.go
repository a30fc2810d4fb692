package auditproj

import (
	"context"
	"fmt"
	"time"

	"bahi/eventstore"
	"bahi/eventstore/tlog"
)

// rereadBatch is the number of events that Reread hashes between pauses.
const rereadBatch = 4096

// Reread hashes the log again up to the newest checkpoint, and returns the number of agreeing events. It returns [ErrRewritten] if the root
// differs. [Signer.Check] cannot detect that, because it compares only the last event. Reread pauses half of the time to leave the
// processor to requests. [Signer.Sign] reports a log that loses its newest events meanwhile.
func (s *Signer) Reread(ctx context.Context) (agreed uint64, err error) {
	last, err := s.Newest(ctx)
	if err != nil || last == nil {
		return 0, err
	}
	root, err := s.rootOf(ctx, last.Size)
	if err != nil || root == tlog.Hash(last.Root) {
		return last.Size, err
	}
	// Meanwhile an operator may have accepted the loss of the newest events, or a stale server may have become the signer.
	if given, err := s.givenUp(ctx, *last); err != nil || given {
		return 0, err
	}
	if err := s.isThere(ctx, *last, "the newest checkpoint", waysOut); err != nil {
		return 0, nil //nolint:nilerr // reported at the next checkpoint
	}
	return 0, &ErrRewritten{Found: notAsSigned(*last, "the newest checkpoint",
		fmt.Sprintf("its first %d events were rewritten, and hash to %s instead of the signed %s", last.Size, root, tlog.Hash(last.Root)),
		whatToDo)}
}

// givenUp reports whether a checkpoint was abandoned.
func (s *Signer) givenUp(ctx context.Context, c Signed) (bool, error) {
	if err := s.settle(ctx); err != nil {
		return false, err
	}
	return s.gaveUp(c), nil
}

// rootOf returns the root over the log's first size events, or over all if there are fewer.
func (s *Signer) rootOf(ctx context.Context, size uint64) (tlog.Hash, error) {
	var (
		tree   tlog.Tree
		hasher tlog.Hasher
		began  = s.Now()
	)
	for e, err := range s.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return tlog.Hash{}, err
		}
		tree.Append(hasher.Leaf(e))
		switch {
		case tree.Size() == size:
			return tree.Root(), nil
		case tree.Size()%rereadBatch == 0:
			select {
			case <-time.After(s.Now().Sub(began)):
			case <-ctx.Done():
				return tlog.Hash{}, ctx.Err()
			}
			began = s.Now()
		}
	}
	return tree.Root(), nil
}
