package tlog

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestCompareFindsTheFirstDifference(t *testing.T) {
	t.Parallel()
	const n, at = 1000, 600
	for name, c := range map[string]struct {
		do    func(events []event.Stored) []event.Stored
		kind  Kind
		parts []string
	}{
		"a payload": {func(e []event.Stored) []event.Stored {
			e[at-1].Data = []byte(`{"amount":7,"description":"Bill 599"}`)
			return e
		}, Changed, []string{"payload: amount"}},
		"white space in a payload": {func(e []event.Stored) []event.Stored { e[at-1].Data = append([]byte(" "), e[at-1].Data...); return e },
			Changed, []string{"payload"}},
		"a payload that is no object": {func(e []event.Stored) []event.Stored { e[at-1].Data = []byte("7"); return e }, Changed,
			[]string{"payload"}},
		"a date in metadata": {func(e []event.Stored) []event.Stored {
			e[at-1].Meta = []byte(`{"schema":1,"actor":"user:9","occurred_at":"2026-11-20T18:00:00Z","reason":"x"}`)
			return e
		}, Changed, []string{"metadata: occurred_at", "metadata: reason"}},
		"time, type, stream and revision": {func(e []event.Stored) []event.Stored {
			e[at-1].At, e[at-1].Type, e[at-1].Stream = e[at-1].At.Add(time.Microsecond), "X", "x-1"
			e[at-1].Revision++
			return e
		}, Changed, []string{"stream", "revision", "type", "recorded_at"}},
		"a position": {func(e []event.Stored) []event.Stored { e[at-1].Position = 0; return e }, Changed, []string{"position"}},
		"swapped":    {func(e []event.Stored) []event.Stored { e[at-1], e[at+3] = e[at+3], e[at-1]; return renumber(e, false) }, Reordered, nil},
		"deleted":    {func(e []event.Stored) []event.Stored { return renumber(slices.Delete(e, at-1, at+1), true) }, Removed, nil},
		"inserted": {func(e []event.Stored) []event.Stored {
			extra := e[at-1]
			extra.ID = uuid.NewSHA1(store, []byte("extra"))
			return renumber(slices.Insert(e, at-1, extra), true)
		}, Inserted, nil},
		"replaced": {func(e []event.Stored) []event.Stored { e[at-1].ID = uuid.NewSHA1(store, []byte("extra")); return e }, Changed, nil},
		"cut off":  {func(e []event.Stored) []event.Stored { return e[:at-1] }, Truncated, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Compare(each(logOf(n), nil), each(c.do(logOf(n)), nil), nil)
			require.NoError(t, err)
			require.Equal(t, c.kind, d.Kind, d.String())
			require.EqualValues(t, at, d.Number, d.String())
			require.Equal(t, c.parts, d.Parts, d.String())
		})
	}
}

func TestUnreadableCopyIsNoDifference(t *testing.T) {
	t.Parallel()
	lost := errors.New("the disk is gone")
	_, err := Compare(each(logOf(10), lost), each(logOf(20), nil), nil)
	require.ErrorIs(t, err, lost)
	_, err = Compare(each(logOf(20), nil), each(logOf(10), lost), nil)
	require.ErrorIs(t, err, lost)
}
