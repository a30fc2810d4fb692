package archive

import (
	"context"
	"io/fs"
	"path"

	"bahi/eventstore/tlog"
)

// Verify compares the archive with checkpoints that were kept elsewhere, and with its own, which prove something only if one of the keys
// signed them. A difference between its files and its manifest is a finding. An error means that the files were unreadable.
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

// unlisted returns the files among the segments that the manifest does not list, as far as files can be listed. A killed run leaves one; an
// attacker may hope that somebody reads all files of a verified archive.
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
