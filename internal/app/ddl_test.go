package app_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain"
	"bahi/domain/event"
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

// A projection with values of a subject must fold the event that ends the subject; otherwise its tables keep the values.
func TestEveryProjectionThatFoldsPersonalFieldsFoldsTheirEnd(t *testing.T) {
	t.Parallel()
	subjects := map[string][]event.SubjectType{}
	for _, k := range domain.Catalogue.Kinds() {
		subjects[k.Category()] = k.Subjects()
	}
	for _, p := range app.AllProjections() {
		ended := map[event.SubjectType]bool{}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known { // of a ledger that does not exist yet
				continue
			}
			if ending, ok := reflect.TypeAssert[event.ErasureTrigger](reflect.Zero(of.Go)); ok {
				category, _ := event.SplitStream(ending.Erases("1").Subject)
				ended[event.SubjectType(category)] = true
			}
		}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known || !event.HoldsSealed(of.Go) {
				continue
			}
			for _, s := range subjects[of.Category] {
				if !ended[s] {
					t.Errorf("projection %s folds %s, which has values of %s, and no event that erases these: its tables would keep them", p.Name, name, s)
				}
			}
		}
	}
}
