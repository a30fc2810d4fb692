package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

// kills returns the file of an overlay in which the program ends itself at a named step of an append, and the names of the steps. A step of
// the journal has the prefix "journal: ".
func kills(t *testing.T) (overlay string, steps []string) {
	t.Helper()
	folder := t.TempDir()
	replaced := map[string]string{}
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, name := range []string{"kill-group", "kill-journal"} {
		text := worktest.File(t, name+".txt")
		m, err := parse(name, string(text))
		require.NoError(t, err)
		source, err := m.apply(root)
		require.NoError(t, err)
		for _, step := range regexp.MustCompile(`dieAt\("([^"]+)"\)`).FindAllSubmatch(source, -1) {
			steps = append(steps, string(step[1]))
		}
		changed := filepath.Join(folder, filepath.Base(m.file))
		require.NoError(t, os.WriteFile(changed, source, 0o600))
		replaced[filepath.Join(module, m.file)] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay = filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	return overlay, steps
}

// The long test would notice late that the product's code has moved.
func TestTheKillsApplyToTheTree(t *testing.T) {
	t.Parallel()
	_, steps := kills(t)
	require.Len(t, steps, 11)
}
