package auditproj_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
	"bahi/eventstore/vault"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/projections"
	"bahi/projections/auditproj"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
)

// node is the part of the fixture that one process has.
func (r *fixture) node(out ...auditproj.Publisher) *auditproj.Signer {
	r.t.Helper()
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(r.t.Context(), r.pool, make([]byte, 32), log)
	require.NoError(r.t, err)
	return &auditproj.Signer{
		DB: r.pool, Store: r.store, Tables: r.tree(), Out: out, Now: time.Now, Log: log,
		Ring: &auditproj.Ring{DB: r.pool, Vault: v, Store: r.store, Now: time.Now},
	}
}

func (r *fixture) tree() *auditview.Tree {
	return &auditview.Tree{Reader: readmodels.NewReader(logtest.Snapshots(r.t, r.pool), map[string]int{"audit": auditproj.Tree.Version}, nil)}
}

// grown folds the log into new tables.
func (r *fixture) grown() {
	r.t.Helper()
	build := r.build()
	build.How.Accept = true
	require.NoError(r.t, build.Run(r.t.Context()))
}

func (r *fixture) exec(sql string) {
	r.t.Helper()
	pgtest.Exec(r.t, r.pool, sql)
}

// tell appends an event about the proofs.
func (r *fixture) tell(e audit.Event) {
	r.t.Helper()
	encoded, err := audit.Kind.Encode(uuid.New(), e, event.Meta{Actor: "system:shell"})
	require.NoError(r.t, err)
	_, err = r.store.Append(r.t.Context(), eventstore.To(audit.Kind.Stream(audit.Log), eventstore.Any, encoded))
	require.NoError(r.t, err)
}

// signed signs, and returns the checkpoint as a verifier with the public keys reads it.
func (r *fixture) signed(s *auditproj.Signer) (auditproj.Signed, tlog.Checkpoint, []tlog.Signature) {
	r.t.Helper()
	signed, err := s.Sign(r.t.Context())
	require.NoError(r.t, err)
	require.NotNil(r.t, signed)
	keys, err := s.Ring.Public(r.t.Context())
	require.NoError(r.t, err)
	c, by, err := keys.Open([]byte(signed.Note))
	require.NoError(r.t, err)
	return *signed, c, by
}

// grew signs after n further events.
func (r *fixture) grew(s *auditproj.Signer, n int) (auditproj.Signed, tlog.Checkpoint, []tlog.Signature) {
	r.t.Helper()
	r.add(n)
	r.grown()
	return r.signed(s)
}

// ready returns a node that has its key.
func (r *fixture) ready(out ...auditproj.Publisher) *auditproj.Signer {
	r.t.Helper()
	s := r.node(out...)
	require.NoError(r.t, s.Ring.Ready(r.t.Context()))
	return s
}

// newSignedLog returns a signed log of n events, and its signer.
func newSignedLog(t *testing.T, events int) (*fixture, *auditproj.Signer) {
	t.Helper()
	r := newFixture(t)
	s := r.ready()
	r.grew(s, events)
	return r, s
}

// root returns the root of the log's first events.
func (r *fixture) root(size uint64) tlog.Hash {
	r.t.Helper()
	var tree tlog.Tree
	for _, leaf := range r.leaves()[:size] {
		tree.Append(leaf)
	}
	return tree.Root()
}

func TestSignerSignsTheLog(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	none, err := s.Sign(t.Context())
	require.NoError(t, err)
	require.Nil(t, none, "there is no tree yet")
	r.grown()
	none, err = s.Sign(t.Context())
	require.NoError(t, err)
	require.Nil(t, none, "the log is empty")
	first, c, by := r.grew(s, 300)
	require.Equal(t, tlog.Origin(r.store.ID()), c.Origin)
	require.EqualValues(t, 300, c.Size)
	require.EqualValues(t, 300, c.Position)
	require.Equal(t, r.root(300), c.Root)
	require.WithinDuration(t, time.Now(), c.At, time.Minute)
	require.Len(t, by, 1)
	none, err = s.Sign(t.Context())
	require.NoError(t, err)
	require.Nil(t, none, "the tree has not grown")
	_, c, _ = r.grew(s, 1)
	require.EqualValues(t, 301, c.Size)
	proof, err := tlog.Consistency(t.Context(), r.tree(), 300, 301)
	require.NoError(t, err)
	require.NoError(t, tlog.VerifyConsistency(300, 301, proof, tlog.Hash(first.Root), c.Root))
	require.NoError(t, s.Check(t.Context()))
}

func TestConcurrentNodesShareAKeyAndSignEachTreeOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	nodes := []*auditproj.Signer{r.node(), r.node(), r.node()}
	var starting sync.WaitGroup
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		starting.Go(func() { errs[i] = n.Ring.Ready(t.Context()) })
	}
	starting.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	keys, err := nodes[0].Ring.Public(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, keys.Len())

	ctx, stop := context.WithCancel(t.Context())
	runner, done := projections.NewRunner(r.store, r.pool, slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { done <- runner.Run(ctx, auditproj.Tree) }()
	var signing sync.WaitGroup
	for _, n := range nodes {
		signing.Go(func() {
			for ctx.Err() == nil {
				if _, err := n.Sign(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 40 {
		r.add(13)
	}
	require.Eventually(t, func() bool {
		c, err := nodes[0].Newest(t.Context())
		return err == nil && c != nil && c.Size == 40*13
	}, time.Minute, 5*time.Millisecond)
	stop()
	signing.Wait()
	require.NoError(t, <-done)
	rows, err := r.pool.Query(t.Context(), `select size, root, note from audit.checkpoint order by number`)
	require.NoError(t, err)
	defer rows.Close()
	last := uint64(0)
	for rows.Next() {
		var (
			size uint64
			root []byte
			note string
		)
		require.NoError(t, rows.Scan(&size, &root, &note))
		require.Greater(t, size, last)
		require.Equal(t, r.root(size), tlog.Hash(root))
		_, _, err := keys.Open([]byte(note))
		require.NoError(t, err)
		last = size
	}
	require.NoError(t, rows.Err())
	require.EqualValues(t, 40*13, last)
}

func TestFirstCheckpointAfterARotationHasBothSignatures(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 1)
	former, _, err := s.Ring.InUse(t.Context())
	require.NoError(t, err)
	next, err := s.Ring.Prepare(t.Context(), nil)
	require.NoError(t, err)
	_, _, by := r.grew(s, 1)
	require.Len(t, by, 1, "a prepared key signs nothing")
	r.tell(audit.KeyRotated{From: former.Public(), To: next, Reason: "yearly"})
	r.grown()
	_, _, by = r.signed(r.node())
	require.Len(t, by, 2)
	require.ElementsMatch(t, []string{idOf(former.Public()), idOf(next)}, []string{by[0].ID, by[1].ID})
	_, _, by = r.grew(s, 1)
	require.Len(t, by, 1)
	require.Contains(t, next, by[0].ID)
	var since, until int
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(since), count(until) from audit.key`).Scan(&since, &until))
	require.Equal(t, []int{2, 1}, []int{since, until})
	require.NoError(t, s.Check(t.Context()))
}

// idOf returns a public key's id.
func idOf(public string) string { return strings.Split(public, "+")[1] }

func TestGivenKeyIsNotInTheVaultAndMustBeTheOneInUse(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	seed := bytes.Repeat([]byte{7}, 32)
	s := r.node()
	s.Ring.Given = [][]byte{seed}
	require.NoError(t, s.Ring.Ready(t.Context()))
	_, _, by := r.grew(s, 3)
	private, err := auditproj.Private(tlog.Origin(r.store.ID()), seed)
	require.NoError(t, err)
	require.Contains(t, private.Public(), by[0].ID)
	named := pgtest.Value[int](t, r.pool, `select count(*) from vault.named where name like 'checkpoint%'`)
	require.Zero(t, named)

	without, other := r.node(), r.node()
	require.ErrorIs(t, without.Ring.Ready(t.Context()), auditproj.ErrNotGiven)
	other.Ring.Given = [][]byte{bytes.Repeat([]byte{8}, 32)}
	require.ErrorIs(t, other.Ring.Ready(t.Context()), auditproj.ErrNotGiven)

	next, err := s.Ring.Prepare(t.Context(), nil)
	require.NoError(t, err)
	r.tell(audit.KeyRotated{From: private.Public(), To: next, Reason: "to the vault"})
	r.grown()
	_, _, by = r.signed(s)
	require.Len(t, by, 2, "the node has both keys")
	require.ErrorContains(t, s.Ring.Ready(t.Context()), "remove the setting")
	require.NoError(t, without.Ring.Ready(t.Context()))
}

func TestStartDetectsAShortenedOrRewrittenLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil, want string
		rebuilt     bool
	}{
		"the tail is gone": {`delete from log.event where position > 8`,
			"it ends at position 8, so its newest events are lost", false},
		"all is gone":            {`delete from log.event`, "it ends at position 0", false},
		"the last event is gone": {`delete from log.event where position = 10`, "it ends at position 9", false},
		"one before the first": {`insert into log.event select 0, 1000, recorded_at, gen_random_uuid(), false, stream, type,
			data, meta from log.event where position = 4`, "There is an event at position 0, before the log's first (Noted in note-", false},
		"another last event": {`update log.event set id = '00000000-0000-4000-8000-000000000000' where position = 10`,
			"the event at position 10 is 00000000-0000-4000-8000-000000000000", false},
		"the last event's payload": {`update log.event set data = '{"n": 7}' where position = 10`,
			"the event at position 10 (Noted in note-", false},
		"the last event's time": {`update log.event set recorded_at = recorded_at - interval '1 microsecond' where position = 10`,
			"was changed since it was hashed", false},
		"an event before, and a new tree": {`update log.event set data = '{"n":7}' where position = 4`,
			"events before position 11 were rewritten", true},
		"one out of the middle, and a new log": {`delete from log.event where position = 4; update log.event set position = -position + 1
			where position > 4; update log.event set position = -position where position < 0`, "it ends at position 9", true},
		"the tree alone": {`update audit_g1.tile set hashes = substr(hashes, 33, 32) || substr(hashes, 1, 32) || substr(hashes, 65)
			where level = 0`, "events before position 11 were rewritten, or the tree's tables were", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newSignedLog(t, 10)
			require.NoError(t, s.Check(t.Context()))
			agreed, err := s.Reread(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 10, agreed)
			r.exec(c.spoil)
			if c.rebuilt {
				r.exec(`update projection.generation set position = 0, event_id = null`)
				r.exec(`truncate audit_g1.tree, audit_g1.tile`)
				build := r.build()
				build.How.Accept = true
				require.NoError(t, build.Run(t.Context()))
			}
			err = r.node().Check(t.Context())
			require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "bahi audit verify --store")
			require.ErrorContains(t, err, "bahi audit accept-restore")
			if name == "an event before, and a new tree" {
				r.add(1)
				r.grown()
				_, err := s.Sign(t.Context())
				require.ErrorAs(t, err, new(*auditproj.ErrRewritten), "nothing is signed either")
			}
		})
	}
}

// A signing node notices too, even if the tree still has the lost events and there is nothing new to sign.
func TestSignerReportsLostEventsAtOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	r.add(10)
	r.tell(audit.RestoreAccepted{Reason: "an earlier restore, which is lost too"})
	r.grown()
	r.signed(s)
	r.exec(`delete from log.event where position > 8`)
	for range 2 { // even after other events have those positions
		_, err := s.Sign(t.Context())
		require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
		require.ErrorContains(t, err, "bahi audit accept-restore")
		require.NotContains(t, err.Error(), "Nothing is served")
		r.reopened()
		r.add(7)
	}

	found, err := r.node().Recount(t.Context(), nil)
	require.NoError(t, err)
	r.tell(audit.RestoreAccepted{Kept: found.Kept, Newest: found.Newest, Abandoned: found.Broken, LastNumber: found.Last,
		Reason: "the replica was behind"})
	r.grown()
	_, c, _ := r.signed(s)
	require.EqualValues(t, len(r.leaves()), c.Size)
}

func TestACheckpointThatWasNotCommittedIsNotMissed(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 3)
	r.add(2)
	r.grown()
	r.exec(`create function refuse() returns trigger language plpgsql as 'begin raise exception ''the database went away''; end'`)
	r.exec(`create constraint trigger refuse after insert on audit.checkpoint deferrable initially deferred for each row execute function ` +
		`refuse()`)
	_, err := s.Sign(t.Context())
	require.ErrorContains(t, err, "the database went away")

	r.exec(`drop trigger refuse on audit.checkpoint`)
	signed, _, _ := r.signed(s)
	require.EqualValues(t, 5, signed.Size)
}

func TestSignerDetectsThatTheLastEventWasAppendedAgain(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 10)
	r.exec(`update log.event set recorded_at = recorded_at + interval '1 second' where position = 10`)
	_, err := s.Sign(t.Context())
	require.ErrorAs(t, err, new(*auditproj.ErrRewritten))
}

func TestRestoreIsAcceptedOnceAndRemainsVisible(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.ready()
	for _, n := range []int{5, 2, 3} {
		r.grew(s, n)
	}
	whole, err := s.Recount(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, whole.Broken)
	require.EqualValues(t, 10, whole.Kept.Size)
	kept := r.root(7)
	r.exec(`delete from log.event where position > 8`)
	restarted := r.reopened()
	found, err := restarted.Recount(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, audit.Tree{Size: 7, Root: kept[:]}, found.Kept)
	require.EqualValues(t, 1, found.Broken)
	require.EqualValues(t, 3, found.Last)
	r.tell(audit.RestoreAccepted{
		Kept: found.Kept, Newest: found.Newest, Abandoned: 1, LastNumber: found.Last, Reason: "the disk burnt",
	})
	require.NoError(t, restarted.Check(t.Context()))
	r.grown()
	_, c, _ := r.signed(restarted)
	require.EqualValues(t, 9, c.Size)
	_, c, _ = r.grew(restarted, 1)
	require.EqualValues(t, 10, c.Size, "a size may have an abandoned checkpoint and a valid one")
	list := pgtest.Value[string](t, r.pool, `select string_agg(size || coalesce('!' || abandoned, ''), ' ' order by number)
		from audit.checkpoint`)
	require.Equal(t, "5 7 10!9 9 10", list)
}

// reopened returns another process on the log as it is now.
func (r *fixture) reopened() *auditproj.Signer {
	r.t.Helper()
	r.store = logtest.Reopen(r.t, r.pool)
	return r.node()
}

// memoryBucket is a bucket in memory.
type memoryBucket struct {
	mu   sync.Mutex
	kept map[string]string
}

func (d *memoryBucket) Put(_ context.Context, key, _ string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[key] = string(data)
	return nil
}

func (d *memoryBucket) Get(_ context.Context, key string) ([]byte, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text, ok := d.kept[key]; ok {
		return []byte(text), "", nil
	}
	return nil, "", fs.ErrNotExist
}

func TestOutsideCopyRevealsLostEventsAndCheckpoints(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	bucket := &memoryBucket{kept: map[string]string{}}
	copies := &auditproj.Copies{Bucket: bucket, Where: "the safe", Origin: tlog.Origin(r.store.ID())}
	s := r.ready(copies)
	require.NoError(t, s.Check(t.Context()), "no copies exist yet")
	for range 2 {
		signed, _, _ := r.grew(s, 5)
		s.Publish(t.Context(), &signed)
	}
	require.Len(t, bucket.kept, 3, "each checkpoint, and the newest again")
	require.NoError(t, s.Check(t.Context()))
	// Restore the database to its state before the second checkpoint.
	r.exec(`delete from log.event where position > 5`)
	r.exec(`delete from audit.checkpoint where size > 5`)
	restarted := r.reopened()
	restarted.Out = s.Out
	err := restarted.Check(t.Context())
	require.ErrorContains(t, err, "The log is not the one that the newest checkpoint in the safe was signed for (10 events, up to position "+
		"10): it ends at position 5")
	found, err := restarted.Recount(t.Context(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, found.Broken)
	r.tell(audit.RestoreAccepted{
		Kept: found.Kept, Newest: found.Newest, Abandoned: 1, LastNumber: found.Last, Reason: "the disk burnt",
	})
	require.NoError(t, restarted.Check(t.Context()))
	r.grown()
	signed, c, _ := r.signed(restarted)
	require.EqualValues(t, 6, c.Size)
	restarted.Publish(t.Context(), &signed)
	require.NoError(t, restarted.Check(t.Context()))

	bucket.kept["bahi-"+r.store.ID().String()+"/newest"] = strings.Replace(signed.Note, "\n6\n", "\n60\n", 1)
	require.NoError(t, restarted.Check(t.Context()), "an unsigned copy means nothing")
}
