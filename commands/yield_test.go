package commands

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestsAreAsLongAsOthersWaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ waited, took, rest time.Duration }{
		"nobody waited":    {0, time.Second, 0},
		"one waited":       {time.Millisecond, 5 * time.Millisecond, 3 * time.Millisecond},
		"many waited":      {time.Second, 5 * time.Millisecond, 75 * time.Millisecond},
		"a slow step ends": {time.Minute, time.Minute, time.Second},
	} {
		require.Equal(t, c.rest, rest(c.waited, c.took), name)
	}
}

func TestWorkYieldsToThoseWhoWait(t *testing.T) {
	t.Parallel()
	const step = 10 * time.Millisecond
	h := &Handler{}
	work := func() error {
		time.Sleep(step)
		return nil
	}
	began := time.Now()
	end := h.waiting.begin()
	require.NoError(t, h.Yielding(t.Context(), work))
	require.GreaterOrEqual(t, time.Since(began), (1+yields)*step, "one waited as long as the step took")
	end()
	waited := h.waiting.total()
	require.GreaterOrEqual(t, waited, (1+yields)*step)
	require.LessOrEqual(t, waited, time.Since(began))
	time.Sleep(step)
	require.Equal(t, waited, h.waiting.total(), "nobody waits any more")

	failed := errors.New("cannot")
	require.ErrorIs(t, h.Yielding(t.Context(), func() error { return failed }), failed)

	ended, stop := context.WithCancel(t.Context())
	stop()
	defer h.waiting.begin()()
	require.NoError(t, h.Yielding(ended, work), "the process ends")
}
