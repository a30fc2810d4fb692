package auditview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/tlog"
	"bahi/eventstore/vault"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/projections"
	"bahi/projections/auditproj"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
	"bahi/readmodels/opsview"
)

type fixture struct {
	t      *testing.T
	pool   *pgxpool.Pool
	store  *postgres.Store
	vault  *vault.Vault
	signer *auditproj.Signer
	proofs *auditview.Proofs
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, store := logtest.Open(t)
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	tree := &auditview.Tree{Reader: readmodels.NewReader(logtest.Snapshots(t, pool), map[string]int{"audit": auditproj.Tree.Version}, nil)}
	r := &fixture{t: t, pool: pool, store: store, vault: v, proofs: &auditview.Proofs{Tree: tree, DB: pool, Log: whole{store}}}
	r.signer = &auditproj.Signer{
		DB: pool, Store: store, Tables: tree, Now: time.Now, Log: log, Ring: &auditproj.Ring{DB: pool, Vault: v, Store: store, Now: time.Now},
	}
	require.NoError(t, r.signer.Ring.Ready(t.Context()))
	return r
}

// whole adapts a store to the views' Log.
type whole struct{ eventstore.Store }

func (l whole) At(ctx context.Context, at event.Position) (event.Stored, bool, error) {
	for e, err := range l.ReadAll(ctx, at+1, eventstore.Backwards) {
		return e, err == nil && e.Position == at, err
	}
	return event.Stored{}, false, nil
}

func (l whole) Stream(ctx context.Context, stream string, from int64) iter.Seq2[event.Stored, error] {
	return l.ReadStream(ctx, stream, from, eventstore.Forwards)
}

// add appends an event.
func (r *fixture) add(stream, data string, meta event.Meta) event.Position {
	r.t.Helper()
	text, err := json.Marshal(meta)
	require.NoError(r.t, err)
	done, err := r.store.Append(r.t.Context(),
		eventstore.To(stream, eventstore.Any, event.Proposed{ID: uuid.New(), Type: "Noted", Data: []byte(data), Meta: text}))
	require.NoError(r.t, err)
	return done.Position
}

func (r *fixture) many(n int) {
	r.t.Helper()
	events := make([]event.Proposed, n)
	for i := range events {
		events[i] = event.Proposed{ID: uuid.New(), Type: "Noted", Data: fmt.Appendf(nil, `{"n":%d}`, i), Meta: []byte(`{"schema":1}`)}
	}
	_, err := r.store.Append(r.t.Context(), eventstore.To("note-"+uuid.NewString(), eventstore.NoStream, events...))
	require.NoError(r.t, err)
}

// signed builds the projection of the tree and signs a checkpoint.
func (r *fixture) signed() {
	r.t.Helper()
	require.NoError(r.t, projections.Build{
		Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: auditproj.Tree, Log: slog.New(slog.DiscardHandler),
	}.Run(r.t.Context()))
	c, err := r.signer.Sign(r.t.Context())
	require.NoError(r.t, err)
	require.NotNil(r.t, c)
}

func hashes(texts [][]byte) []tlog.Hash {
	all := make([]tlog.Hash, len(texts))
	for i := range texts {
		all[i] = tlog.Hash(texts[i])
	}
	return all
}

func TestProofsOfEverySizeVerify(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for _, n := range []int{3, 300, 500} {
		r.many(n)
		r.signed()
	}
	leaves := make([]tlog.Hash, 0, 803)
	for e, err := range r.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		leaves = append(leaves, tlog.LeafHash(e))
	}
	roots := make([]tlog.Hash, len(leaves)+1)
	var tree tlog.Tree
	roots[0] = tree.Root()
	for i, leaf := range leaves {
		tree.Append(leaf)
		roots[i+1] = tree.Root()
	}
	keys, err := r.signer.Ring.Public(t.Context())
	require.NoError(t, err)
	rapid.Check(t, func(p *rapid.T) {
		ctx := context.Background()
		size := rapid.Uint64Range(1, 803).Draw(p, "size")
		at := event.Position(rapid.Uint64Range(1, size).Draw(p, "position"))
		inclusion, err := r.proofs.Inclusion(ctx, at, &size)
		require.NoError(p, err)
		require.Equal(p, leaves[at-1][:], inclusion.Leaf)
		require.Equal(p, roots[size][:], inclusion.Root)
		require.NoError(p, tlog.VerifyInclusion(leaves[at-1], inclusion.Index, size, hashes(inclusion.Hashes), roots[size]))
		require.Equal(p, size == 3 || size == 303 || size == 803, inclusion.Checkpoint != "")
		from := rapid.Uint64Range(0, size).Draw(p, "from")
		consistency, err := r.proofs.Consistency(ctx, from, size)
		require.NoError(p, err)
		require.Equal(p, roots[from][:], consistency.RootFrom)
		require.NoError(p, tlog.VerifyConsistency(from, size, hashes(consistency.Hashes), roots[from], roots[size]))
		signed := rapid.SampledFrom([]uint64{3, 303, 803}).Draw(p, "signed")
		file, err := r.proofs.File(ctx, &signed, at)
		if uint64(at) > signed {
			require.ErrorContains(p, err, fmt.Sprintf("position: is not in a tree of %d events", signed))
			return
		}
		require.NoError(p, err)
		read, err := tlog.ParseProofs(file)
		require.NoError(p, err)
		c, _, err := keys.Verify(read[0])
		require.NoError(p, err)
		require.Equal(p, signed, c.Size)
		require.Equal(p, at, read[0].Event.Position)
	})
}

func TestProofOutsideTheTreeIsRefused(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	_, err := r.proofs.Newest(t.Context())
	require.ErrorIs(t, err, auditview.ErrNoCheckpoint)
	_, err = r.proofs.Inclusion(t.Context(), 1, nil)
	require.ErrorIs(t, err, auditview.ErrNoCheckpoint)
	_, err = r.proofs.Consistency(t.Context(), 0, 1)
	require.ErrorIs(t, err, auditview.ErrNoCheckpoint)
	_, err = r.proofs.File(t.Context(), nil, 1)
	require.ErrorIs(t, err, auditview.ErrNoCheckpoint)
	r.many(5)
	r.signed()
	for _, size := range []uint64{0, 6, 1 << 63} {
		_, err = r.proofs.Inclusion(t.Context(), 1, &size)
		require.ErrorContains(t, err, "size: must be from 1 to 5, the events of the tree")
		_, err = r.proofs.Consistency(t.Context(), 0, size)
		require.ErrorContains(t, err, "to: must be from 1 to 5, the events of the tree")
	}
	_, err = r.proofs.Consistency(t.Context(), 4, 3)
	require.ErrorContains(t, err, "from: must not be more than to")
	three, four := uint64(3), uint64(4)
	for _, at := range []event.Position{0, 4, 6} {
		_, err = r.proofs.Inclusion(t.Context(), at, &three)
		require.ErrorContains(t, err, "position: is not in a tree of 3 events")
	}
	_, err = r.proofs.File(t.Context(), &four, 1)
	require.ErrorContains(t, err, "size: must be the size of a signed checkpoint")
	five := uint64(5)
	for _, size := range []*uint64{nil, &five} {
		for _, at := range []event.Position{0, 6, 1 << 62} {
			_, err = r.proofs.File(t.Context(), size, at)
			require.ErrorContains(t, err, "position: is not in a tree of 5 events", "even after the next checkpoint")
		}
	}
	r.many(1)
	_, err = r.proofs.File(t.Context(), nil, 6)
	require.ErrorIs(t, err, auditview.ErrNotSigned)
	_, err = r.proofs.File(t.Context(), &five, 6)
	require.ErrorContains(t, err, "position: is not in a tree of 5 events")
	pgtest.Exec(t, r.pool, `update log.event set data = '{"n":9}' where position = 2; delete from log.event where position = 3`)
	for _, at := range []event.Position{2, 3} {
		_, err = r.proofs.Inclusion(t.Context(), at, nil)
		require.ErrorIs(t, err, auditview.ErrNotAsHashed)
		_, err = r.proofs.File(t.Context(), nil, at)
		require.ErrorIs(t, err, auditview.ErrNotAsHashed)
	}
}

func TestPersonalValuesAreClearOnlyInTheAskersWorkspace(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	mine, others := uuid.New(), uuid.New()
	seal := func(subject, value string) string {
		personal := event.NewPersonal(subject, value)
		require.NoError(t, r.vault.Seal(t.Context(), []*event.Sealed{&personal.Sealed}))
		out, err := json.Marshal(personal)
		require.NoError(t, err)
		return string(out)
	}
	secret := event.NewSecret("channel-1", "token")
	require.NoError(t, r.vault.Seal(t.Context(), []*event.Sealed{&secret.Sealed}))
	sealed, err := json.Marshal(secret)
	require.NoError(t, err)
	data := `{"z":1.50,"name":` + seal("user-1", `Asha "A"`) + `,"list":[` + seal("user-2",
		"Ravi") + `,{"secret":` + string(sealed) + `}],"none":null}`
	for _, workspace := range []uuid.UUID{mine, others} {
		r.add("note-1", data, event.Meta{Schema: 1, Workspace: workspace, Actor: "user:1"})
	}
	_, err = r.store.Append(t.Context(),
		eventstore.To("note-2", eventstore.Any,
			event.Proposed{ID: uuid.New(), Type: "Foreign", Data: []byte(`{}`), Meta: []byte(`{"schema":1}`)}))
	require.NoError(t, err)
	require.NoError(t, r.vault.Erase(t.Context(), "user-2"))
	v := &auditview.Events{Log: whole{r.store}, Search: &opsview.Events{DB: r.pool}, Reveal: r.vault.OpenPersonal}
	page, err := v.Page(t.Context(), mine, opsview.Filter{}, 10)
	require.NoError(t, err)
	require.Len(t, page.Events, 3)
	require.Equal(t, `{"z":1.50,"name":"Asha \"A\"","list":[{"erased":true},{"secret":`+string(sealed)+`}],"none":null}`,
		string(page.Events[0].Data))
	require.Equal(t, data, string(page.Events[1].Data), "another workspace's stays sealed")
	for e, err := range r.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		leaf := tlog.LeafHash(e)
		require.Equal(t, leaf[:], page.Events[e.Position-1].Leaf)
		require.Equal(t, page.Events[e.Position-1], v.Show(t.Context(), mine, e))
		for _, f := range []opsview.Filter{{}, {Stream: "note-1"}, {Category: "note"}, {Category: "no"}, {Type: "Foreign"}, {Actor: "user:1"},
			{Workspace: &mine}} {
			f.After, f.Before = e.Position-1, e.Position+1
			found, err := v.Page(t.Context(), mine, f, 1)
			require.NoError(t, err)
			require.Equal(t, len(found.Events) == 1, f.Matches(e), "%+v", f)
		}
	}
}

func TestNotesThinsCheckpointsAndKeepsTheNewest(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for i := range 10 {
		pgtest.Exec(t, r.pool, `insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note, abandoned)
			values ($1, $1, '', $1, gen_random_uuid(), now(), $1::bigint::text, case when $1 = 3 then 5 end)`, i+1)
	}
	notes, all, err := r.proofs.Notes(t.Context(), 9)
	require.NoError(t, err)
	require.True(t, all)
	require.Equal(t, "1 2 4 5 6 7 8 9 10", string(bytes.Join(notes, []byte(" "))))
	notes, all, err = r.proofs.Notes(t.Context(), 4)
	require.NoError(t, err)
	require.False(t, all)
	require.Equal(t, "2 4 6 8 10", string(bytes.Join(notes, []byte(" "))))
	notes, _, err = r.proofs.Notes(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, "4 8 10", string(bytes.Join(notes, []byte(" "))))
}

func TestDailyReturnsTheLastCheckpointOfEachDayAndRotations(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for i, c := range []struct{ at, note string }{
		{"2026-11-20 22:00+00", "first"}, {"2026-11-20 23:59:59.9+00", "last of the 20th"}, {"2026-11-21 00:00+00", "next"},
		{"2026-11-21 09:00+00", "log\n9\nroot\n\n— bahi/1 old\n— bahi/1 new\n"},
		{"2026-11-21 10:00+00", "log\n10\nroot\n\n— bahi/1 new\n— witness x\n"},
		{"2026-11-21 11:00+00", "last before 7"}, {"2026-11-21 12:00+00", "newest"},
	} {
		pgtest.Exec(t, r.pool, `insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note) values ($1,
			$1, '', $1, gen_random_uuid(), $2::text::timestamptz, $3)`,
			i+1, c.at, c.note)
	}
	daily := func(upTo event.Position) []string {
		notes, err := r.proofs.Daily(t.Context(), upTo)
		require.NoError(t, err)
		return notes
	}
	both := "log\n9\nroot\n\n— bahi/1 old\n— bahi/1 new\n"
	require.Equal(t, []string{"last of the 20th", both, "newest"}, daily(100))
	require.Equal(t, []string{"last of the 20th", both, "last before 7"}, daily(6), "the newest is the newest that the archive covers")
	pgtest.Exec(t, r.pool, `update audit.checkpoint set abandoned = 9 where size in (2, 7)`)
	require.Equal(t, []string{"first", both, "last before 7"}, daily(100))
	require.Empty(t, daily(0))
}

func TestLastOfEqualMetadataKeysNamesTheWorkspace(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	mine, theirs := uuid.New(), uuid.New()
	for _, meta := range []string{
		fmt.Sprintf(`{"workspace":%q}`, mine),
		fmt.Sprintf(`{"workspace":%q,"WORKSPACE":%q}`, mine, theirs), // Postgres reads the first, Go the last
	} {
		_, err := r.store.Append(t.Context(),
			eventstore.To("note-"+uuid.NewString(), eventstore.NoStream,
				event.Proposed{ID: uuid.New(), Type: "Noted", Data: []byte(`{}`), Meta: []byte(meta)}))
		require.NoError(t, err)
	}
	events := &auditview.Events{Log: whole{r.store}, Search: &opsview.Events{DB: r.pool}, Reveal: r.vault.OpenPersonal}
	page, err := events.Page(t.Context(), mine, opsview.Filter{Workspace: &mine, Type: "Noted"}, 10)
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
}

// A statement must not read the rows and events of other accounts.
func TestEventsOfAStatementAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	require.NoError(t, projections.Build{
		Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: ledgerproj.Books, Log: slog.New(slog.DiscardHandler),
	}.Run(t.Context()))
	tx, err := r.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	pgtest.Exec(t, tx, `set local enable_seqscan = off`)
	sql := strings.ReplaceAll(auditview.EventsOfAccount, "books.", projections.SchemaName("books", 1)+".")
	plan := pgtest.Values[string](t, tx, `explain `+sql, 1, 1)
	require.NotContains(t, strings.Join(plan, "\n"), "Seq Scan")
	require.Contains(t, strings.Join(plan, "\n"), "event_stream_revision_idx")
}
