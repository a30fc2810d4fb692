package tlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
)

func TestOverdueSignaturesLeaveTheVerdictOpen(t *testing.T) {
	t.Parallel()
	r := tlog.Result{Events: 10, Proven: 9, Trusted: 1}
	require.Equal(t, tlog.Verified, r.Verdict())
	r.Unsigned = &tlog.Event{Position: 10}
	require.Equal(t, tlog.Undecided, r.Verdict())
	require.Contains(t, r.Sentences()[0], "CANNOT TELL. The first 9 events are what was signed. The events from position 10 on")
}

// With an old checkpoint and no key, the verdict states that the log's newer checkpoints do not count, not that they are missing.
func TestEventsAfterAKeptCheckpointAreNotCalledUnsigned(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"VERIFIED. The first 6 events are what was signed; 1 checkpoint agrees.",
		"4 events are after the last checkpoint that was kept elsewhere or that a trusted key signed: nothing proves them yet.",
		"It agrees with 3 of its own checkpoints, which no trusted key signed.",
	}, tlog.Result{Events: 10, Last: 10, Proven: 6, Trusted: 1, Agreed: 4}.Sentences())
}
