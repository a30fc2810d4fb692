package auditproj_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/projections/auditproj"
)

// rewritten changes the log like an attacker with the whole installation, and removes the checkpoints. The next calls of grown and signed
// then build a matching tree and validly sign it, but cannot change the outside copies.
func (r *fixture) rewritten() {
	r.t.Helper()
	r.exec(`update log.event set data = '{"n":7}' where position = 4`)
	r.exec(`truncate audit.checkpoint`)
}

func TestNewestCopyOfEachPlaceCounts(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	safe, desk := &memoryBucket{kept: map[string]string{}}, &memoryBucket{kept: map[string]string{}}
	out := []auditproj.Publisher{
		&auditproj.Copies{Bucket: lost{}, Where: "the moon", Origin: "x"},
		&auditproj.Copies{Bucket: desk, Where: "the desk", Origin: "x"}, &auditproj.Copies{Bucket: safe, Where: "the safe", Origin: "x"},
	}
	s := r.ready(out...)
	signed, _, _ := r.grew(s, 10)
	s.Publish(t.Context(), &signed)
	r.rewritten()
	r.grown()
	signed, _, _ = r.grew(r.node(), 1)
	desk.kept["x/newest"] = signed.Note // the attacker reached the desk
	err := r.node(out...).Check(t.Context())
	require.ErrorContains(t, err, "the newest checkpoint in the safe")
}

// lost is an unreachable bucket.
type lost struct{}

func (lost) Put(context.Context, string, string, []byte) error { return errors.New("unreachable") }

func (lost) Get(context.Context, string) ([]byte, string, error) {
	return nil, "", errors.New("unreachable")
}

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

// hanging is an publisher that never responds.
type hanging struct{ asked chan time.Duration }

func (hanging) Name() string { return "a hole" }

func (h hanging) Publish(ctx context.Context, _ *auditproj.Signed) error {
	by, _ := ctx.Deadline()
	h.asked <- time.Until(by)
	return ctx.Err()
}

func TestHangingPublisherTakesNoTimeFromTheOthers(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	one, other := hanging{make(chan time.Duration, 1)}, hanging{make(chan time.Duration, 1)}
	bucket := &memoryBucket{kept: map[string]string{}}
	s := r.node(one, other, &auditproj.Copies{Bucket: bucket, Where: "the safe", Origin: "x"})
	s.Publish(t.Context(), &auditproj.Signed{Size: 1, Note: "x"})
	require.Less(t, <-one.asked+<-other.asked, 7*time.Second, "all publishers share ten seconds")
	require.Equal(t, "x", bucket.kept["x/newest"])
}

// Write access to the database gives no key. But the signer would continue from an older checkpoint if a mark could discard the newer
// ones.
func TestOnlyTheLogAbandonsCheckpoints(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	copies := &auditproj.Copies{Bucket: &memoryBucket{kept: map[string]string{}}, Where: "the safe", Origin: "x"}
	s := r.ready(copies)
	for range 3 {
		signed, _, _ := r.grew(s, 3)
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
		require.ErrorContains(t, err,
			"The checkpoint that was signed last (9 events) is marked as abandoned, but no event of the log records it.")
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

func TestCheckpointsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	for n := range int64(4) {
		if n == 2 { // Postgres crashes before it commits
			r.exec(`begin; update audit.numbering set last = last + 1; rollback`)
		}
		signed, _, _ := r.grew(s, 1)
		require.Equal(t, n+1, signed.Number)
		c, err := tlog.ParseCheckpoint([]byte(signed.Note))
		require.NoError(t, err)
		require.Equal(t, n+1, c.Number, "the signature covers the number")
	}
	for _, removal := range []struct {
		sql            string
		missing, first int64
	}{
		{`select 1`, 0, 0},
		{`delete from audit.checkpoint where number = 2`, 1, 2},
		{`delete from audit.checkpoint where number = 4`, 2, 2},
		{`delete from audit.checkpoint where number = 1`, 3, 1},
		{`delete from audit.numbering`, 3, 1}, // missing: 1, 2, and one after the last existing checkpoint
		{`delete from audit.checkpoint`, 1, 1},
	} {
		r.exec(removal.sql)
		found, err := s.Numbers(t.Context())
		require.NoError(t, err)
		require.Equal(t, auditproj.Numbers{Missing: removal.missing, First: removal.first}, found, removal.sql)
	}
}

func TestRereadFindsAnOlderChangedEvent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"its payload": `update log.event set data = '{"n": 7}' where position = 4`,
		"its actor":   `update log.event set meta = '{"actor": "user:mallory"}' where position = 1`,
		"two that changed places": `update log.event set position = -position where position in (4, 5); update log.event
			set position = 9 + position where position < 0`,
		"all of them, but the last": `update log.event set type = 'Seen' where position < 5000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			s := r.ready()
			agreed, err := s.Reread(t.Context())
			require.NoError(t, err)
			require.Zero(t, agreed, "nothing is signed yet")
			for range 10 {
				r.add(500)
			}
			r.grown()
			r.signed(s)
			r.add(3) // not signed
			agreed, err = s.Reread(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 5000, agreed)
			r.exec(spoil)
			require.NoError(t, s.Check(t.Context()), "a start checks only the end")
			_, err = s.Reread(t.Context())
			require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
			require.ErrorContains(t, err, "(5000 events, up to position 5000): its first 5000 events were rewritten")
			require.ErrorContains(t, err, "bahi audit verify --store")
			require.ErrorContains(t, err, "bahi audit accept-restore")
		})
	}
}

// A log that loses its tail meanwhile is not rewritten, and the signer reports it.
func TestTailLostDuringARereadIsNotCalledRewritten(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 10)
	r.exec(`delete from log.event where position > 8`)
	agreed, err := s.Reread(t.Context())
	require.NoError(t, err)
	require.Zero(t, agreed)
	r.add(5)
	agreed, err = s.Reread(t.Context())
	require.NoError(t, err)
	require.Zero(t, agreed)
	_, err = s.Sign(t.Context())
	require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
}
