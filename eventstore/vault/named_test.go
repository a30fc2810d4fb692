package vault_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/vault"
)

func TestConcurrentNodesGetTheSameNamedKey(t *testing.T) {
	t.Parallel()
	url := database(t)
	nodes := []*vault.Vault{node(t, url, master), node(t, url, master), node(t, url, master)}
	got := make([][]byte, 24)
	for _, err := range race(len(got), func(i int) (err error) {
		got[i], err = nodes[i%len(nodes)].Named(t.Context(), "jwt", 64)
		return err
	}) {
		require.NoError(t, err)
	}
	for _, key := range got {
		require.Len(t, key, 64)
		require.Equal(t, got[0], key)
	}
	other, err := nodes[0].Named(t.Context(), "checkpoint", 64)
	require.NoError(t, err)
	require.NotEqual(t, got[0], other)
	_, err = nodes[1].Named(t.Context(), "jwt", 32)
	require.EqualError(t, err, "key jwt has 64 bytes, not 32")
}

func TestHMACIsTheSameOnAllNodesOfOneStore(t *testing.T) {
	t.Parallel()
	url := database(t)
	one, two, elsewhere := node(t, url, master), node(t, url, master), node(t, database(t), master)
	a, err := one.HMAC(t.Context(), "idempotency", []byte("scope"), []byte(address))
	require.NoError(t, err)
	b, err := two.HMAC(t.Context(), "idempotency", []byte("scope"), []byte(address))
	require.NoError(t, err)
	require.Equal(t, a, b)
	for _, v := range []*vault.Vault{elsewhere, one} {
		name := map[bool]string{true: "email", false: "idempotency"}[v == one]
		c, err := v.HMAC(t.Context(), name, []byte("scope"), []byte(address))
		require.NoError(t, err)
		require.NotEqual(t, a, c)
	}
	key, err := one.Named(t.Context(), "idempotency", 32)
	require.NoError(t, err)
	h := hmac.New(sha256.New, key)
	h.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x05scope\x00\x00\x00\x00\x00\x00\x00\x10" + address))
	require.Equal(t, h.Sum(nil), a)
}
