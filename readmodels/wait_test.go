package readmodels_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/readmodels"
)

func TestARowThatIsNotTakenEndsTheRead(t *testing.T) {
	t.Parallel()
	s, taken, f := built(t, 3), 0, &readmodels.At{}
	err := readmodels.Each(t.Context(), s.reader.From(f, "names"), pgx.RowTo[string], func(string) error {
		taken++
		return errNoName
	}, `select name from names.name`)
	require.ErrorIs(t, err, errNoName)
	require.Equal(t, 1, taken)
	_, read := f.Position()
	require.False(t, read)
}

func TestWhoReadsNoTableMayWaitForIt(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	s.add(t, "new")
	require.NoError(t, s.reader.From(&readmodels.At{Min: 2, Wait: forever}).Await(t.Context()), "for none")
	require.NoError(t, s.reader.From(&readmodels.At{Min: 1, Wait: forever}, "names").Await(t.Context()))
	require.ErrorIs(t, s.reader.From(&readmodels.At{Min: 2, Wait: time.Millisecond}, "names").Await(t.Context()),
		readmodels.ErrPositionTimeout)
	s.run(t)
	require.NoError(t, s.reader.From(&readmodels.At{Min: 2, Wait: forever}, "names").Await(t.Context()))
}

func TestEventsThatWaitForOthersAreFoldedWhenTheyAreRead(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	s.runAs(t, defineNames().WithBatchDelay(time.Hour))
	for i := range 5 {
		name := fmt.Sprint("late", i)
		at := s.add(t, name)
		f := &readmodels.At{Wait: forever}
		got, err := find(t.Context(), s.reader, f, name)
		require.NoError(t, err)
		require.Equal(t, int64(at), got)
		require.False(t, f.Stale())
	}
}

func TestReadsOfOneDecisionNeedWhatTheLogHadAtTheFirst(t *testing.T) {
	t.Parallel()
	s := built(t, 2)
	reader := s.read(nil)
	read := func(at *readmodels.At) ([]string, error) {
		for range 3 { // what is added meanwhile is never folded here
			all, err := list(t.Context(), reader, at)
			require.NoError(t, err)
			require.Equal(t, []string{"n0", "n1"}, all)
			s.add(t, "later")
		}
		return nil, nil
	}
	_, at, err := readmodels.CompleteAsOf(read)
	require.NoError(t, err)
	require.Equal(t, event.Position(2), at)
}
