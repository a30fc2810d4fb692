package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessorTimeIsReadBehindAnyName(t *testing.T) {
	t.Parallel()
	const rest = " S 1 2 3 0 -1 4194560 900 800 7 6 120 30 4 1 20 0 1 0 4242 230000000 5000 18446744073709551615"
	for _, name := range []string{"postgres", "postgres: bahi", "a) R 9 9 (b", ") )", ""} {
		taken, err := processorTimeIn("77 (" + name + ")" + rest)
		require.NoError(t, err, name)
		require.Equal(t, 1550*time.Millisecond, taken, name)
	}
}

func TestUnknownStatsAreRefused(t *testing.T) {
	t.Parallel()
	for _, stat := range []string{
		"", "77 (postgres", "77 (postgres)", "77 (postgres) S 1 2 3", "77 (postgres) S 1 2 3 0 -1 4194560 900 800 7 6 120 x 4 1 20",
		"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18",
	} {
		_, err := processorTimeIn(stat)
		require.ErrorIs(t, err, errStat, stat)
	}
}
