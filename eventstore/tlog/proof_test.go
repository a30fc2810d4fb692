package tlog

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

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
	require.ErrorContains(t, err, "prove position 21: the log, the tiles and the checkpoint do not match")
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

func TestProofFileIsCanonical(t *testing.T) {
	t.Parallel()
	events := logOf(3)
	p, err := Prove(t.Context(), tilesOf(t, events), events[1], 1, sign(t, checkpointOf(events, 3), keyOf(t, 1)))
	require.NoError(t, err)
	file := string(AppendProof(nil, p))
	leaf := base64.StdEncoding.EncodeToString(AppendLeaf(nil, events[1]))
	for _, bad := range []string{
		"", "\n", file[1:], file + "\n", file + "x", strings.Replace(file, "index 1\n", "index 01\n", 1),
		strings.Replace(file, "index 1\n", "", 1),
		strings.ReplaceAll(file, "\n", "\r\n"), strings.Replace(file, "extra "+leaf+"\n", "", 1), strings.Replace(file, leaf, leaf[4:], 1),
		strings.Replace(file, leaf, "%", 1),
		strings.Replace(file, "\n\n", "\nAAAA\n\n", 1), strings.Replace(file, "@v1", "@v2", 1), file + file[:len(file)/2],
	} {
		_, err := ParseProofs([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

func FuzzProofs(f *testing.F) {
	events := logOf(3)
	p, err := Prove(f.Context(), tilesOf(f, events), events[1], 1, sign(f, checkpointOf(events, 3), keyOf(f, 1)))
	require.NoError(f, err)
	f.Add(AppendProof(nil, p))
	f.Add(AppendProof(AppendProof(nil, p), p))
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
