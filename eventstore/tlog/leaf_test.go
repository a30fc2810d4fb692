package tlog

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
)

func anyEvent(t *rapid.T) event.Stored {
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 300)
	return event.Stored{
		Position: event.Position(rapid.Uint64().Draw(t, "position")), Stream: rapid.String().Draw(t, "stream"),
		Revision: rapid.Int64Range(0, math.MaxInt64).Draw(t, "revision"),
		ID:       uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), Type: rapid.String().Draw(t, "type"),
		At:   time.UnixMicro(rapid.Int64Range(-1<<50, 1<<60).Draw(t, "at")).UTC(),
		Meta: bytes.Draw(t, "meta"), Data: bytes.Draw(t, "data"),
	}
}

func TestLeafRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		leaf := AppendLeaf(nil, e)
		got, err := ParseLeaf(leaf)
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.Equal(t, hashLeaf(leaf), LeafHash(e))
		_, err = ParseLeaf(append(leaf, 0))
		require.Error(t, err)
		_, err = ParseLeaf(leaf[:rapid.IntRange(0, len(leaf)-1).Draw(t, "cut")])
		require.Error(t, err)
	})
}

// Only equal events have equal leaves: no byte can move from one field to the next.
func TestDifferentEventsHaveDifferentLeaves(t *testing.T) {
	t.Parallel()
	e := logOf(1)[0]
	seen := map[string]string{string(AppendLeaf(nil, e)): "the event"}
	for part, change := range map[string]func(*event.Stored){
		"position": func(e *event.Stored) { e.Position++ }, "stream": func(e *event.Stored) { e.Stream += "B" },
		"revision": func(e *event.Stored) { e.Revision++ },
		"id":       func(e *event.Stored) { e.ID[15]++ }, "type": func(e *event.Stored) { e.Type = e.Type[1:] },
		"at":   func(e *event.Stored) { e.At = e.At.Add(time.Microsecond) },
		"meta": func(e *event.Stored) { e.Meta, e.Data = append(e.Meta, e.Data[0]), e.Data[1:] },
		"data": func(e *event.Stored) { e.Data = append([]byte(" "), e.Data...) },
	} {
		changed := logOf(1)[0]
		change(&changed)
		leaf := string(AppendLeaf(nil, changed))
		require.NotContains(t, seen, leaf, part)
		seen[leaf] = part
	}
}

func FuzzLeaf(f *testing.F) {
	for _, e := range logOf(3) {
		f.Add(AppendLeaf(nil, e))
	}
	f.Fuzz(func(t *testing.T, leaf []byte) {
		e, err := ParseLeaf(leaf)
		if err != nil {
			return
		}
		require.Equal(t, leaf, AppendLeaf(nil, e))
	})
}
