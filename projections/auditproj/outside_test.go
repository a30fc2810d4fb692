package auditproj_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/projections/auditproj"
)

// rewritten is the result of an attacker with the whole installation, who rewrites the log, its tree, and validly signed checkpoints (by
// the next grown and signed) beyond the outside copies.
func (r *rig) rewritten() {
	r.t.Helper()
	r.exec(`update log.event set data = '{"n":7}' where position = 4`)
	r.exec(`truncate audit.checkpoint`)
}

func TestNewestCopyOfEachPlaceCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	safe, desk := &drawer{kept: map[string]string{}}, &drawer{kept: map[string]string{}}
	out := []auditproj.Publisher{
		&auditproj.Copies{Bucket: lost{}, Where: "the moon", Origin: "x"},
		&auditproj.Copies{Bucket: desk, Where: "the desk", Origin: "x"}, &auditproj.Copies{Bucket: safe, Where: "the safe", Origin: "x"},
	}
	s := r.node(out...)
	require.NoError(t, s.Ring.Ready(t.Context()))
	r.add(10)
	r.grown()
	signed, _, _ := r.signed(s)
	s.Publish(t.Context(), &signed)
	r.rewritten()
	r.grown()
	r.add(1)
	r.grown()
	signed, _, _ = r.signed(r.node())
	desk.kept["x/newest"] = signed.Note // the attacker reached the desk
	err := r.node(out...).Check(t.Context())
	require.ErrorContains(t, err, "the newest checkpoint in the safe")
}

// lost is an unreachable bucket.
type lost struct{}

func (lost) Put(context.Context, string, string, []byte) error { return errors.New("unreachable") }

func (lost) Get(context.Context, string) ([]byte, error) { return nil, errors.New("unreachable") }

func TestChangedCheckpointIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, want string }{
		"a smaller tree in its columns": {`update audit.checkpoint set (size, root, position, event_id) = (4, (select sha256('x')), 4, (select id
			from log.event where position = 4))`, "row has 4 events up to position 4, but its signed note has others"},
		"another root":   {`update audit.checkpoint set root = sha256('x')`, "its signed note has others"},
		"its text":       {`update audit.checkpoint set note = replace(note, 'position 10', 'position 11')`, "is not the signed one"},
		"no note at all": {`update audit.checkpoint set note = 'x'`, "is not the signed one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newSignedLog(t, 10)
			r.exec(c.spoil)
			err := r.node().Check(t.Context())
			require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// hanging is an outlet that never responds.
type hanging struct{ asked chan time.Duration }

func (hanging) Name() string { return "a hole" }

func (h hanging) Publish(ctx context.Context, _ *auditproj.Signed) error {
	by, _ := ctx.Deadline()
	h.asked <- time.Until(by)
	return ctx.Err()
}

func TestHangingOutletTakesNoTimeFromTheOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, other := hanging{make(chan time.Duration, 1)}, hanging{make(chan time.Duration, 1)}
	bucket := &drawer{kept: map[string]string{}}
	s := r.node(one, other, &auditproj.Copies{Bucket: bucket, Where: "the safe", Origin: "x"})
	s.Publish(t.Context(), &auditproj.Signed{Size: 1, Note: "x"})
	require.Less(t, <-one.asked+<-other.asked, 7*time.Second, "all outlets share ten seconds")
	require.Equal(t, "x", bucket.kept["x/newest"])
}

func TestWitnessWithoutASignatureHasNotSigned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var log bytes.Buffer
	s := r.node()
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, s.Ring.Ready(t.Context()))
	ours, err := s.Ring.Public(t.Context())
	require.NoError(t, err)
	w, _ := startWitness(t, ours)
	keys, err := tlog.ParseKeys(w.public)
	require.NoError(t, err)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(silent.Close)
	s.Out = []auditproj.Publisher{&auditproj.Witness{URL: silent.URL, Keys: keys, Tables: r.tree(), DB: r.pool, Client: http.DefaultClient}}
	r.add(1)
	r.grown()
	signed, _, _ := r.signed(s)
	s.Publish(t.Context(), &signed)
	require.Contains(t, log.String(), "publishing a checkpoint failed")
	require.Contains(t, log.String(), "add signatures: there are none")
}

// Write access to the database gives no key. But the signer would continue from an older checkpoint if a mark could discard the newer
// ones.
func TestOnlyTheLogAbandonsCheckpoints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	copies := &auditproj.Copies{Bucket: &drawer{kept: map[string]string{}}, Where: "the safe", Origin: "x"}
	s := r.node(copies)
	require.NoError(t, s.Ring.Ready(t.Context()))
	for range 3 {
		r.add(3)
		r.grown()
		signed, _, _ := r.signed(s)
		s.Publish(t.Context(), &signed)
	}
	r.exec(`update log.event set data = '{"n":7}' where position = 8`)
	r.exec(`update audit.checkpoint set abandoned = 1 where size > 3`)
	r.grown()
	r.add(1)
	r.grown()
	for _, node := range []*auditproj.Signer{s, r.node()} {
		_, err := node.Sign(t.Context())
		require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
		require.ErrorContains(t, err, "The checkpoint that was signed last (9 events) is marked as abandoned, but no event of the log says so.")
		require.ErrorAs(t, node.Check(t.Context()), new(*auditproj.ErrRewritten))
	}
	hidden, err := s.Hidden(t.Context())
	require.NoError(t, err)
	require.Len(t, hidden, 2)

	r.exec(`delete from audit.checkpoint where size > 6`) // the outside copies remain
	r.exec(`insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note, abandoned) select 4, 9, decode('` +
		rootKept(t, copies) + `', 'base64'), 9, id, now(), '', 1 from log.event where position = 9;
		update audit.checkpoint set abandoned = null where size = 6`)
	_, err = r.node(copies).Sign(t.Context())
	require.ErrorAs(t, err, new(*auditproj.ErrRewritten))

	found, err := r.node().Recount(t.Context(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, found.Broken, "the restore accepts this loss too")
	require.EqualValues(t, 6, found.Kept.Size)
}

// rootKept returns the root of the newest copy, in base64.
func rootKept(t *testing.T, copies *auditproj.Copies) string {
	t.Helper()
	note, err := copies.Newest(t.Context())
	require.NoError(t, err)
	c, err := tlog.ParseCheckpoint(note)
	require.NoError(t, err)
	return c.Root.String()
}
