// Package audittest has logs in memory, with their signing keys, for tests of verifiers.
package audittest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
)

// Log is a log for package archive.
type Log struct {
	Events []event.Stored
	Key    tlog.Key
	Seed   []byte // seed of the key

	id uuid.UUID
}

// New returns a log of n events in five streams. Event i, from 0, has the amount i.5.
func New(t testing.TB, n int) *Log {
	t.Helper()
	l := &Log{id: uuid.New()}
	private, _, err := note.GenerateKey(rand.Reader, tlog.Origin(l.id))
	require.NoError(t, err)
	l.Key, err = tlog.ParseKey(private)
	require.NoError(t, err)
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(private, "+", 5)[4])
	require.NoError(t, err)
	l.Seed = seed[1:] // the first byte is the type of the key
	for i := range n {
		l.Events = append(l.Events, event.Stored{
			Position: event.Position(i + 1), Stream: fmt.Sprintf("bankrow-%d", i%5), Revision: int64(i / 5), ID: uuid.New(), Type: "BankRowEdited",
			Data: fmt.Appendf(nil, `{"amount":%d.5,"description":"<b>Bill</b>"}`, i), Meta: []byte(`{"schema":1,"actor":"user:9"}`),
			At: time.Date(2026, 11, 21, 18, 0, i, 0, time.UTC),
		})
	}
	return l
}

// ID implements the archive's Log.
func (l *Log) ID() uuid.UUID { return l.id }

// ReadAll implements the archive's Log, forwards.
func (l *Log) ReadAll(_ context.Context, from event.Position, _ eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range l.Events {
			if e.Position > from && !yield(e, nil) {
				return
			}
		}
	}
}

// head returns the position of the last of the first size events.
func (l *Log) head(size int) event.Position {
	if size == 0 {
		return 0
	}
	return l.Events[size-1].Position
}

// Forged returns the log with a changed history, under the same key. Its positions have no gap afterwards.
func (l *Log) Forged(change func([]event.Stored) []event.Stored) *Log {
	other := *l
	other.Events = change(slices.Clone(l.Events))
	for i := range other.Events {
		other.Events[i].Position = event.Position(i + 1)
	}
	return &other
}

// Checkpoint signs the log's first events.
func (l *Log) Checkpoint(t testing.TB, size int) []byte {
	t.Helper()
	var tree tlog.Tree
	for _, e := range l.Events[:size] {
		tree.Append(tlog.LeafHash(e))
	}
	signed, err := tlog.Checkpoint{Origin: tlog.Origin(l.id), Size: tree.Size(), Root: tree.Root(), At: time.Now(),
		Position: l.head(size)}.Sign(l.Key)
	require.NoError(t, err)
	return signed
}

// Archive writes the log with these checkpoints into the folder archive and returns its path.
func (l *Log) Archive(t testing.TB, checkpoints ...[]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := archive.Create(t.Context(), dir, l, archive.Options{
		UpTo: l.head(len(l.Events)), At: time.Now(), Program: "test", Checkpoints: checkpoints, PublicKeys: []string{l.Key.Public()},
	})
	require.NoError(t, err)
	return dir
}

// Proofs returns a file that proves the events at these indexes, from 0, by a checkpoint of the whole log.
func (l *Log) Proofs(t testing.TB, indexes ...uint64) (file []byte) {
	t.Helper()
	kept, tree := tiles{}, tlog.Tree{}
	for _, e := range l.Events {
		for _, p := range tree.Grow([]tlog.Hash{tlog.LeafHash(e)}) {
			kept[p.Tile] = append(kept[p.Tile], p.Hashes...)
		}
	}
	for _, i := range indexes {
		p, err := tlog.Prove(t.Context(), kept, l.Events[i], i, l.Checkpoint(t, len(l.Events)))
		require.NoError(t, err)
		file = tlog.AppendProof(file, p)
	}
	return file
}

type tiles map[tlog.TileID][]byte

// ReadTiles implements [tlog.Tiles].
func (m tiles) ReadTiles(_ context.Context, ids []tlog.TileID) ([][]byte, error) {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = m[id]
	}
	return out, nil
}

// File writes a file into a new folder.
func File(t testing.TB, name string, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// Books returns a log with a bank account 1 that a party may check: 100 comes in on 1 March 2025, and 30.50 goes out on the 2nd.
func Books(t testing.TB) *Log {
	t.Helper()
	l := New(t, 0)
	for i, e := range []struct{ stream, kind, data string }{
		{"bank-1", "BankAccountOpened", `{"name":"HDFC"}`},
		{"bank-2", "BankAccountOpened", `{"name":"SBI"}`},
		{"bankrow-1", "BankRowAdded", `{"account":1,"date":"2025-03-01","in_entries":[{"amount":100}]}`},
		{"bankrow-2", "BankRowAdded", `{"account":1,"date":"2025-03-02","out_entries":[{"amount":30.50}]}`},
	} {
		l.Events = append(l.Events, event.Stored{
			Position: event.Position(i + 1), Stream: e.stream, ID: uuid.New(), Type: e.kind, Data: []byte(e.data),
			Meta: []byte(`{"schema":1,"actor":"user:9","workspace":"` + booksWorkspace + `"}`), At: time.Date(2026, 11, 21, 18, 0, i, 0, time.UTC),
		})
	}
	return l
}

const booksWorkspace = "11111111-1111-4111-8111-111111111111"

// Statement returns the file of a statement of account 1 of [Books], and the code on its print.
func (l *Log) Statement(t testing.TB, stated tlog.Stated) (file []byte, code string) {
	t.Helper()
	var m tlog.Map
	var tree tlog.Tree
	entries := map[string]*tlog.Compact{}
	rows := map[string]string{}
	s := tlog.Statement{Account: 1, Workspace: booksWorkspace, Stated: stated}
	for _, e := range l.Events {
		c := tlog.ConcernOf(&e)
		if rows[c.Row] = cmp.Or(rows[c.Row], c.Entry); c.Row != "" {
			c.Entry = rows[c.Row]
		}
		if entries[c.Entry] == nil {
			entries[c.Entry] = &tlog.Compact{}
		}
		tree.Append(tlog.LeafHash(e))
		entries[c.Entry].Append(tlog.LeafHash(e))
		m.Set(tlog.MapKey(c.Entry), entries[c.Entry].Value())
		if c.Entry == tlog.AccountEntry(1) {
			s.Events = append(s.Events, e)
		}
	}
	_, root := m.Settle()
	of := entries[tlog.AccountEntry(1)]
	own, err := tlog.NewTree(of.Size, of.Hashes)
	require.NoError(t, err)
	s.Entry.Size, s.Entry.Root = of.Size, own.Root()
	s.Entry.MapPath = m.Path(tlog.MapKey(tlog.AccountEntry(1)))
	s.Common.MapPath = m.Path(tlog.MapKey(tlog.CommonEntry(booksWorkspace)))
	at := l.head(len(l.Events))
	signed, err := tlog.Checkpoint{Origin: tlog.Origin(l.id), Size: tree.Size(), Root: tree.Root(), At: time.Now(), Position: at, Map: root}.
		Sign(l.Key)
	require.NoError(t, err)
	s.Checkpoint = string(signed)
	var out bytes.Buffer
	require.NoError(t, tlog.WriteStatement(&out, s))
	return out.Bytes(), tlog.StatementCode{
		Checkpoint: tlog.CheckpointHash(signed), Account: tlog.MapKey(tlog.AccountEntry(1)), Position: at, Stated: stated,
	}.String()
}
