package archive

import (
	"context"
	"io/fs"
	"path"

	"bahi/eventstore/audit"
)

// Verify holds the archive against checkpoints that were kept elsewhere, and against those that it carries: these count
// for it only if one of the keys signed them. An archive whose files are not what its manifest says is answered as a finding, too. Its error
// says that the files could not be read.
func (a *Archive) Verify(ctx context.Context, keys audit.Keys, kept []audit.Kept, progress func(events uint64)) (audit.Result, error) {
	own, err := a.Checkpoints(keys)
	wrong := asBroken(err) // which does not keep the log from being held against the others
	if err != nil && wrong == nil {
		return audit.Result{}, err
	}
	r, err := audit.Verify(ctx, a.Events(ctx), audit.Evidence{Kept: append(own, kept...), Sparse: a.Positions == Sparse, Progress: progress})
	if b := asBroken(err); b != nil {
		r = r.Also(a.asFinding(b, r.Proven))
		err = nil
	}
	if wrong != nil {
		r = r.Also(a.asFinding(wrong, 0))
	}
	r.Unlisted = a.unlisted()
	return r, err
}

// unlisted are files among the segments that the manifest does not have, as far as the files can be listed. A run that was killed
// leaves one; somebody may also hope that all files are read where the archive was verified.
func (a *Archive) unlisted() (names []string) {
	listed := map[string]bool{}
	for _, s := range a.Segments {
		listed[s.File] = true
	}
	files, _ := fs.ReadDir(a.files, segmentsName) // none, where there is no such folder
	for _, f := range files {
		if name := path.Join(segmentsName, f.Name()); !listed[name] {
			names = append(names, name)
		}
	}
	return names
}
