package tlog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func tilesOf(t testing.TB, events []event.Stored) *memory {
	t.Helper()
	tiles, tree := &memory{}, Tree{}
	for _, e := range events {
		tiles.add(t, tree.Grow([]Hash{LeafHash(e)}))
	}
	return tiles
}

func TestProofFileAndKeyAreEnough(t *testing.T) {
	t.Parallel()
	events := logOf(300)
	events[7].Data = []byte(`"` + strings.Repeat("long ", 50_000) + `"`)
	key, tiles := keyOf(t, 1), tilesOf(t, events)
	var file []byte
	for _, at := range [][2]int{{0, 1}, {7, 300}, {255, 256}, {256, 300}, {299, 300}} {
		p, err := Prove(t.Context(), tiles, events[at[0]], uint64(at[0]), sign(t, checkpointOf(events, at[1]), key))
		require.NoError(t, err)
		file = AppendProof(file, p)
	}
	proofs, err := ParseProofs(file)
	require.NoError(t, err)
	require.Len(t, proofs, 5)
	require.Equal(t, events[7], proofs[1].Event)
	for _, p := range proofs {
		c, by, err := keysOf(t, key).Verify(p)
		require.NoError(t, err)
		require.Len(t, by, 1)
		require.Less(t, p.Index, c.Size)
		_, _, err = keysOf(t, keyOf(t, 2)).Verify(p)
		require.ErrorIs(t, err, ErrNotSigned)
	}
}

func TestProofOfAnotherEventDoesNotHold(t *testing.T) {
	t.Parallel()
	events := logOf(300)
	key, tiles := keyOf(t, 1), tilesOf(t, events)
	signed := sign(t, checkpointOf(events, 300), key)
	forged := events[20]
	forged.Data = []byte(`{"amount":1}`)
	_, err := Prove(t.Context(), tiles, forged, 20, signed)
	require.ErrorIs(t, err, ErrNotAsHashed)
	p, err := Prove(t.Context(), tiles, events[20], 20, signed)
	require.NoError(t, err)
	for _, change := range []func(*Proof){
		func(p *Proof) { p.Event = forged }, func(p *Proof) { p.Index = 21 }, func(p *Proof) { p.Hashes = p.Hashes[1:] },
		func(p *Proof) { p.Hashes = append([]Hash{{1}}, p.Hashes[1:]...) },
		func(p *Proof) { p.Checkpoint = sign(t, checkpointOf(events, 299), key) },
		func(p *Proof) { p.Checkpoint = []byte(strings.Replace(string(p.Checkpoint), "\n300\n", "\n299\n", 1)) },
	} {
		changed := p
		change(&changed)
		proofs, err := ParseProofs(AppendProof(nil, changed))
		require.NoError(t, err)
		_, _, err = keysOf(t, key).Verify(proofs[0])
		require.Error(t, err)
	}
}

func FuzzProofs(f *testing.F) {
	events := logOf(3)
	p, err := Prove(f.Context(), tilesOf(f, events), events[1], 1, sign(f, checkpointOf(events, 3), keyOf(f, 1)))
	require.NoError(f, err)
	file := string(AppendProof(nil, p))
	leaf := base64.StdEncoding.EncodeToString(appendLeaf(nil, events[1]))
	for _, text := range []string{
		file, file + file, "", "\n", file[1:], file + "\n", file + "x", strings.Replace(file, "index 1\n", "index 01\n", 1),
		strings.Replace(file, "index 1\n", "", 1), strings.ReplaceAll(file, "\n", "\r\n"), strings.Replace(file, "extra "+leaf+"\n", "", 1),
		strings.Replace(file, leaf, leaf[4:], 1), strings.Replace(file, leaf, "%", 1), strings.Replace(file, "\n\n", "\nAAAA\n\n", 1),
		strings.Replace(file, "@v1", "@v2", 1), file + file[:len(file)/2],
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		proofs, err := ParseProofs(text)
		if err != nil {
			return
		}
		var again []byte
		for _, p := range proofs {
			again = AppendProof(again, p)
		}
		require.True(t, bytes.Equal(text, again))
	})
}

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
