package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/audit"
)

func TestOverdueSignaturesLeaveTheVerdictOpen(t *testing.T) {
	t.Parallel()
	r := audit.Result{Events: 10, Proven: 9, Trusted: 1}
	require.Equal(t, audit.Verified, r.Verdict())
	r.Unsigned = &audit.Event{Position: 10}
	require.Equal(t, audit.Undecided, r.Verdict())
	require.Contains(t, r.Sentences()[0], "CANNOT TELL. The first 9 events are what was signed. The events from position 10 on")
}
