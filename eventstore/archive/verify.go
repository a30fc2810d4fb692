package archive

import (
	"context"

	"bahi/eventstore/audit"
)

// Verify holds the archive against checkpoints that were kept elsewhere, and against those that it carries: these count
// for it only if one of the keys signed them. An archive whose files are not what its manifest says is answered as a finding, too. Its error
// says that the files could not be read.
func (a *Archive) Verify(ctx context.Context, keys audit.Keys, kept []audit.Kept, progress func(events uint64)) (audit.Result, error) {
	own, err := a.Checkpoints(keys)
	if b := asBroken(err); b != nil {
		return audit.Result{Finding: a.asFinding(b, 0)}, nil
	}
	if err != nil {
		return audit.Result{}, err
	}
	r, err := audit.Verify(ctx, a.Events(ctx), audit.Evidence{Kept: append(own, kept...), Progress: progress})
	b := asBroken(err)
	switch {
	case b == nil:
		return r, err
	case r.Finding == nil:
		r.Finding = a.asFinding(b, r.Proven)
	default:
		r.Finding.Why += " " + firstUpper(b.Error()) + "."
	}
	return r, nil
}
