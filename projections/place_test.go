package projections

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestBuildRecordsItsPositionWithoutEventsToFold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "a")
	for range 40 {
		r.addRaw(t, "BankAccountRenamed", `{"name":"b"}`, `{}`)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	build := r.build(p)
	build.How = BuildOptions{Throttle: throttledBatches} // batches of one event
	build.Progress = func(now Progress) {
		if now.Done >= 15 {
			stop()
		}
	}
	require.ErrorIs(t, build.Run(ctx), context.Canceled)

	build.Progress = func(now Progress) {
		require.GreaterOrEqual(t, now.Done, event.Position(15), "the build continues from its position")
	}
	require.NoError(t, build.Join(t.Context()))
}
