package auditproj_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"bahi/eventstore/tlog"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections/auditproj"
)

// witness is a server of C2SP tlog-witness: it signs a checkpoint only if that contains the previously signed one.
type witness struct {
	t      *testing.T
	public string
	signer note.Signer
	log    tlog.Keys

	mu   sync.Mutex
	size uint64
	root tlog.Hash
}

func startWitness(t *testing.T, log tlog.Keys) (*witness, string) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, "witness.example/w1")
	require.NoError(t, err)
	w := &witness{t: t, log: log}
	w.signer, err = cosignature.NewSignerForCosignatureV1(private)
	require.NoError(t, err)
	w.public, err = cosignature.VKeyToCosignatureV1(public)
	require.NoError(t, err)
	server := worktest.Serve(t, w)
	return w, server.URL
}

func (w *witness) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, err := io.ReadAll(in.Body)
	head, signed, ok := bytes.Cut(body, []byte("\n\n"))
	if err != nil || !ok || in.Method != http.MethodPost || in.URL.Path != "/add-checkpoint" {
		http.Error(out, "malformed", http.StatusBadRequest)
		return
	}
	lines := strings.Split(string(head), "\n")
	var old uint64
	if _, err := fmt.Sscanf(lines[0], "old %d", &old); err != nil {
		http.Error(out, "malformed", http.StatusBadRequest)
		return
	}
	var proof []tlog.Hash
	for _, line := range lines[1:] {
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != tlog.HashSize {
			http.Error(out, "malformed", http.StatusBadRequest)
			return
		}
		proof = append(proof, tlog.Hash(raw))
	}
	c, _, err := w.log.Open(signed)
	switch {
	case err != nil:
		http.Error(out, "unknown key", http.StatusForbidden)
		return
	case old > c.Size:
		http.Error(out, "malformed", http.StatusBadRequest)
		return
	case old != w.size:
		out.Header().Set("Content-Type", "text/x.tlog.size")
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintln(out, w.size)
		return
	case tlog.VerifyConsistency(old, c.Size, proof, w.root, c.Root) != nil:
		http.Error(out, "not consistent", http.StatusUnprocessableEntity)
		return
	}
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	cosigned, err := note.Sign(&note.Note{Text: string(text) + "\n"}, w.signer)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	w.size, w.root = c.Size, c.Root
	_, signature, _ := bytes.Cut(cosigned, []byte("\n\n"))
	_, _ = out.Write(signature)
}

func TestWitnessSignsConsistentCheckpoints(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	log, err := s.Ring.Public(t.Context())
	require.NoError(t, err)
	w, url := startWitness(t, log)
	keys, err := tlog.ParseKeys(w.public)
	require.NoError(t, err)
	client := func() *auditproj.Witness {
		return &auditproj.Witness{URL: url, Keys: keys, Tables: r.tree(), DB: r.pool, Client: http.DefaultClient}
	}
	one, bucket := client(), &memoryBucket{kept: map[string]string{}}
	s.Out = []auditproj.Publisher{one, &auditproj.Copies{Bucket: bucket, Where: "the safe", Origin: "x"}}
	for _, n := range []int{3, 500, 1} {
		signed, _, _ := r.grew(s, n)
		s.Publish(t.Context(), &signed)
		kept := pgtest.Value[string](t, r.pool, `select note from audit.checkpoint where number = $1`, signed.Number)
		both, err := tlog.ParseKeys(w.public + "\n" + publicOf(t, r))
		require.NoError(t, err)
		_, by, err := both.Open([]byte(kept))
		require.NoError(t, err)
		require.Len(t, by, 2)
		require.True(t, by[0].Witness || by[1].Witness)
		require.Equal(t, kept, bucket.kept["x/newest"], "copies have its signature too")
	}
	require.EqualValues(t, 504, w.size)

	signed, _, _ := r.grew(s, 1)
	require.NoError(t, client().Publish(t.Context(), &signed), "a new process learns the witness's size")

	w.root[0] ^= 1
	signed, _, _ = r.grew(s, 1)
	require.ErrorContains(t, one.Publish(t.Context(), &signed), "the witness returned status 422: not consistent")
	w.size = 1000
	require.ErrorContains(t, one.Publish(t.Context(), &signed), `the witness has signed "1000" events, but this checkpoint has 506`)
}

func TestInvalidSignatureOfAWitnessIsNotKept(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	log, err := s.Ring.Public(t.Context())
	require.NoError(t, err)
	w, url := startWitness(t, log)
	other, _ := startWitness(t, log)
	keys, err := tlog.ParseKeys(other.public)
	require.NoError(t, err)
	signed, _, _ := r.grew(s, 1)
	before := signed.Note
	require.Error(t, (&auditproj.Witness{URL: url, Keys: keys, Tables: r.tree(), DB: r.pool, Client: http.DefaultClient}).Publish(t.Context(),
		&signed))
	require.Equal(t, before, signed.Note)
	require.EqualValues(t, 1, w.size)
}

func publicOf(t *testing.T, r *fixture) string {
	t.Helper()
	return pgtest.Value[string](t, r.pool, `select verifier from audit.key`)
}
