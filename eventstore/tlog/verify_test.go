package tlog

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
)

// each yields events, and then the error if there is one.
func each(events []event.Stored, err error) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(event.Stored{}, err)
		}
	}
}

func keptAt(events []event.Stored, sizes ...int) (kept []RetainedCheckpoint) {
	for _, n := range sizes {
		kept = append(kept, RetainedCheckpoint{Checkpoint: checkpointOf(events, n), From: "kept.txt"})
	}
	return kept
}

// renumber corrects positions and, if requested, each stream's revisions, like a careful forger.
func renumber(events []event.Stored, revisions bool) []event.Stored {
	next := map[string]int64{}
	for i := range events {
		events[i].Position = event.Position(i + 1)
		if revisions {
			events[i].Revision = next[events[i].Stream]
			next[events[i].Stream]++
		}
	}
	return events
}

func verified(t *testing.T, events []event.Stored, e Evidence) Result {
	t.Helper()
	r, err := Verify(t.Context(), each(events, nil), e)
	require.NoError(t, err)
	return r
}

func TestUntouchedLogAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		events := logOf(rapid.IntRange(0, 700).Draw(rt, "events"))
		sizes := rapid.SliceOfN(rapid.IntRange(0, len(events)), 0, 6).Draw(rt, "checkpoints")
		var progress uint64
		r, err := Verify(t.Context(), each(events, nil), Evidence{Kept: keptAt(events, sizes...), Progress: func(n uint64) { progress = n }})
		require.NoError(rt, err)
		require.Nil(rt, r.Finding)
		tree := treeOf(events)
		require.Equal(rt, Result{Events: tree.Size(), Last: event.Position(len(events)), Root: tree.Root(), Agreed: len(sizes),
			Trusted: len(sizes), Proven: uint64(slices.Max(append(sizes, 0)))}, r)
		require.Equal(rt, tree.Size(), progress)
	})
}

// An earlier checkpoint detects each attack that an auditor fears. The finding is a range if the evidence does not identify one event. With
// tiles it always does.
func TestAttacksAreFoundAndClassified(t *testing.T) {
	t.Parallel()
	const n, bad = 1000, 600 // the first bad event of each attack
	for name, c := range map[string]struct {
		attack func(events []event.Stored) []event.Stored
		kind   Kind // with tiles
		alone  Kind // with only one checkpoint
		first  uint64
		last   uint64 // with only one checkpoint
	}{
		"a byte of a payload": {func(e []event.Stored) []event.Stored { e[bad-1].Data = []byte(`{"amount":699.5}`); return e }, Changed,
			Rewritten, 1, n},
		"a date in metadata": {func(e []event.Stored) []event.Stored {
			e[bad-1].Meta = []byte(`{"schema":1,"actor":"user:9","occurred_at":"2026-11-20T18:00:00Z"}`)
			return e
		}, Changed, Rewritten, 1, n},
		"the time of recording": {func(e []event.Stored) []event.Stored { e[bad-1].At = e[bad].At.Add(time.Hour); return e }, Changed,
			Reordered, bad, bad + 1},
		"two events swapped": {func(e []event.Stored) []event.Stored {
			e[bad-1], e[bad+3] = e[bad+3], e[bad-1]
			return renumber(e, false)
		}, Reordered, Reordered, bad, bad + 1},
		"two events swapped that look alike": {func(e []event.Stored) []event.Stored {
			e[bad-1], e[bad+6] = e[bad+6], e[bad-1]
			e[bad-1].At, e[bad+6].At = e[bad+6].At, e[bad-1].At
			return renumber(e, true)
		}, Changed, Rewritten, 1, n},
		"one deleted, which leaves a gap": {func(e []event.Stored) []event.Stored { return slices.Delete(e, bad-1, bad) }, Removed,
			Removed, bad, bad},
		"one deleted, and others renumbered": {func(e []event.Stored) []event.Stored {
			return renumber(slices.Delete(e, bad-1, bad), false)
		}, Removed, Removed, bad - 6, bad + 6},
		"the newest of its stream deleted, and others renumbered": {func(e []event.Stored) []event.Stored {
			return renumber(slices.Delete(slices.DeleteFunc(e, func(later event.Stored) bool {
				return later.Stream == e[bad-1].Stream && later.Position > bad
			}), bad-1, bad), false)
		}, Removed, Truncated, 1, 943},
		"the tail deleted": {func(e []event.Stored) []event.Stored { return e[:bad-1] }, Truncated, Truncated, 1, bad},
		"one inserted": {func(e []event.Stored) []event.Stored {
			extra := e[bad-1]
			extra.ID = uuid.NewSHA1(store, []byte("extra"))
			return renumber(slices.Insert(e, bad-1, extra), false)
		}, Inserted, Inserted, bad, bad + 1},
		"one inserted into a stream of its own": {func(e []event.Stored) []event.Stored {
			extra := e[bad-1]
			extra.Stream, extra.Revision = "bankrow-99", 0
			return renumber(slices.Insert(e, bad-1, extra), false)
		}, Inserted, Rewritten, 1, n},
		"all of it rewritten": {func(e []event.Stored) []event.Stored {
			for i := bad - 1; i < n; i++ {
				e[i].Data = append([]byte(" "), e[i].Data...)
			}
			return e
		}, Changed, Rewritten, 1, n},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			honest := logOf(n)
			forged := c.attack(logOf(n))
			verify := func(e Evidence) *Finding {
				t.Helper()
				r, err := Verify(t.Context(), each(forged, nil), e)
				require.NoError(t, err)
				require.NotNil(t, r.Finding)
				return r.Finding
			}
			f := verify(Evidence{Kept: keptAt(honest, n)})
			require.Equal(t, c.alone, f.Kind, f.String())
			require.Equal(t, []uint64{c.first, c.last}, []uint64{f.First, f.Last}, f.String())

			f = verify(Evidence{Kept: keptAt(honest, 100, 590, 610, 900, n)})
			require.LessOrEqual(t, f.First, uint64(bad), f.String())
			require.GreaterOrEqual(t, f.Last, uint64(bad), f.String())
			require.LessOrEqual(t, f.Last-f.First, uint64(610-590), f.String())

			f = verify(Evidence{Kept: keptAt(honest, 100, n), Tiles: tilesOf(t, honest)})
			require.Equal(t, []uint64{bad, bad}, []uint64{f.First, f.Last}, f.String())
			require.Equal(t, c.kind, f.Kind, f.String())
			require.Contains(t, f.String(), "The first bad event is event 600")

			// Forged tiles prove nothing and hide nothing.
			f = verify(Evidence{Kept: keptAt(honest, 590, n), Tiles: tilesOf(t, forged)})
			require.LessOrEqual(t, f.First, uint64(bad))
			require.GreaterOrEqual(t, f.Last, uint64(bad))
			require.NotContains(t, f.Reason, "Kept hashes prove")
		})
	}
}

func TestTwoSignedHistoriesAreFound(t *testing.T) {
	t.Parallel()
	honest, forged := logOf(10), logOf(10)
	forged[3].Data = []byte("{}")
	own := keptAt(forged, 5, 10)
	for i := range own {
		own[i].Trust = SignedByKey
	}
	r := verified(t, forged, Evidence{Kept: append(own, keptAt(honest, 10)...)})
	require.Equal(t, []uint64{1, 10}, []uint64{r.Finding.First, r.Finding.Last},
		"later signed checkpoints do not narrow down what a kept one refutes")
	require.Contains(t, r.Finding.Reason, "two histories were signed")
	r = verified(t, forged, Evidence{Kept: append(own, keptAt(honest, 10)...), Tiles: tilesOf(t, honest)})
	require.Equal(t, []uint64{4, 4}, []uint64{r.Finding.First, r.Finding.Last})
	require.Contains(t, r.Finding.Reason, "two histories were signed")

	r = verified(t, honest, Evidence{Kept: append(keptAt(honest, 10), own[1])})
	require.Equal(t, Tampered, r.Verdict(), "the log is right, but a checkpoint contradicts it")
	require.Zero(t, r.Finding.Last)
	require.NotContains(t, r.Finding.String(), "The first bad event")
}

func TestEventsAfterTheLastCheckpointAreNotProven(t *testing.T) {
	t.Parallel()
	honest, forged := logOf(500), logOf(500)
	forged[400].Data = []byte("{}")
	r := verified(t, forged, Evidence{Kept: keptAt(honest, 400)})
	require.Nil(t, r.Finding)
	require.EqualValues(t, 400, r.Proven)
	require.EqualValues(t, 500, r.Events)

	forged[450].At = began
	r = verified(t, forged, Evidence{Kept: keptAt(honest, 400)})
	require.Equal(t, Reordered, r.Finding.Kind, "the order is checked nevertheless")
	require.EqualValues(t, 451, r.Finding.Last)
	require.EqualValues(t, 400, r.Proven)
}

func TestUnreadableLogReportsWhatWasRead(t *testing.T) {
	t.Parallel()
	lost := errors.New("the log is gone")
	events, forged := logOf(1000), logOf(1000)
	r, err := Verify(t.Context(), each(events[:700], lost), Evidence{Kept: keptAt(events, 300, 900)})
	require.ErrorIs(t, err, lost)
	require.Nil(t, r.Finding)
	require.EqualValues(t, 300, r.Proven)
	require.EqualValues(t, 700, r.Events)
	forged[250].Data = []byte("{}")
	r, err = Verify(t.Context(), each(forged[:700], lost), Evidence{Kept: keptAt(events, 300, 900)})
	require.ErrorIs(t, err, lost)
	require.NotNil(t, r.Finding)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Verify(ctx, each(events, nil), Evidence{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDoubtfulCheckpointsProveNothing(t *testing.T) {
	t.Parallel()
	honest, forged := logOf(500), logOf(500)
	forged[200].Data = []byte("{}")
	own := keptAt(forged, 100, 300, 500)
	for i := range own {
		own[i].Trust = Untrusted
	}
	r := verified(t, forged, Evidence{Kept: own})
	require.Nil(t, r.Finding)
	require.Equal(t, Undecided, r.Verdict())
	require.Equal(t, 3, r.Agreed)
	require.Zero(t, r.Proven)

	r = verified(t, forged, Evidence{Kept: append(own, keptAt(honest, 400)...)})
	require.Equal(t, []uint64{1, 400}, []uint64{r.Finding.First, r.Finding.Last}, "they do not narrow down what a trusted one refutes")

	r = verified(t, honest, Evidence{Kept: own})
	require.Equal(t, []uint64{101, 300}, []uint64{r.Finding.First, r.Finding.Last}, "but they refute a log that does not lead to them")
}

func TestCheckpointsAreCollectedFromFiles(t *testing.T) {
	t.Parallel()
	events, key, other := logOf(20), keyOf(t, 1), keyOf(t, 2)
	file := slices.Concat(sign(t, checkpointOf(events, 5), key), sign(t, checkpointOf(events, 10), key, other), []byte("\n"),
		sign(t, checkpointOf(events, 20), other))
	kept, err := keysOf(t, key).Collect(Origin(store), "kept.txt", file)
	require.NoError(t, err)
	require.Len(t, kept, 3)
	require.Len(t, kept[1].By, 1)
	require.Empty(t, kept[2].By)
	require.EqualValues(t, 20, kept[2].Size)
	_, err = keysOf(t, key).Collect("bahi/other", "kept.txt", file)
	require.EqualError(t, err, "kept.txt, checkpoint 1: it is of the log "+Origin(store)+", and this is the log bahi/other")
	_, err = keysOf(t, key).Collect(Origin(store), "kept.txt", file[:len(file)-100])
	require.ErrorContains(t, err, "kept.txt, checkpoint 3")
	_, err = keysOf(t, key).Collect(Origin(store), "kept.txt", []byte(string(file[:1])+"x"+string(file[1:])))
	require.ErrorContains(t, err, "kept.txt, checkpoint 1")
}

func TestMoreTrustedCheckpointCounts(t *testing.T) {
	t.Parallel()
	honest, forged := logOf(1000), logOf(1000)
	forged[599].Data = []byte("{}")

	// The log's own checkpoints are only a hint next to a kept one.
	r := verified(t, forged, Evidence{Kept: append(rankBundled(keptAt(honest, 590, 610, 900)), keptAt(honest, 100, 1000)...)})
	require.Equal(t, []uint64{101, 1000}, []uint64{r.Finding.First, r.Finding.Last})
	require.Contains(t, r.Finding.Reason, "which is less trusted, it is one of the events 591 to 610.")

	// A false one does not refute a log that a kept one proves, but it is reported.
	r = verified(t, honest, Evidence{Kept: append(rankBundled(keptAt(forged, 700)), keptAt(honest, 1000)...)})
	require.Equal(t, Tampered, r.Verdict())
	require.Zero(t, r.Finding.Last)
	require.EqualValues(t, 1000, r.Proven)

	// It does not hide later faults.
	later := logOf(1000)
	later[950].Data = []byte("{}")
	r = verified(t, later, Evidence{Kept: append(rankBundled(keptAt(forged, 700)), keptAt(honest, 900, 1000)...)})
	require.Equal(t, []uint64{901, 1000}, []uint64{r.Finding.First, r.Finding.Last})
}

func TestFaultOfTheOrderMayNotBeTheFirst(t *testing.T) {
	t.Parallel()
	honest, forged := logOf(300), logOf(300)
	forged[120].Data = []byte("{}") // invisible without a checkpoint
	forged = slices.Delete(forged, 199, 200)
	r := verified(t, forged, Evidence{Kept: keptAt(honest, 100, 300)})
	require.EqualValues(t, 200, r.Finding.First)
	require.Contains(t, r.Finding.String(), "Earlier ones may be bad too: no checkpoint confirms the events 101 to 199.")
	r = verified(t, forged, Evidence{Kept: keptAt(honest, 100, 300), Tiles: tilesOf(t, honest)})
	require.Equal(t, []uint64{121, 121}, []uint64{r.Finding.First, r.Finding.Last})
	require.NotContains(t, r.Finding.String(), "Earlier ones may be bad too")
}
