package tlog_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/eventstore/tlog"
)

// mapRoot is docs/audit-format.md's definition, without anything kept.
func mapRoot(entries map[tlog.Hash]tlog.Hash, depth int) (root tlog.Hash) {
	if len(entries) == 1 {
		for k, v := range entries {
			return sha256.Sum256(slices.Concat([]byte{2}, k[:], v[:]))
		}
	}
	if len(entries) == 0 {
		return root
	}
	var sides [2]map[tlog.Hash]tlog.Hash
	for i := range sides {
		sides[i] = map[tlog.Hash]tlog.Hash{}
	}
	for k, v := range entries {
		sides[k[depth/8]>>(7-depth%8)&1][k] = v
	}
	left, right := mapRoot(sides[0], depth+1), mapRoot(sides[1], depth+1)
	return sha256.Sum256(slices.Concat([]byte{3}, left[:], right[:]))
}

// close returns keys, some of which share long prefixes.
func closeKey(n uint16) (key tlog.Hash) {
	if n%3 == 0 {
		binary.BigEndian.PutUint16(key[30:], n)
		return key
	}
	return tlog.MapKey(tlog.AccountEntry(int64(n)))
}

func TestMapIsTheSameHoweverItIsBuilt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(p *rapid.T) {
		stored, entries := map[string]tlog.MapNode{}, map[tlog.Hash]tlog.Hash{}
		read := func(_ context.Context, paths [][]byte) (found []tlog.MapNode, _ error) {
			for _, path := range paths {
				if n, ok := stored[string(path)]; ok {
					found = append(found, n)
				}
			}
			return found, nil
		}
		root := tlog.Hash(sha256.Sum256(nil))
		for range rapid.IntRange(1, 4).Draw(p, "batches") {
			keys := rapid.SliceOfN(rapid.Custom(func(p *rapid.T) tlog.Hash { return closeKey(rapid.Uint16Range(0, 60).Draw(p, "n")) }), 0, 8).
				Draw(p, "keys")
			m, err := tlog.LoadMap(context.Background(), read, root, keys)
			require.NoError(p, err)
			for _, k := range keys {
				entries[k] = sha256.Sum256([]byte{rapid.Byte().Draw(p, "value")})
				m.Set(k, entries[k])
			}
			var changed []tlog.MapNode
			changed, root = m.Settle()
			for _, n := range changed {
				stored[string(n.Path)] = n
			}
		}
		want := mapRoot(entries, 0)
		if len(entries) == 0 {
			want = sha256.Sum256(nil)
		}
		require.Equal(p, want, root)
		key := closeKey(rapid.Uint16Range(0, 80).Draw(p, "asked"))
		m, err := tlog.LoadMap(context.Background(), read, root, []tlog.Hash{key})
		require.NoError(p, err)
		path := m.Path(key)
		value, has := entries[key]
		if !has {
			require.NoError(p, path.Verify(key, nil, root))
			require.Error(p, path.Verify(key, &value, root))
			return
		}
		require.NoError(p, path.Verify(key, &value, root))
		require.Error(p, path.Verify(key, nil, root))
		require.Error(p, path.Verify(closeKey(99), &value, root))
		value[0] ^= 1
		require.Error(p, path.Verify(key, &value, root))
		value[0] ^= 1
		for i := range path.Hashes {
			path.Hashes[i][5] ^= 1
			require.Error(p, path.Verify(key, &value, root))
			path.Hashes[i][5] ^= 1
		}
		require.Error(p, tlog.MapPath{Hashes: path.Hashes, Other: &[2]tlog.Hash{key, value}}.Verify(key, nil, root))
		for where, n := range stored {
			bad := n
			bad.Hash[0] ^= 1
			stored[where] = bad
			if m, err := tlog.LoadMap(context.Background(), read, root, []tlog.Hash{key}); err == nil {
				require.Equal(p, path, m.Path(key)) // it is not on the way
			} else {
				require.ErrorIs(p, err, tlog.ErrMapBroken)
			}
			stored[where] = n
		}
	})
}

func TestConcernOfEvents(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		stream, kind, data string
		want               tlog.Concern
	}{
		{"bank-12", "BankAccountOpened", `{}`, tlog.Concern{Entry: "account 12"}},
		{"bank-012", "BankAccountOpened", `{}`, tlog.Concern{}},
		{"polisher-3", "Unheard", `{}`, tlog.Concern{Entry: "account 3"}},
		{"clientrow-7", "ClientRowAdded", `{"account":9,"date":"2025-01-01"}`, tlog.Concern{Entry: "account 9", Row: "clientrow-7"}},
		{"clientrow-7", "ClientRowAdded", `{"ACCOUNT":9}`, tlog.Concern{Row: "clientrow-7"}},
		{"clientrow-7", "ClientRowAdded", `{"account":"9"}`, tlog.Concern{Row: "clientrow-7"}},
		{"clientrow-7", "ClientRowEdited", `{"account":9}`, tlog.Concern{Row: "clientrow-7"}},
		{"bookslock-w", "BooksLockMoved", `{}`, tlog.Concern{Entry: "common w"}},
		{"period-w", "PeriodClosed", `{}`, tlog.Concern{Entry: "common w"}},
		{"user-1", "UserRegistered", `{"account":9}`, tlog.Concern{}},
	} {
		require.Equal(t, one.want, tlog.ConcernOf(&event.Stored{Stream: one.stream, Type: one.kind, Data: []byte(one.data)}), one.stream)
	}
	for _, l := range ledger.All {
		row := &event.Stored{Stream: l.Rows.Category() + "-7", Type: l.Rows.Names()[0], Data: []byte(`{"account":9}`)}
		require.Equal(t, "account 9", tlog.ConcernOf(row).Entry, "add %s to ledgers in concern.go and to docs/audit-format.md", l.Name)
	}
}

func TestMapOfCheckpointsIsMadeAgain(t *testing.T) {
	t.Parallel()
	events := make([]event.Stored, 700)
	var tree tlog.Tree
	var accounts tlog.Accounts
	roots := map[uint64]tlog.Hash{}
	for i := range events {
		e := event.Stored{Position: event.Position(i + 1), Stream: fmt.Sprintf("bankrow-%d", i), Type: "BankRowAdded",
			Data: fmt.Appendf(nil, `{"account":%d}`, 1+i%13), Meta: []byte(`{}`)}
		if i%5 == 0 {
			e.Stream = fmt.Sprintf("note-%d", i)
		}
		events[i] = e
		tree.Append(tlog.LeafHash(e))
		accounts.Add(tlog.ConcernOf(&e), tlog.LeafHash(e))
		roots[tree.Size()] = accounts.Root()
	}
	read := func(yield func(event.Stored, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
	verify := func(change func([]tlog.RetainedCheckpoint)) tlog.Result {
		var kept []tlog.RetainedCheckpoint
		var tree tlog.Tree
		for i, e := range events {
			if tree.Append(tlog.LeafHash(e)); slices.Contains([]int{9, 255, 300, 512, 700}, i+1) {
				kept = append(kept, tlog.RetainedCheckpoint{Checkpoint: tlog.Checkpoint{Size: tree.Size(), Root: tree.Root(), Map: roots[tree.Size()]}})
			}
		}
		change(kept)
		r, err := tlog.Verify(t.Context(), read, tlog.Evidence{Kept: kept})
		require.NoError(t, err)
		return r
	}
	r := verify(func([]tlog.RetainedCheckpoint) {})
	require.Nil(t, r.Finding)
	require.Equal(t, 5, r.Maps)
	require.Contains(t, r.Sentences(), "The map of accounts is as signed in 5 checkpoints.")
	r = verify(func(kept []tlog.RetainedCheckpoint) { kept[1].Map = tlog.Hash{} })
	require.Nil(t, r.Finding, "a checkpoint of an earlier version has none")
	require.Equal(t, 4, r.Maps)
	for i := range 5 {
		r = verify(func(kept []tlog.RetainedCheckpoint) { kept[i].Map[7] ^= 1 })
		require.Equal(t, tlog.Tampered, r.Verdict())
		require.Contains(t, r.Finding.String(), fmt.Sprintf("The map of accounts that the checkpoint of %d events signed is not that of the log",
			[]int{9, 255, 300, 512, 700}[i]))
	}
}

func TestCheckpointsHaveOneRootOfAMap(t *testing.T) {
	t.Parallel()
	private, _, err := note.GenerateKey(rand.Reader, "bahi/x")
	require.NoError(t, err)
	key, err := tlog.ParseKey(private)
	require.NoError(t, err)
	c := tlog.Checkpoint{Origin: "bahi/x", Size: 1, Root: tlog.MapKey("root"), Position: 1, Number: 1, Map: tlog.MapKey("map")}
	note, err := c.Sign(key)
	require.NoError(t, err)
	require.Contains(t, string(note), "\nnumber 1\nbahi-map/v1 "+c.Map.String()+"\n\n")
	keys, err := tlog.ParseKeys(key.Public())
	require.NoError(t, err)
	read, _, err := keys.Open(note)
	require.NoError(t, err)
	require.Equal(t, c, read)
	line := "bahi-map/v1 " + c.Map.String() + "\n"
	for _, bad := range []string{line + line, "bahi-map/v1 \n", "bahi-map/v1 x\n", "bahi-map/v1 " + tlog.Hash{}.String() + "\n"} {
		_, err := tlog.ParseCheckpoint(bytes.Replace(note, []byte(line), []byte(bad), 1))
		require.ErrorContains(t, err, "is not a single root of a map")
	}
}

func TestOverdueSignaturesLeaveTheVerdictOpen(t *testing.T) {
	t.Parallel()
	r := tlog.Result{Events: 10, Proven: 9, Trusted: 1}
	require.Equal(t, tlog.Verified, r.Verdict())
	r.Unsigned = &tlog.Event{Position: 10}
	require.Equal(t, tlog.Undecided, r.Verdict())
	require.Contains(t, r.Sentences()[0], "CANNOT TELL. The first 9 events are what was signed. The events from position 10 on")
}

// With an old checkpoint and no key, the verdict states that the log's newer checkpoints do not count, not that they are missing.
func TestEventsAfterAKeptCheckpointAreNotCalledUnsigned(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"VERIFIED. The first 6 events are what was signed; 1 checkpoint agrees.",
		"4 events are after the last checkpoint that was kept elsewhere or that a trusted key signed: nothing proves them yet.",
		"It agrees with 3 of its own checkpoints, which no trusted key signed.",
	}, tlog.Result{Events: 10, Last: 10, Proven: 6, Trusted: 1, Agreed: 4}.Sentences())
}
