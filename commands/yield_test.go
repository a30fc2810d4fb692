package commands

import (
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
	y := h.Yield()
	require.NoError(t, y.Do(work))
	require.NoError(t, y.Do(work))
	y.Rest(t.Context())
	require.GreaterOrEqual(t, time.Since(began), 2*(1+yields)*step, "one waited as long as the work took")
	end()
	waited := h.waiting.total()
	require.GreaterOrEqual(t, waited, 2*(1+yields)*step)
	require.LessOrEqual(t, waited, time.Since(began))
	time.Sleep(step)
	require.Equal(t, waited, h.waiting.total(), "nobody waits any more")

	failed := errors.New("cannot")
	require.ErrorIs(t, h.Yield().Do(func() error { return failed }), failed)
}
