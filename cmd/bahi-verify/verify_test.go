//go:build !js

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/audit"
)

// asProgram lets the test's own binary be the program.
const asProgram = "BAHI_VERIFY_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// verifyBy runs the program and answers what it printed and its exit status.
func verifyBy(t *testing.T, args ...string) (out, problems string, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return stdout.String(), stderr.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return stdout.String(), stderr.String(), 0
}

// ledger is a log in memory with its key.
type ledger struct {
	id     uuid.UUID
	events []event.Stored
	key    audit.Key
}

func (l *ledger) ID() uuid.UUID { return l.id }

func (l *ledger) ReadAll(_ context.Context, from event.Position, _ eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range l.events[from:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func newLedger(t *testing.T, n int) *ledger {
	t.Helper()
	l := &ledger{id: uuid.New()}
	private, err := audit.NewKey(rand.Reader, audit.Origin(l.id))
	require.NoError(t, err)
	l.key, err = audit.ParseKey(private)
	require.NoError(t, err)
	for i := range n {
		l.events = append(l.events, event.Stored{
			Position: event.Position(i + 1), Stream: fmt.Sprintf("bankrow-%d", i%5), Revision: int64(i / 5), ID: uuid.New(), Type: "BankRowEdited",
			Data: fmt.Appendf(nil, `{"amount":%d.5}`, i), Meta: []byte(`{"schema":1,"actor":"user:9"}`), At: time.Date(2026, 11, 21, 18, 0, i, 0, time.UTC),
		})
	}
	return l
}

// forge is the same log with another history.
func (l *ledger) forge(change func([]event.Stored) []event.Stored) *ledger {
	other := *l
	other.events = change(slices.Clone(l.events))
	for i := range other.events {
		other.events[i].Position = event.Position(i + 1)
	}
	return &other
}

func (l *ledger) checkpoint(t *testing.T, size int) []byte {
	t.Helper()
	var tree audit.Tree
	for _, e := range l.events[:size] {
		tree.Append(audit.LeafHash(e))
	}
	signed, err := audit.Checkpoint{Origin: audit.Origin(l.id), Size: tree.Size(), Root: tree.Root(), At: time.Now(), Position: event.Position(size)}.Sign(l.key)
	require.NoError(t, err)
	return signed
}

func (l *ledger) archive(t *testing.T, checkpoints ...[]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	o := archive.Options{UpTo: event.Position(len(l.events)), At: time.Now(), Program: "test", Checkpoints: checkpoints}
	if len(checkpoints) > 0 {
		o.PublicKeys = []string{l.key.Public()}
	}
	_, err := archive.Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	return dir
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func (l *ledger) keyFile(t *testing.T) string {
	return write(t, "key.txt", []byte(l.key.Public()+"\n"))
}

func TestAnArchiveIsVerifiedTamperedWithOrNeither(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 300)
	dir, key, kept := l.archive(t, l.checkpoint(t, 100), l.checkpoint(t, 290)), l.keyFile(t), write(t, "kept.txt", l.checkpoint(t, 300))

	out, _, status := verifyBy(t, "archive", dir, "--key", key)
	require.Zero(t, status, out)
	require.Contains(t, out, "VERIFIED. The first 290 events are what was signed; 2 checkpoints agree.\n10 events stand behind the last checkpoint")
	out, _, status = verifyBy(t, "archive", dir, "--checkpoint", kept)
	require.Zero(t, status, out)
	require.Contains(t, out, "The first 300 events are what was signed; 1 checkpoint agrees.")
	out, _, status = verifyBy(t, "archive", dir)
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL.")

	forged := l.forge(func(e []event.Stored) []event.Stored { e[149].Data = []byte(`{"amount":1}`); return e })
	dir = forged.archive(t, forged.checkpoint(t, 100), forged.checkpoint(t, 300))
	out, _, status = verifyBy(t, "archive", dir, "--key", key, "--checkpoint", kept)
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED.")
	require.Contains(t, out, "two histories were signed")
	out, _, status = verifyBy(t, "archive", dir, "--key", key, "--checkpoint", write(t, "kept.txt", l.checkpoint(t, 200)))
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED. The first bad event is one of the events 1 to 200. The log does not lead to the checkpoint of 200 events")

	out, _, status = verifyBy(t, "archive", dir, "--checkpoint", kept, "--compare", l.archive(t))
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED. The first bad event is event 150")
	require.Contains(t, out, "these differ: payload: amount")

	out, _, status = verifyBy(t, "archive", dir, "--checkpoint", kept, "--json")
	require.Equal(t, 1, status)
	var a answer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Equal(t, audit.Tampered, a.Verdict)
	require.EqualValues(t, 1, a.Result.Finding.First)
	require.EqualValues(t, 300, a.Result.Finding.Last)
}

func TestACopyThatDiffersIsJudgedByTheCheckpoints(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 50)
	forged := l.forge(func(e []event.Stored) []event.Stored { return slices.Delete(e, 20, 21) })
	honest, bad, kept := l.archive(t), forged.archive(t), write(t, "kept.txt", l.checkpoint(t, 50))

	out, _, status := verifyBy(t, "archive", honest, "--checkpoint", kept, "--compare", bad)
	require.Zero(t, status, "the other one is the forged one")
	require.Contains(t, out, bad+" is not the log that was signed.")
	out, _, status = verifyBy(t, "archive", bad, "--checkpoint", kept, "--compare", honest)
	require.Equal(t, 1, status)
	require.Contains(t, out, "The first bad event is event 21: until there it is what "+honest+" has, and that is proven.")
	require.Contains(t, out, "1 event is missing in the second one")
	out, _, status = verifyBy(t, "archive", bad, "--compare", honest)
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED, here or there")
	out, _, status = verifyBy(t, "archive", honest, "--compare", l.archive(t))
	require.Equal(t, 2, status)
	require.Contains(t, out, "It has everything that")

	older := l.forge(func(e []event.Stored) []event.Stored { return e[:30] })
	out, _, status = verifyBy(t, "archive", older.archive(t), "--checkpoint", write(t, "kept.txt", l.checkpoint(t, 30)), "--compare", honest)
	require.Zero(t, status)
	require.Contains(t, out, "It ends after 30 events, and "+honest+" goes on.")
	_, problems, status := verifyBy(t, "archive", honest, "--compare", newLedger(t, 3).archive(t))
	require.Equal(t, 2, status)
	require.Contains(t, problems, "is of the log")
}

func TestDamagedFilesAreTamperedWith(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 50)
	dir := l.archive(t, l.checkpoint(t, 50))
	segment := filepath.Join(dir, "segments", "00000001.ndjson.zst")
	text, err := os.ReadFile(segment)
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(segment, text, 0o600))
	out, _, status := verifyBy(t, "archive", dir, "--key", l.keyFile(t))
	require.Equal(t, 1, status)
	require.Contains(t, out, "The archive is broken: segments/00000001.ndjson.zst")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o600))
	_, problems, status := verifyBy(t, "archive", dir, "--key", l.keyFile(t))
	require.Equal(t, 1, status)
	require.Contains(t, problems, "the archive is broken: manifest.json")
}

func TestWhatCannotBeReadIsNotCalledForged(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 5)
	dir := l.archive(t)
	for _, args := range [][]string{
		{}, {"nothing"}, {"archive"}, {"archive", t.TempDir()}, {"archive", dir, "--key", "/nowhere"}, {"archive", dir, "--key", write(t, "key.txt", []byte("x"))},
		{"archive", dir, "--checkpoint", write(t, "kept.txt", nil)}, {"archive", dir, "--checkpoint", write(t, "kept.txt", []byte("x"))},
		{"archive", dir, "--checkpoint", write(t, "kept.txt", newLedger(t, 5).checkpoint(t, 5))}, {"archive", write(t, "a.zip", []byte("PKx"))},
		{"proof", write(t, "p", []byte("x"))}, {"store"}, {"store", "--url", "postgres://nobody:secret@127.0.0.1:1/x"}, {"store", "--url", "host='secret"},
	} {
		out, problems, status := verifyBy(t, args...)
		require.Equal(t, 2, status, "%v: %s", args, out)
		require.NotEmpty(t, problems, "%v", args)
		require.NotContains(t, problems, "secret")
	}
}

func TestAProofFileIsVerified(t *testing.T) {
	t.Parallel()
	l := newLedger(t, 300)
	l.events[7].Data = []byte("{\"description\":\"\x1b]0;evil\x07\"}")
	tiles, tree := memory{}, audit.Tree{}
	for _, e := range l.events {
		for _, p := range tree.Grow([]audit.Hash{audit.LeafHash(e)}) {
			tiles[p.Tile] = append(tiles[p.Tile], p.Hashes...)
		}
	}
	var proofs []byte
	for _, i := range []uint64{7, 40} {
		p, err := audit.Prove(t.Context(), tiles, l.events[i], i, l.checkpoint(t, 300))
		require.NoError(t, err)
		proofs = audit.AppendProof(proofs, p)
	}
	path := write(t, "row.tlog-proof", proofs)
	out, _, status := verifyBy(t, "proof", path, "--key", l.keyFile(t))
	require.Zero(t, status, out)
	require.Equal(t, 2, strings.Count(out, "VERIFIED. Event "))
	require.Contains(t, out, `payload   {"amount":40.5}`)
	require.NotContains(t, out, "\x1b", "a forger's text does not command the auditor's terminal")

	out, _, status = verifyBy(t, "proof", path, "--key", newLedger(t, 1).keyFile(t))
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL.")
	_, _, status = verifyBy(t, "proof", path, "--checkpoint", write(t, "kept.txt", l.checkpoint(t, 300)))
	require.Zero(t, status)
	out, _, status = verifyBy(t, "proof", path, "--checkpoint", write(t, "kept.txt", l.checkpoint(t, 299)))
	require.Equal(t, 2, status, out)
	forged := l.forge(func(e []event.Stored) []event.Stored { e[200].Data = []byte("{}"); return e })
	out, _, status = verifyBy(t, "proof", path, "--checkpoint", write(t, "kept.txt", forged.checkpoint(t, 300)))
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "has another root")

	p, err := audit.ParseProofs(proofs)
	require.NoError(t, err)
	p[1].Event.Data = []byte(`{"amount":1}`)
	out, _, status = verifyBy(t, "proof", write(t, "false.tlog-proof", audit.AppendProof(audit.AppendProof(nil, p[0]), p[1])), "--key", l.keyFile(t), "--json")
	require.Equal(t, 1, status, out)
	var a answer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Len(t, a.Proofs, 2)
	require.Empty(t, a.Proofs[0].Problem)
	require.NotEmpty(t, a.Proofs[1].Problem)
}

// memory holds tiles.
type memory map[audit.TileID][]byte

func (m memory) ReadTiles(_ context.Context, ids []audit.TileID) ([][]byte, error) {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = m[id]
	}
	return out, nil
}
