package commands

import (
	"context"
	"errors"
)

// ErrTrial ends a trial before its first write: all decisions so far are valid.
var ErrTrial = errors.New("a trial writes nothing")

type trialKey struct{}

// Trial returns a context in which nothing is written. A handler that runs in it finds only faults that do not depend on the state.
func Trial(ctx context.Context) context.Context { return context.WithValue(ctx, trialKey{}, true) }

// Untried returns [ErrTrial] in a trial. Call it before a write.
func Untried(ctx context.Context) error {
	if ctx.Value(trialKey{}) != nil {
		return ErrTrial
	}
	return nil
}
