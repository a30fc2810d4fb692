package audit

import (
	"context"
	"fmt"
	"time"

	"bahi/eventstore"
	"bahi/eventstore/audit"
)

// rereadAtOnce is how many events are hashed before whoever serves gets the processor for as long as that took.
const rereadAtOnce = 4096

// Reread hashes the log again as far as the newest checkpoint goes, and answers [ErrRewritten] when it does not lead to it: what
// [Signer.Check] cannot see, which looks at the last event only. It is at work half of the time, and leaves the
// other half to who serves. It answers how many events agree with what was signed. A log that lost its tail since is for [Signer.Sign] to tell of.
func (s *Signer) Reread(ctx context.Context) (agreed uint64, err error) {
	last, err := s.Newest(ctx)
	if err != nil || last == nil {
		return 0, err
	}
	root, err := s.rootOf(ctx, last.Size)
	if err != nil || root == audit.Hash(last.Root) {
		return last.Size, err
	}
	// Somebody may have recorded the loss of a tail meanwhile, or a server that was behind may have taken over.
	if given, err := s.givenUp(ctx, *last); err != nil || given {
		return 0, err
	}
	if err := s.isThere(ctx, *last, "the newest checkpoint", waysOut); err != nil {
		return 0, nil //nolint:nilerr // it is told at the next checkpoint
	}
	return 0, &ErrRewritten{Found: notAsSigned(*last, "the newest checkpoint", fmt.Sprintf("its first %d events were rewritten, and hash to %s where %s was signed", last.Size, root, audit.Hash(last.Root)), whatToDo)}
}

// givenUp says whether a checkpoint that counted does so no longer.
func (s *Signer) givenUp(ctx context.Context, c Signed) (bool, error) {
	if err := s.settle(ctx); err != nil {
		return false, err
	}
	return s.gaveUp(c), nil
}

// rootOf is the root over the log's first events, or over all if there are fewer.
func (s *Signer) rootOf(ctx context.Context, size uint64) (audit.Hash, error) {
	var (
		tree   audit.Tree
		hasher audit.Hasher
		began  = s.Now()
	)
	for e, err := range s.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return audit.Hash{}, err
		}
		tree.Append(hasher.Leaf(e))
		switch {
		case tree.Size() == size:
			return tree.Root(), nil
		case tree.Size()%rereadAtOnce == 0:
			select {
			case <-time.After(s.Now().Sub(began)):
			case <-ctx.Done():
				return audit.Hash{}, ctx.Err()
			}
			began = s.Now()
		}
	}
	return tree.Root(), nil
}
