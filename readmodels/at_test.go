package readmodels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestAResponseIsAsFreshAsTheReadsThatItShows(t *testing.T) {
	t.Parallel()
	for used, position := range map[bool]event.Position{true: 5, false: 7} {
		a := &At{}
		a.note(9, false)
		_, err := a.Attempt(func() (bool, error) { a.note(5, true); return used, nil })
		require.NoError(t, err)
		a.note(7, false)
		got, read := a.Position()
		require.True(t, read)
		require.Equal(t, position, got)
		require.Equal(t, used, a.Stale())
	}
}
