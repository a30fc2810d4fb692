package vault_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/vault"
	"bahi/internal/test/pgtest"
)

// A restore may replace the vault's tables under a running node.
func TestARunningNodeDoesNothingUnderAnotherMasterKey(t *testing.T) {
	t.Parallel()
	url := database(t)
	v := node(t, url, master)
	p := seal(t, v, "user-1", address)
	pgtest.Exec(t, connect(t, url), `update vault.master set key_id = 'another'; update vault.key set wrapped = 'x'`)
	require.ErrorIs(t, v.OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed}), vault.ErrOtherMaster)
	_, err := event.MapSealed([]event.Personal{event.NewPersonal("user-2", address)}, sealer(t.Context(), v))
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	require.ErrorContains(t, err, "BAHI_MASTER_KEY")
	_, err = v.Named(t.Context(), "webhook", 32)
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	require.NoError(t, v.Erase(t.Context(), "user-1"), "an erasure needs no key")
}

func TestMasterKeyIsCreatedOnceForItsOwner(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	got := make([][]byte, 16)
	for _, err := range race(len(got), func(i int) (err error) {
		got[i], err = vault.LoadOrMakeMasterKey(data, "")
		return err
	}) {
		require.NoError(t, err)
	}
	for _, key := range got {
		require.Len(t, key, 32)
		require.Equal(t, got[0], key)
	}
	files, err := os.ReadDir(filepath.Join(data, "keys"))
	require.NoError(t, err)
	require.Len(t, files, 1, "a temporary file remains")
	info, err := os.Stat(filepath.Join(data, "keys", "master.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	folder, err := os.Stat(filepath.Join(data, "keys"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
	other, err := vault.LoadOrMakeMasterKey(t.TempDir(), "")
	require.NoError(t, err)
	require.NotEqual(t, got[0], other)
}

func TestMasterKeyFromTheEnvironmentWins(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	key, err := vault.LoadOrMakeMasterKey(data, base64.StdEncoding.EncodeToString(otherMaster)+"\n")
	require.NoError(t, err)
	require.Equal(t, otherMaster, key)
	files, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, files)

	for _, wrong := range []string{"short", "c2hvcnQ=", "not base64 at all, but a secret nonetheless"} {
		_, err := vault.LoadOrMakeMasterKey(data, wrong)
		require.EqualError(t, err, "BAHI_MASTER_KEY: expected 32 bytes in base64 (openssl rand -base64 32 generates one)")
	}
}

func TestInvalidMasterKeyFileIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path := filepath.Join(data, "keys", "master.key")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("torn"), 0o600))
	_, err := vault.LoadOrMakeMasterKey(data, "")
	require.ErrorContains(t, err, "master.key: expected 32 bytes in base64")
	require.NoError(t, os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(master)), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = vault.LoadOrMakeMasterKey(data, "")
	require.ErrorContains(t, err, "can be read by others (mode 0640): run chmod 600 on it")
	require.NoError(t, os.Chmod(path, 0o400))
	key, err := vault.LoadOrMakeMasterKey(data, "")
	require.NoError(t, err)
	require.Equal(t, master, key)

	unfit := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(unfit, nil, 0o600))
	_, err = vault.LoadOrMakeMasterKey(unfit, "")
	require.Error(t, err)
}

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

func TestEnclosedBytesOpenForTheirPurposeOnly(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	plain := []byte("payal 250 gm")
	enclosed, err := v.SealBytes(t.Context(), "inbox", "call 1", plain)
	require.NoError(t, err)
	require.NotContains(t, string(enclosed), "payal")
	again, err := v.SealBytes(t.Context(), "inbox", "call 1", plain)
	require.NoError(t, err)
	require.NotEqual(t, enclosed, again, "each sealed text has its own key")

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
