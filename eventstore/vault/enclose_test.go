package vault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/vault"
)

func TestEnclosedBytesOpenForTheirPurposeOnly(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	plain := []byte("payal 250 gm")
	enclosed, err := v.SealBytes(t.Context(), "inbox", "call 1", plain)
	require.NoError(t, err)
	require.NotContains(t, string(enclosed), "payal")
	again, err := v.SealBytes(t.Context(), "inbox", "call 1", plain)
	require.NoError(t, err)
	require.NotEqual(t, enclosed, again, "each has a key of its own")

	back, err := v.OpenBytes(t.Context(), "inbox", "call 1", enclosed)
	require.NoError(t, err)
	require.Equal(t, plain, back)
	for _, other := range [][2]string{{"inbox", "call 2"}, {"other", "call 1"}} {
		_, err = v.OpenBytes(t.Context(), other[0], other[1], enclosed)
		require.ErrorIs(t, err, vault.ErrChanged)
	}
	for i := range enclosed {
		changed := append([]byte(nil), enclosed...)
		changed[i] ^= 1
		_, err = v.OpenBytes(t.Context(), "inbox", "call 1", changed)
		require.ErrorIs(t, err, vault.ErrChanged)
	}
	_, err = v.OpenBytes(t.Context(), "inbox", "call 1", enclosed[:10])
	require.ErrorIs(t, err, vault.ErrChanged)
}
