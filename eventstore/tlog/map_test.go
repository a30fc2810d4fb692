package tlog_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
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

// close returns keys of which some share long beginnings.
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
		for range rapid.IntRange(1, 6).Draw(p, "batches") {
			keys := rapid.SliceOfN(rapid.Custom(func(p *rapid.T) tlog.Hash { return closeKey(rapid.Uint16Range(0, 60).Draw(p, "n")) }), 0, 12).
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
			want := mapRoot(entries, 0)
			if len(entries) == 0 {
				want = sha256.Sum256(nil)
			}
			require.Equal(p, want, root)
		}
		key := closeKey(rapid.Uint16Range(0, 80).Draw(p, "asked"))
		m, err := tlog.LoadMap(context.Background(), read, root, []tlog.Hash{key})
		require.NoError(p, err)
		path, found := m.Path(key)
		value, has := entries[key]
		require.Equal(p, has, found)
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
				_, found := m.Path(key) // it is not on the way
				require.Equal(p, has, found)
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
}
