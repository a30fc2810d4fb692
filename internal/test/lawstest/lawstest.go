// Package lawstest checks that the logs of tests keep the rules between records.
package lawstest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/eventstore"
)

// Keep checks at a test's end that its log breaks no law.
func Keep(t testing.TB, log eventstore.Store) {
	t.Helper()
	t.Cleanup(func() {
		c := laws.New()
		for stored, err := range log.ReadAll(context.WithoutCancel(t.Context()), 0, eventstore.Forwards) {
			require.NoError(t, err)
			if category, _ := event.SplitStream(stored.Stream); laws.Reads(category) {
				e, err := domain.Catalogue.Decode(stored)
				require.NoError(t, err)
				require.Empty(t, c.Next(e))
			}
			if event.More(stored.Meta) == 0 {
				require.Empty(t, c.Commit())
			}
		}
	})
}
