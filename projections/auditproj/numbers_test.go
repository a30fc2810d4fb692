package auditproj_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/projections/auditproj"
)

func TestCheckpointsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.node()
	require.NoError(t, s.Ring.Ready(t.Context()))
	for n := range int64(4) {
		if n == 2 { // Postgres crashes before it commits
			r.exec(`begin; update audit.numbering set last = last + 1; rollback`)
		}
		r.add(1)
		r.grown()
		signed, _, _ := r.signed(s)
		require.Equal(t, n+1, signed.Number)
		c, err := tlog.ParseCheckpoint([]byte(signed.Note))
		require.NoError(t, err)
		require.Equal(t, n+1, c.Number, "the signature covers the number")
	}
	for _, removal := range []struct {
		sql            string
		missing, first int64
	}{
		{`select 1`, 0, 0},
		{`delete from audit.checkpoint where number = 2`, 1, 2},
		{`delete from audit.checkpoint where number = 4`, 2, 2},
		{`delete from audit.checkpoint where number = 1`, 3, 1},
		{`delete from audit.numbering`, 3, 1}, // 1, 2 and one after the last that is there
		{`delete from audit.checkpoint`, 1, 1},
	} {
		r.exec(removal.sql)
		found, err := s.Numbers(t.Context())
		require.NoError(t, err)
		require.Equal(t, auditproj.Numbers{Missing: removal.missing, First: removal.first}, found, removal.sql)
	}
}
