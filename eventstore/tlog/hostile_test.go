package tlog

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
)

// An anomaly in the proven part does not hide a fault after it.
func TestSignedAnomalyHidesNoLaterFault(t *testing.T) {
	t.Parallel()
	odd := logOf(400)
	odd[100].At = began
	r := verified(t, odd, Evidence{Kept: keptAt(odd, 300)})
	require.Nil(t, r.Finding, "a signed anomaly is not forged")
	gap := slices.Delete(slices.Clone(odd), 350, 351)
	r = verified(t, gap, Evidence{Kept: keptAt(odd, 300)})
	require.NotNil(t, r.Finding)
	require.Equal(t, Removed, r.Finding.Kind)
	require.EqualValues(t, 351, r.Finding.First)

	r = verified(t, gap, Evidence{Kept: keptAt(odd, 300, 400)})
	require.EqualValues(t, 351, r.Finding.First)
}

func TestClueThatEndsTheLogIsKeptAmongMany(t *testing.T) {
	t.Parallel()
	odd := logOf(1000)
	for i := range odd {
		odd[i].At = began.Add(-time.Duration(i) * time.Second)
		odd[i].Type = restoreAccepted
	}
	r := verified(t, append(slices.Clone(odd[:900]), odd[950:]...), Evidence{Kept: keptAt(odd, 900)})
	require.Equal(t, Removed, r.Finding.Kind)
	require.EqualValues(t, 901, r.Finding.First)
	require.Len(t, r.Restores, maxNoted)
	require.Equal(t, Of(odd[0]), r.Restores[0])
}

func TestForgedTextIsQuoted(t *testing.T) {
	t.Parallel()
	events := logOf(20)
	events[9].Type, events[9].Stream = "X\nVERIFIED. All is well", "y\u202e\r\nVERIFIED."
	events[9].Revision = 7
	events[9].Data = []byte(`{"a\nVERIFIED":1}`)
	r := verified(t, events, Evidence{})
	for _, s := range r.Sentences() {
		require.NotContains(t, s, "\n")
		require.NotContains(t, s, "\u202e")
	}
	d, err := Compare(each(logOf(20), nil), each(events, nil), nil)
	require.NoError(t, err)
	require.NotContains(t, d.String(), "\n")
	require.Contains(t, d.Parts, "payload: a\ufffdVERIFIED")
}

func TestProofOfAnEventWithAnInvalidYearIsRefused(t *testing.T) {
	t.Parallel()
	p := Proof{Event: logOf(1)[0], Checkpoint: sign(t, checkpointOf(logOf(1), 1), keyOf(t, 1))}
	_, err := ParseProofs(AppendProof(nil, p))
	require.NoError(t, err)
	p.Event.At = time.UnixMicro(1 << 60)
	_, err = ParseProofs(AppendProof(nil, p))
	require.ErrorContains(t, err, "its event is of the year 38504")
}

// forged returns a log after a few changes by a forger, who may also repair what depends on them.
func forged(t *rapid.T, honest []event.Stored) []event.Stored {
	events := slices.Clone(honest)
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		at := rapid.IntRange(0, len(events)-1).Draw(t, "at")
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			events[at].Data = []byte(`{"amount":7}`)
		case 1:
			events[at].At = events[at].At.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "microseconds")) * time.Microsecond)
		case 2:
			other := rapid.IntRange(0, len(events)-1).Draw(t, "other")
			events[at], events[other] = events[other], events[at]
		case 3:
			if len(events) > 1 {
				events = slices.Delete(events, at, at+1)
			}
		case 4:
			extra := events[at]
			extra.ID = uuid.NewSHA1(extra.ID, []byte("extra"))
			events = slices.Insert(events, at, extra)
		case 5:
			events = events[:max(at, 1)]
		}
	}
	if rapid.Bool().Draw(t, "renumbered") {
		return renumber(events, rapid.Bool().Draw(t, "revisions too"))
	}
	return events
}

// A checkpoint that covers a change finds it, and the finding is true: the first bad event is in its range, and outside the part that it
// reports as proven.
func TestFindingsAreTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		honest := logOf(rapid.IntRange(1, 300).Draw(rt, "events"))
		log := forged(rt, honest)
		first := uint64(0) // number of leading events that both have
		for first < uint64(min(len(honest), len(log))) && LeafHash(honest[first]) == LeafHash(log[first]) {
			first++
		}
		kept := keptAt(honest, rapid.SliceOfN(rapid.IntRange(1, len(honest)), 1, 4).Draw(rt, "kept")...)
		evidence := Evidence{Kept: slices.Clone(kept)}
		for _, size := range rapid.SliceOfN(rapid.IntRange(1, len(log)), 0, 3).Draw(rt, "the forger's own") {
			own := keptAt(log, size)[0]
			own.Trust = rapid.SampledFrom([]Trust{SignedByKey, Untrusted}).Draw(rt, "who has the key")
			evidence.Kept = append(evidence.Kept, own)
		}
		covered := slices.ContainsFunc(kept, func(k RetainedCheckpoint) bool { return k.Size > first })
		r, err := Verify(t.Context(), each(log, nil), evidence)
		require.NoError(rt, err)
		if covered {
			require.NotNil(rt, r.Finding)
		}
		keyless := !slices.ContainsFunc(evidence.Kept[len(kept):], func(k RetainedCheckpoint) bool { return k.Trust == SignedByKey })
		if f := r.Finding; f != nil && f.Last > 0 && (covered || keyless) { // otherwise only the forger's checkpoints cover the change
			require.Less(rt, f.Proven, first+1, f.String())
			require.GreaterOrEqual(rt, f.Last, first+1, f.String())
			if f.First == f.Proven+1 {
				require.LessOrEqual(rt, f.First, first+1, f.String())
			}
		}
		d, err := Compare(each(honest, nil), each(log, nil), nil)
		require.NoError(rt, err)
		if require.Equal(rt, first < uint64(len(honest)), d != nil); d != nil {
			require.Equal(rt, first+1, d.Number)
		}
		evidence.Tiles = tilesOf(t, honest)
		if r, err = Verify(t.Context(), each(log, nil), evidence); covered {
			require.NoError(rt, err)
			require.Equal(rt, []uint64{first + 1, first + 1}, []uint64{r.Finding.First, r.Finding.Last}, r.Finding.String())
		}
	})
}
