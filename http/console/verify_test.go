package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/audit"
	"bahi/http/console/browsertest"
)

// made is the page with the verifier as it is now, whatever was built into this program.
var made = sync.OnceValues(func() (*verifier, error) {
	dir, err := os.MkdirTemp("", "bahi-verifier-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("../../scripts/verifier.sh", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, filepath.Base(verifierFile)))
	if err != nil {
		return nil, err
	}
	support, err := os.ReadFile(filepath.Join(dir, filepath.Base(supportFile)))
	if err != nil {
		return nil, err
	}
	return newVerifier(program, support)
})

// log is a log in memory.
type log struct {
	id     uuid.UUID
	events []event.Stored
	key    audit.Key
}

func (l *log) ID() uuid.UUID { return l.id }

func (l *log) ReadAll(_ context.Context, from event.Position, _ eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range l.events[from:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func newLog(t *testing.T) *log {
	t.Helper()
	l := &log{id: uuid.New()}
	private, err := audit.NewKey(rand.Reader, audit.Origin(l.id))
	require.NoError(t, err)
	l.key, err = audit.ParseKey(private)
	require.NoError(t, err)
	for i := range 400 {
		l.events = append(l.events, event.Stored{
			Position: event.Position(i + 1), Stream: "bankrow-1", Revision: int64(i), ID: uuid.New(), Type: "BankRowEdited",
			Data: fmt.Appendf(nil, `{"amount":%d.5,"description":"<b>Bill</b>"}`, i), Meta: []byte(`{"schema":1}`), At: time.Date(2026, 11, 21, 18, 0, i, 0, time.UTC),
		})
	}
	return l
}

func (l *log) checkpoint(t *testing.T) []byte {
	t.Helper()
	var tree audit.Tree
	for _, e := range l.events {
		tree.Append(audit.LeafHash(e))
	}
	signed, err := audit.Checkpoint{Origin: audit.Origin(l.id), Size: tree.Size(), Root: tree.Root(), At: time.Now()}.Sign(l.key)
	require.NoError(t, err)
	return signed
}

func (l *log) archive(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := archive.Create(t.Context(), dir, l, archive.Options{
		UpTo: event.Position(len(l.events)), At: time.Now(), Checkpoints: [][]byte{l.checkpoint(t)}, PublicKeys: []string{l.key.Public()},
	})
	require.NoError(t, err)
	return dir
}

// proof proves one event from the leaves alone.
func (l *log) proof(t *testing.T, index uint64) []byte {
	t.Helper()
	tiles, tree := tiles{}, audit.Tree{}
	for _, e := range l.events {
		for _, p := range tree.Grow([]audit.Hash{audit.LeafHash(e)}) {
			tiles[p.Tile] = append(tiles[p.Tile], p.Hashes...)
		}
	}
	p, err := audit.Prove(t.Context(), tiles, l.events[index], index, l.checkpoint(t))
	require.NoError(t, err)
	return audit.AppendProof(nil, p)
}

type tiles map[audit.TileID][]byte

func (m tiles) ReadTiles(_ context.Context, ids []audit.TileID) ([][]byte, error) {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = m[id]
	}
	return out, nil
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// verifies fills in the page and answers what it says.
func verifies(p *browsertest.Page) (title, text string) {
	p.Click("#verify")
	p.Until(`!document.getElementById("verify").disabled && document.querySelector("#answer h2")`)
	return p.Text("#answer h2"), p.Text("#answer")
}

func TestTheVerifiersPageWorksInABrowserAndFromAFile(t *testing.T) {
	t.Parallel()
	v, err := made()
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { v.serve(w, "inline") }))
	t.Cleanup(server.Close)
	saved := write(t, "saved.html", v.page)
	l := newLog(t)
	honest := l.archive(t)
	zipped := filepath.Join(t.TempDir(), "march.tar")
	out, err := exec.CommandContext(t.Context(), "tar", "-cf", zipped, "-C", filepath.Dir(honest), "archive").CombinedOutput()
	require.NoError(t, err, string(out))
	forged := *l
	forged.events = slices.Clone(l.events)
	forged.events[250].Data = []byte(`{"amount":1,"description":"<b>Bill</b>"}`)
	bad, kept := forged.archive(t), write(t, "kept.txt", l.checkpoint(t))

	for base, path := range map[string]string{server.URL: "/", "file://" + filepath.Dir(saved): "/saved.html"} {
		p := browsertest.Open(t, base)
		p.Go(path)
		p.Accessible()

		p.Choose("#log input", zipped)
		p.Type("#keys", l.key.Public())
		title, text := verifies(p)
		require.Equal(t, "Verified", title, text)
		require.Contains(t, text, "The first 400 events are what was signed; 1 checkpoint agrees.")
		p.Accessible()

		p.Choose("#log input[webkitdirectory]", bad)
		p.Choose("#checkpoints", kept)
		title, text = verifies(p)
		require.Equal(t, "Tampered with", title, text)
		require.Contains(t, text, "The first bad event is one of the events 1 to 400")
		p.Choose("#copy input[webkitdirectory]", honest)
		title, text = verifies(p)
		require.Equal(t, "Tampered with", title, text)
		require.Contains(t, text, "The first bad event is event 251: until there it is what the copy has, and that is proven.")
		require.Contains(t, text, "these differ: payload: amount.")

		p.Choose("#log input", write(t, "row.tlog-proof", l.proof(t, 77)))
		title, text = verifies(p)
		require.Equal(t, "Verified", title, text)
		require.Contains(t, text, "Event 78, BankRowEdited bankrow-1@77")
		require.Contains(t, text, `"description":"<b>Bill</b>"`, "it is text, and no part of the page")

		p.Choose("#log input", write(t, "other.zip", []byte("PKx")))
		title, text = verifies(p)
		require.Equal(t, "It could not be read", title, text)

		// Not even a script in the page could send anything away.
		require.Empty(t, p.Forgive())
		var reached bool
		p.Evaluate(`fetch("http://127.0.0.1:9/").then(() => true, () => false)`, &reached)
		require.False(t, reached)
		require.Contains(t, strings.Join(p.Forgive(), "\n"), "Content Security Policy")
	}
}

func TestTheVerifierIsForEverybodyAndCanBeSaved(t *testing.T) {
	t.Parallel()
	v, err := newVerifier([]byte("program"), []byte("'support';"))
	require.NoError(t, err)
	for _, made := range []struct {
		page   *verifier
		err    error
		status int
	}{{v, nil, http.StatusOK}, {nil, fs.ErrNotExist, http.StatusNotFound}} {
		c := build(t, "http://127.0.0.1", time.Now)
		c.mux = http.NewServeMux()
		c.serveVerifier(func() (*verifier, error) { return made.page, made.err })
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		for path, disposition := range map[string]string{"/verify": "inline", "/verify/bahi-verify.html": `attachment; filename="bahi-verify.html"`} {
			answer, err := http.Get(server.URL + Path + path)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, made.status, answer.StatusCode)
			if made.err == nil {
				require.Equal(t, disposition, answer.Header.Get("Content-Disposition"))
				require.Equal(t, string(v.page), string(body))
				require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-")
				require.NotContains(t, answer.Header.Get("Content-Security-Policy"), "'self'")
			} else {
				require.Contains(t, string(body), "This program was built without the verifier&#39;s page.")
			}
		}
	}
}
