//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/test/audittest"
)

// asProgram makes the test binary act as the program.
const asProgram = "BAHI_VERIFY_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// verifyBy runs the program and returns its output and exit status.
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

// keyFile returns a file with a log's public key.
func keyFile(t *testing.T, l *audittest.Log) string {
	t.Helper()
	return audittest.File(t, "key.txt", []byte(l.Key.Public()+"\n"))
}

func TestArchiveVerdicts(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 300)
	dir, key, kept := l.Archive(t, l.Checkpoint(t, 100), l.Checkpoint(t, 290)), keyFile(t, l),
		audittest.File(t, "kept.txt", l.Checkpoint(t, 300))

	out, _, status := verifyBy(t, "archive", dir, "--key", key)
	require.Zero(t, status, out)
	require.Contains(t, out, "VERIFIED. The first 290 events are what was signed; 2 checkpoints agree.\n10 events are after the last "+
		"checkpoint")
	out, _, status = verifyBy(t, "archive", dir, "--checkpoint", kept)
	require.Zero(t, status, out)
	require.Contains(t, out, "The first 300 events are what was signed; 1 checkpoint agrees.")
	out, _, status = verifyBy(t, "archive", dir)
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL.")

	forged := l.Forged(func(e []event.Stored) []event.Stored { e[149].Data = []byte(`{"amount":1}`); return e })
	dir = forged.Archive(t, forged.Checkpoint(t, 100), forged.Checkpoint(t, 300))
	out, _, status = verifyBy(t, "archive", dir, "--key", key, "--checkpoint", kept)
	require.Equal(t, 1, status)
	require.Contains(t, out, "two histories were signed")
	out, _, status = verifyBy(t, "archive", dir, "--checkpoint", kept, "--json")
	require.Equal(t, 1, status)
	var a archive.Report
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Equal(t, tlog.Tampered, a.Verdict)
	require.EqualValues(t, 1, a.Result.Finding.First)
	require.EqualValues(t, 300, a.Result.Finding.Last)
}

func TestCheckpointsDecideBetweenCopies(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 50)
	forged := l.Forged(func(e []event.Stored) []event.Stored { return slices.Delete(e, 20, 21) })
	honest, bad, kept := l.Archive(t), forged.Archive(t), audittest.File(t, "kept.txt", l.Checkpoint(t, 50))

	out, _, status := verifyBy(t, "archive", honest, "--checkpoint", kept, "--compare", bad)
	require.Zero(t, status, "the other copy is forged")
	require.Contains(t, out, ""+bad+" is not the signed log. The first one here is "+bad+", the second "+honest+".")
	out, _, status = verifyBy(t, "archive", bad, "--checkpoint", kept, "--compare", honest)
	require.Equal(t, 1, status)
	require.Contains(t, out, "The first bad event is event 21: the events before it are those of "+honest+", which is proven.")
	require.Contains(t, out, "1 event is missing in the second one")
	out, _, status = verifyBy(t, "archive", bad, "--compare", honest)
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED, one or the other")
	out, _, status = verifyBy(t, "archive", honest, "--compare", l.Archive(t))
	require.Equal(t, 2, status)
	require.Contains(t, out, "It has everything that")

	older := l.Forged(func(e []event.Stored) []event.Stored { return e[:30] })
	out, _, status = verifyBy(t, "archive", older.Archive(t), "--checkpoint", audittest.File(t, "kept.txt", l.Checkpoint(t, 30)),
		"--compare", honest)
	require.Zero(t, status)
	require.Contains(t, out, "It ends after 30 events, and "+honest+" continues.")

	// Newer checkpoints cover more events than an older copy has, which does not make it forged.
	copied := older.Archive(t, older.Checkpoint(t, 30))
	out, _, status = verifyBy(t, "archive", bad, "--key", keyFile(t, l), "--checkpoint", kept, "--compare", copied)
	require.Equal(t, 1, status)
	require.Contains(t, out, "The first bad event is event 21: the events before it are those of "+copied+", which is proven.")
	out, _, status = verifyBy(t, "archive", bad, "--checkpoint", kept, "--compare", copied)
	require.Equal(t, 1, status)
	require.Contains(t, out, "TAMPERED, one or the other", "no trusted checkpoint confirms the copy")
	_, problems, status := verifyBy(t, "archive", honest, "--compare", audittest.New(t, 3).Archive(t))
	require.Equal(t, 2, status)
	require.Contains(t, problems, "is of the log")
}

func TestUnreadableFilesAreNotCalledForged(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 5)
	dir := l.Archive(t)
	for _, args := range [][]string{
		{}, {"nothing"}, {"archive"}, {"archive", t.TempDir()}, {"archive", dir, "--key", "/nowhere"},
		{"archive", dir, "--key", audittest.File(t, "key.txt", []byte("x"))},
		{"archive", dir, "--checkpoint", audittest.File(t, "kept.txt", nil)},
		{"archive", dir, "--checkpoint", audittest.File(t, "kept.txt", []byte("x"))},
		{"archive", dir, "--checkpoint", audittest.File(t, "kept.txt", audittest.New(t, 5).Checkpoint(t, 5))},
		{"archive", audittest.File(t, "a.zip", []byte("PKx"))},
		{"proof", audittest.File(t, "p", []byte("x"))}, {"store"}, {"store", "--url", "postgres://nobody:secret@127.0.0.1:1/x"},
		{"store", "--url", "host='secret"},
	} {
		out, problems, status := verifyBy(t, args...)
		require.Equal(t, 2, status, "%v: %s", args, out)
		require.NotEmpty(t, problems, "%v", args)
		require.NotContains(t, problems, "secret")
	}
}

func TestProofFileIsVerified(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 300)
	l.Events[7].Data = []byte("{\"description\":\"\x1b]0;evil\x07\"}")
	proofs := l.Proofs(t, 7, 40)
	path := audittest.File(t, "row.tlog-proof", proofs)
	out, _, status := verifyBy(t, "proof", path, "--key", keyFile(t, l))
	require.Zero(t, status, out)
	require.Equal(t, 2, strings.Count(out, "VERIFIED. The event at position "))
	require.Contains(t, out, `payload   {"amount":40.5,"description":"<b>Bill</b>"}`)
	require.NotContains(t, out, "\x1b", "a forger's text does not command the auditor's terminal")

	out, _, status = verifyBy(t, "proof", path, "--key", keyFile(t, audittest.New(t, 1)))
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL.")
	require.Contains(t, out, "Provide the log's public key, or a checkpoint of as many events that was kept elsewhere.\n")
	_, _, status = verifyBy(t, "proof", path, "--checkpoint", audittest.File(t, "kept.txt", l.Checkpoint(t, 300)))
	require.Zero(t, status)
	forged := l.Forged(func(e []event.Stored) []event.Stored { e[200].Data = []byte("{}"); return e })
	out, _, status = verifyBy(t, "proof", path, "--checkpoint", audittest.File(t, "kept.txt", forged.Checkpoint(t, 300)))
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "has another root")

	p, err := tlog.ParseProofs(proofs)
	require.NoError(t, err)
	p[1].Event.Data = []byte(`{"amount":1}`)
	out, _, status = verifyBy(t, "proof", audittest.File(t, "false.tlog-proof", tlog.AppendProof(tlog.AppendProof(nil, p[0]), p[1])),
		"--key", keyFile(t, l), "--json")
	require.Equal(t, 1, status, out)
	var a archive.Report
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Len(t, a.Proofs, 2)
	require.Empty(t, a.Proofs[0].Problem)
	root := strings.Split(string(p[1].Checkpoint), "\n")[2]
	require.Regexp(t, `^the proof does not show that the leaf is at index 40 of 300: it leads to the root \S{44}, and not to `+
		regexp.QuoteMeta(root)+`$`, a.Proofs[1].Problem)
}
