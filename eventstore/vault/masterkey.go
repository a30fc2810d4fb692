package vault

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/tink"
)

// keySize is the size of an AES-256 key, and the default of named keys.
const keySize = 32

// LoadOrMakeMasterKey returns the 32 bytes of the master key. They come from fromEnv in base64 (BAHI_MASTER_KEY) if it is not empty,
// otherwise from the file keys/master.key in the data folder, which it creates if missing. Concurrent processes on one folder return the
// same key.
func LoadOrMakeMasterKey(data, fromEnv string) ([]byte, error) {
	if fromEnv != "" {
		key, err := decodeKey(fromEnv)
		if err != nil {
			return nil, fmt.Errorf("BAHI_MASTER_KEY: %w", err)
		}
		return key, nil
	}
	path := filepath.Join(data, "keys", "master.key")
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, fmt.Errorf("create the master key: %w", err)
		}
		key, err = readKey(path)
	}
	return key, err
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): run chmod 600 on it, and consider who may have read it", path, mode)
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: in the data folder, which the operator names
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	key, err := decodeKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func decodeKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace([]byte(text))))
	if err != nil || len(key) != keySize { // the decoder's error would quote the key
		return nil, errors.New("expected 32 bytes in base64 (openssl rand -base64 32 generates one)")
	}
	return key, nil
}

// makeKey writes a new key to disk, whole or not at all. It keeps a key that another process wrote meanwhile.
func makeKey(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "master.key.*") // creates the file with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // already renamed or linked on success
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(newKey(keySize)))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(folder)
}

func syncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // G304: as in readKey
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func newKey(size int) []byte {
	key := make([]byte, size)
	_, _ = rand.Read(key) // never fails: it crashes the program instead
	return key
}

// MasterKeyID returns the id of a master key, which reveals nothing about the key. A vault and its exports store the id of their master
// key.
func MasterKeyID(key []byte) (string, error) {
	m, err := newMaster(key)
	if err != nil {
		return "", err
	}
	return m.id, nil
}

// master is a master key in use.
type master struct {
	id   string
	aead tink.AEAD
}

func newMaster(key []byte) (*master, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("the master key has %d bytes, not %d", len(key), keySize)
	}
	id, err := hkdf.Key(sha256.New, key, nil, "bahi master key id", 16)
	if err != nil {
		return nil, fmt.Errorf("derive the master key's id: %w", err)
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &master{id: hex.EncodeToString(id), aead: aead}, nil
}
