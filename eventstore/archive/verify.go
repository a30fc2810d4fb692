package archive

import (
	"context"
	"io/fs"
	"path"

	"bahi/eventstore/tlog"
)

// Verify compares the archive with retained checkpoints, and with its own that one of the keys signed. A difference between its files and
// its manifest is a finding. An error means that files were unreadable.
func (a *Archive) Verify(ctx context.Context, keys tlog.Keys, kept []tlog.RetainedCheckpoint, progress func(events uint64)) (tlog.Result,
	error) {
	own, err := a.Checkpoints(keys)
	wrong := asBroken(err) // the other checkpoints still apply
	if err != nil && wrong == nil {
		return tlog.Result{}, err
	}
	r, err := tlog.Verify(ctx, a.Events(ctx), tlog.Evidence{Kept: append(own, kept...), Progress: progress})
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

// unlisted returns the files among the segments that the manifest does not list, if the file system can list files. A killed run leaves
// one. An attacker may add one and hope that a reader takes it for verified.
func (a *Archive) unlisted() (names []string) {
	listed := map[string]bool{}
	for _, s := range a.Segments {
		listed[s.File] = true
	}
	files, _ := fs.ReadDir(a.files, segmentsName) // none without the folder
	for _, f := range files {
		if name := path.Join(segmentsName, f.Name()); !listed[name] {
			names = append(names, name)
		}
	}
	return names
}
