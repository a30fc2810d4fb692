package vault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/vault"
	"bahi/internal/test/pgtest"
)

func TestErasedValuesAreGoneOnEveryNodeAtOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	one, two := node(t, url, master), node(t, url, master)
	asha, ravi := seal(t, one, "user-1", address), seal(t, one, "user-2", address)
	requireText(t, two, asha, address)
	require.NoError(t, one.Erase(t.Context(), "user-1"))

	gone := reveal(t, two, asha)
	require.True(t, gone.Erased())
	_, err := gone.Text()
	require.ErrorIs(t, err, event.ErrErased)
	_, err = two.OpenValue(t.Context(), asha.Sealed)
	require.ErrorIs(t, err, event.ErrErased)
	requireText(t, two, ravi, address)
	require.Equal(t, formOf(t, asha), formOf(t, gone), "the stored form changed")

	_, err = event.MapSealed([]event.Personal{event.NewPersonal("user-1", "again")}, sealer(t.Context(), two))
	require.ErrorIs(t, err, event.ErrErased)
}

func TestErasedSubjectNeverGetsAKeyAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	v, pool := node(t, url, master), connect(t, url)
	seal(t, v, "user-1", address)
	// A later version, as a change of data keys would create.
	pgtest.Exec(t, pool, `insert into vault.key (subject, key_version, wrapped) values ('user-1', 2, 'x')`)
	require.NoError(t, v.Erase(t.Context(), "user-1"))
	require.NoError(t, v.Erase(t.Context(), "user-2"), "the subject has no key yet")
	for _, subject := range []string{"user-1", "user-2"} {
		_, err := event.MapSealed([]event.Personal{event.NewPersonal(subject, address)}, sealer(t.Context(), v))
		require.ErrorIs(t, err, event.ErrErased)
	}
	left := pgtest.Value[int](t, pool, `select count(*) from vault.key where wrapped is not null or destroyed_at is null`)
	require.Zero(t, left)
}

func TestErasingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	seal(t, v, "user-1", address)
	require.NoError(t, v.Erase(t.Context(), "user-1"))
	first, err := v.Erasures(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 1)
	require.Equal(t, "user-1", first[0].Subject)
	require.WithinDuration(t, time.Now(), first[0].At, time.Minute)
	require.NoError(t, v.Erase(t.Context(), "user-1"))
	changed, err := v.ApplyErasures(t.Context(), []vault.Erasure{{"user-1", time.Now()}, {"user-1", time.Now()}})
	require.NoError(t, err)
	require.Zero(t, changed)
	again, err := v.Erasures(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)
}

func TestErasureReachesValuesSealedAtTheSameTime(t *testing.T) {
	t.Parallel()
	url := database(t)
	one, two := node(t, url, master), node(t, url, master)
	for n := range 10 {
		subject := fmt.Sprintf("user-%d", n)
		sealed := make([]event.Personal, 6)
		for i, err := range race(len(sealed)+1, func(i int) error {
			if i == len(sealed) {
				return one.Erase(t.Context(), subject)
			}
			out, err := event.MapSealed([]event.Personal{event.NewPersonal(subject, address)}, sealer(t.Context(), two))
			if err == nil {
				sealed[i] = out[0]
			}
			return err
		}) {
			require.True(t, err == nil || i < len(sealed) && errors.Is(err, event.ErrErased), "%v", err)
		}
		for _, p := range sealed {
			require.True(t, p.IsZero() || reveal(t, two, p).Erased())
		}
	}
}

func TestErasuresAreAppliedToARestoredBackup(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	erasedBefore, erasedSince, kept := seal(t, v, "user-1", address), seal(t, v, "user-2", address), seal(t, v, "user-3", address)
	jwt, err := v.Named(t.Context(), "jwt", 64)
	require.NoError(t, err)
	require.NoError(t, v.Erase(t.Context(), "user-1"))
	backup, err := v.Export(t.Context())
	require.NoError(t, err)
	require.NoError(t, v.Erase(t.Context(), "user-2"))
	erasures, err := v.Erasures(t.Context())
	require.NoError(t, err)

	restored := node(t, database(t), master)
	require.NoError(t, restored.Import(t.Context(), backup))
	require.True(t, reveal(t, restored, erasedBefore).Erased())
	requireText(t, restored, erasedSince, address)
	changed, err := restored.ApplyErasures(t.Context(), erasures)
	require.NoError(t, err)
	require.Equal(t, 1, changed)
	require.True(t, reveal(t, restored, erasedSince).Erased())
	requireText(t, restored, kept, address)
	same, err := restored.Named(t.Context(), "jwt", 64)
	require.NoError(t, err)
	require.Equal(t, jwt, same)
	list, err := restored.Erasures(t.Context())
	require.NoError(t, err)
	require.Equal(t, erasures, list, "with the times of the first erasure")
}

func TestFailedImportChangesNothing(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	seal(t, v, "user-1", address)
	_, err := v.Named(t.Context(), "jwt", 32)
	require.NoError(t, err)
	backup, err := v.Export(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, v.Import(t.Context(), backup), vault.ErrNotEmpty)
	require.ErrorIs(t, node(t, database(t), otherMaster).Import(t.Context(), backup), vault.ErrOtherMaster)

	empty := node(t, database(t), master)
	for _, spoil := range []func(*vault.Export){
		func(e *vault.Export) { e.Keys = []vault.ExportedKey{e.Keys[0]}; e.Keys[0].Subject = "user-2" },
		func(e *vault.Export) { e.Named = []vault.ExportedNamed{e.Named[0]}; e.Named[0].Name = "other" },
	} {
		spoiled := backup
		spoil(&spoiled)
		require.ErrorIs(t, empty.Import(t.Context(), spoiled), vault.ErrChanged)
	}
	require.NoError(t, empty.Import(t.Context(), backup), "the failed import left something behind")
}
