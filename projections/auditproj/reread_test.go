package auditproj_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/projections/auditproj"
)

func TestRereadFindsAnOlderChangedEvent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"its payload": `update log.event set data = '{"n": 7}' where position = 4`,
		"its actor":   `update log.event set meta = '{"actor": "user:mallory"}' where position = 1`,
		"two that changed places": `update log.event set position = -position where position in (4, 5); update log.event
			set position = 9 + position where position < 0`,
		"all of them, but the last": `update log.event set type = 'Seen' where position < 5000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.node()
			require.NoError(t, s.Ring.Ready(t.Context()))
			agreed, err := s.Reread(t.Context())
			require.NoError(t, err)
			require.Zero(t, agreed, "nothing is signed yet")
			for range 10 {
				r.add(500)
			}
			r.grown()
			r.signed(s)
			r.add(3) // not signed
			agreed, err = s.Reread(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 5000, agreed)
			r.exec(spoil)
			require.NoError(t, s.Check(t.Context()), "a start checks only the end")
			_, err = s.Reread(t.Context())
			require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
			require.ErrorContains(t, err, "(5000 events, up to position 5000): its first 5000 events were rewritten")
			require.ErrorContains(t, err, "bahi audit verify --store")
			require.ErrorContains(t, err, "bahi audit accept-restore")
		})
	}
}

// A log that loses its tail meanwhile is not rewritten, and the signer reports it.
func TestTailLostDuringARereadIsNotCalledRewritten(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 10)
	r.exec(`delete from log.event where position > 8`)
	agreed, err := s.Reread(t.Context())
	require.NoError(t, err)
	require.Zero(t, agreed)
	r.add(5)
	agreed, err = s.Reread(t.Context())
	require.NoError(t, err)
	require.Zero(t, agreed)
	_, err = s.Sign(t.Context())
	require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
}
