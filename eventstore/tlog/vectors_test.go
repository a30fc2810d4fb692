package tlog

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/testonly"

	"bahi/domain/event"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "rewrite testdata/vectors.json; logs were signed with these bytes, so review the diff")

const vectorsFile = "testdata/vectors.json"

// vectors are test vectors for verifiers in other languages. docs/audit-format.md explains them.
type vectors struct {
	RFC6962     []published    `json:"rfc6962"`
	Leaves      []leafVector   `json:"leaves"`
	Roots       []Hash         `json:"roots"` // of the first 0, 1, 2 … leaves
	Inclusion   []inclusion    `json:"inclusion"`
	Consistency []consistency  `json:"consistency"`
	PublicKeys  []string       `json:"public_keys"`
	Checkpoints []signedVector `json:"checkpoints"`
	Proofs      []signedVector `json:"proofs"`
}

// published has a leaf and root from the test vectors of the Certificate Transparency libraries.
type published struct {
	Leaf string `json:"leaf"` // hex
	Root Hash   `json:"root"`
}

type leafVector struct {
	Position   uint64 `json:"position"`
	Stream     string `json:"stream"`
	Revision   int64  `json:"revision"`
	ID         string `json:"id"`
	Type       string `json:"type"`
	RecordedAt string `json:"recorded_at"`
	Meta       string `json:"meta"`
	Data       string `json:"data"`
	Leaf       string `json:"leaf"` // hex
	Hash       Hash   `json:"hash"`
}

type inclusion struct {
	Index  uint64 `json:"index"`
	Size   uint64 `json:"size"`
	Hashes []Hash `json:"hashes"`
}

type consistency struct {
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Hashes []Hash `json:"hashes"`
}

// signedVector is a checkpoint or a file of proofs, and whether it is valid if the first public key is trusted.
type signedVector struct {
	What string `json:"what"`
	Text string `json:"text"`
	Good bool   `json:"good"`
}

func vectorEvents() []event.Stored {
	events := logOf(11)
	events[1].Data, events[1].Meta = []byte("{\n\t\"name\": \"\u0930\u092e\u0947\u0936 \\u0026 Sons\"\r\n}"), []byte(`{}`)
	events[2].Stream, events[2].Type = "x-\u0928-1-2", "\u0928\u092f\u093e"
	events[3].At = time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC)
	events[4].Position, events[4].Revision = 1<<63, 1<<62
	events[5].Data = []byte("[" + strings.Repeat("1,", 700) + "1]")
	return events
}

func makeVectors(t *testing.T) (v vectors) {
	t.Helper()
	for i, leaf := range testonly.LeafInputs() {
		v.RFC6962 = append(v.RFC6962, published{hex.EncodeToString(leaf), Hash(testonly.RootHashes()[i+1])})
	}
	events := vectorEvents()
	tiles := tilesOf(t, events)
	var tree Tree
	v.Roots = append(v.Roots, tree.Root())
	for _, e := range events {
		v.Leaves = append(v.Leaves, leafVector{
			uint64(e.Position), e.Stream, e.Revision, e.ID.String(), e.Type, e.At.Format(moment), string(e.Meta), string(e.Data),
			hex.EncodeToString(appendLeaf(nil, e)), LeafHash(e),
		})
		tree.Append(LeafHash(e))
		v.Roots = append(v.Roots, tree.Root())
	}
	for _, at := range [][2]uint64{{0, 1}, {0, 2}, {0, 11}, {5, 7}, {6, 11}, {10, 11}, {3, 8}} {
		hashes, err := Inclusion(t.Context(), tiles, at[0], at[1])
		require.NoError(t, err)
		v.Inclusion = append(v.Inclusion, inclusion{at[0], at[1], hashes})
	}
	for _, at := range [][2]uint64{{1, 1}, {1, 2}, {3, 7}, {4, 8}, {6, 11}, {8, 11}, {11, 11}} {
		hashes, err := Consistency(t.Context(), tiles, at[0], at[1])
		require.NoError(t, err)
		v.Consistency = append(v.Consistency, consistency{at[0], at[1], hashes})
	}
	key, next := keyOf(t, 1), keyOf(t, 2)
	v.PublicKeys = []string{key.Public(), next.Public()}
	good := sign(t, checkpointOf(events, 11), key, next)
	v.Checkpoints = []signedVector{
		{"signed by the first key and the next one", string(good), true},
		{"signed by the next key only", string(sign(t, checkpointOf(events, 8), next)), false},
		{"another size than the one that was signed", strings.Replace(string(good), "\n11\n", "\n10\n", 1), false},
	}
	file := func(p Proof) string { return string(AppendProof(nil, p)) }
	p, err := Prove(t.Context(), tiles, events[5], 5, good)
	require.NoError(t, err)
	other, err := Prove(t.Context(), tiles, events[1], 1, good)
	require.NoError(t, err)
	forged := p
	forged.Event.Data = []byte("[]")
	moved := p
	moved.Index = 6
	v.Proofs = []signedVector{
		{"one event", file(p), true}, {"two events, one behind the other", file(other) + file(p), true},
		{"another payload", file(forged), false}, {"another index", file(moved), false},
		{"one of two is false", file(other) + file(moved), false},
	}
	return v
}

func TestVectorsAreUnchanged(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(makeVectors(t), "", " ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.WriteFile(vectorsFile, text, 0o600))
	}
	kept := worktest.File(t, vectorsFile)
	require.Equal(t, string(kept), string(text), "these bytes must not change: logs were signed with them")
}

// The document suffices to write a verifier in another language. This one was written from it, without our code.
func TestVerifierWrittenFromTheDocumentAgrees(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("python3 is not installed, so the test checks nothing")
		return
	}
	ask := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), python, append([]string{"-B", "testdata/verify.py"}, args...)...).CombinedOutput()
		return string(out), err
	}
	out, err := ask("vectors", vectorsFile)
	require.NoError(t, err, out)
	require.Contains(t, out, "all vectors hold")

	events := logOf(300)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	key := write("key.txt", []byte(keyOf(t, 1).Public()+"\n"))
	p, err := Prove(t.Context(), tilesOf(t, events), events[77], 77, sign(t, checkpointOf(events, 300), keyOf(t, 1)))
	require.NoError(t, err)
	out, err = ask("proof", write("good"+ProofExtension, AppendProof(nil, p)), key)
	require.NoError(t, err, out)
	require.Contains(t, out, "event 78, BankRowEdited bankrow-0@11, is in the log "+Origin(store))
	p.Event.Meta = []byte("{}")
	out, err = ask("proof", write("bad"+ProofExtension, AppendProof(nil, p)), key)
	require.Error(t, err)
	require.Contains(t, out, "does not hold")
}
