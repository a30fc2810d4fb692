package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/worktest"
)

// released has one line for each released version of each projection: name, version and hash. A change of the DDL or of the event types
// requires a new version with a new line; old lines stay. The hashes of versions 1 cover the DDL alone.
const released = "../../projections/testdata/released.txt"

func TestDDLChangesOnlyWithTheVersion(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, released)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	newest := map[string]int{}
	for _, line := range lines {
		var (
			name, hash string
			version    int
		)
		_, err := fmt.Sscan(line, &name, &version, &hash)
		require.NoError(t, err, line)
		require.Greater(t, version, newest[name], "%s: versions must increase", name)
		newest[name] = version
	}
	var missing []string
	for _, p := range app.AllProjections() {
		if line := fmt.Sprintf("%s %d %s", p.Name, p.Version, p.Hash()); !slices.Contains(lines, line) {
			missing = append(missing, line)
			continue
		}
		require.Equal(t, newest[p.Name], p.Version, "the released version of %s must be the newest", p.Name)
	}
	require.Empty(t, missing, "the DDL or the event types are not those of these versions: raise the version, and add to %s:\n%s",
		released, strings.Join(missing, "\n"))
}
