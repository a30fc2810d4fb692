package vault_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/vault"
)

func TestOnlyTheNewMasterKeyOpensAfterARotation(t *testing.T) {
	t.Parallel()
	url := database(t)
	v, left := node(t, url, master), node(t, url, master)
	p, erased := seal(t, v, "user-1", address), seal(t, v, "user-2", address)
	jwt, err := v.Named(t.Context(), "jwt", 32)
	require.NoError(t, err)
	require.NoError(t, v.Erase(t.Context(), "user-2"))
	require.NoError(t, v.Rotate(t.Context(), otherMaster))
	requireText(t, v, p, address)
	requireText(t, v, seal(t, v, "user-3", address), address)
	require.True(t, reveal(t, v, erased).Erased())

	_, err = vault.Open(t.Context(), connect(t, url), master, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	started := node(t, url, otherMaster)
	requireText(t, started, p, address)
	same, err := started.Named(t.Context(), "jwt", 32)
	require.NoError(t, err)
	require.Equal(t, jwt, same)

	// The node that was not restarted can change nothing.
	require.ErrorIs(t, left.OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed}), vault.ErrOtherMaster)
	_, err = event.MapSealed([]event.Personal{event.NewPersonal("user-4", address)}, sealer(t.Context(), left))
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	require.ErrorContains(t, err, "BAHI_MASTER_KEY")
	_, err = left.Named(t.Context(), "jwt", 32)
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	_, err = left.Named(t.Context(), "webhook", 32)
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	require.ErrorIs(t, left.Rotate(t.Context(), master), vault.ErrOtherMaster)
	require.NoError(t, left.Erase(t.Context(), "user-1"), "an erasure needs no key")
}

func TestRotationReachesAllKeys(t *testing.T) {
	t.Parallel()
	url := database(t)
	v := node(t, url, master)
	values := make([]event.Personal, 10_001) // one more than a rotation's chunk
	for i := range values {
		values[i] = event.NewPersonal(fmt.Sprintf("user-%d", i), address)
	}
	values, err := event.MapSealed(values, sealer(t.Context(), v))
	require.NoError(t, err)
	require.NoError(t, v.Rotate(t.Context(), otherMaster))
	_, err = event.MapSealed(values, func(fields []*event.Sealed) error {
		return node(t, url, otherMaster).OpenPersonal(t.Context(), fields)
	})
	require.NoError(t, err)
}

func TestFailedRotationChangesNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	v := node(t, url, master)
	p := seal(t, v, "user-1", address)
	seal(t, v, "user-2", address)
	_, err := connect(t, url).Exec(t.Context(), `update vault.key set wrapped = 'x' where subject = 'user-2'`)
	require.NoError(t, err)
	err = v.Rotate(t.Context(), otherMaster)
	require.ErrorIs(t, err, vault.ErrChanged)
	require.ErrorContains(t, err, "user-2")
	require.ErrorContains(t, v.Rotate(t.Context(), nil), "the master key has 0 bytes")
	requireText(t, v, p, address)
	requireText(t, node(t, url, master), p, address)
}

func TestRotationKeepsConcurrentSealsAndErasures(t *testing.T) {
	t.Parallel()
	url := database(t)
	rotating, busy := node(t, url, master), node(t, url, master)
	const subjects = 200
	for i := range subjects {
		seal(t, busy, fmt.Sprintf("old-%d", i), address)
	}
	sealed := make([]event.Personal, subjects)
	for i, err := range race(3, func(i int) error {
		switch i {
		case 0:
			return rotating.Rotate(t.Context(), otherMaster)
		case 1:
			for n := range sealed {
				out, err := event.MapSealed([]event.Personal{event.NewPersonal(fmt.Sprintf("new-%d", n), address)}, sealer(t.Context(), busy))
				if err != nil {
					return err
				}
				sealed[n] = out[0]
			}
		default:
			for n := range subjects {
				if err := busy.Erase(t.Context(), fmt.Sprintf("old-%d", n)); err != nil {
					return err
				}
			}
		}
		return nil
	}) {
		require.True(t, err == nil || i == 1 && errors.Is(err, vault.ErrOtherMaster), "%v", err)
	}
	started := node(t, url, otherMaster)
	for _, p := range sealed {
		if !p.IsZero() {
			requireText(t, started, p, address)
		}
	}
	erasures, err := started.Erasures(t.Context())
	require.NoError(t, err)
	require.Len(t, erasures, subjects)
}
