package vault_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/vault"
)

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
