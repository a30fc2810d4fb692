package archive

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unfinishedName is the file that marks a folder until the manifest of its first run is written. It lists the run's further files, one per
// line. Without it, the files of a killed run would look like an archive that lost its manifest, which must not be overwritten.
const unfinishedName = ".unfinished"

// isUnfinished reports whether a folder without a manifest is the leftover of a killed first run.
func isUnfinished(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, unfinishedName))
	return err == nil
}

// markUnfinished marks the folder, and removes an earlier first run's leftovers.
func (w *writer) markUnfinished() error {
	if _, err := os.Lstat(filepath.Join(w.dir, manifestName)); err == nil {
		return errors.New("another process has just written the archive")
	}
	path := filepath.Join(w.dir, unfinishedName)
	left, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the folder
	switch {
	case err == nil:
		if err := w.removeLeft(string(left)); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	w.made = append(w.made, path)
	names := slices.Sorted(maps.Keys(w.options.Files))
	if err := os.WriteFile(path, []byte(strings.Join(names, "\n")), 0o600); err != nil {
		return err
	}
	return SyncFolder(w.dir)
}

// removeLeft removes the segments, the further files of these names, and their temporary files.
func (w *writer) removeLeft(names string) error {
	paths := []string{filepath.Join(w.dir, segmentsName)}
	for name := range strings.SplitSeq(names+"\n"+manifestName, "\n") {
		if !isFileName(name) && name != manifestName {
			continue
		}
		begun, err := filepath.Glob(filepath.Join(w.dir, "."+name+"-*"))
		if err != nil {
			return err
		}
		paths = append(append(paths, begun...), filepath.Join(w.dir, name))
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the files of a killed run: %w", err)
		}
	}
	return nil
}
