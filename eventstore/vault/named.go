package vault

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Named returns the key with that name, of size random bytes. The first call creates it for the whole store; concurrent nodes get the same
// key. A later call with another size fails. The caller MUST NOT change the bytes.
//
// The names in use: idempotency (keyed hashes of requests), jwt/<kid> (access and refresh tokens), email and
// identity (keyed hashes of unique values), mailed-token, blob-links, sign-in-flow, console (its cookies), web-chat,
// khata, checkpoint and checkpoint/<uuid> (sign the log), inbox (wraps keys of webhooks' bodies), inbox-keys (their keyed hashes),
// webhook/<endpoint> (the generated secret).
func (v *Vault) Named(ctx context.Context, name string, size int) ([]byte, error) {
	key, err := v.loadNamed(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := v.makeNamed(ctx, name, size); err != nil {
			return nil, fmt.Errorf("create key %s: %w", name, err)
		}
		key, err = v.loadNamed(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", name, err)
	}
	if len(key) != size {
		return nil, fmt.Errorf("key %s has %d bytes, not %d", name, len(key), size)
	}
	return key, nil
}

// Has reports whether the named key exists.
func (v *Vault) Has(ctx context.Context, name string) (bool, error) {
	_, err := v.loadNamed(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (v *Vault) loadNamed(ctx context.Context, name string) ([]byte, error) {
	if key, ok := v.named.Load(name); ok {
		return key.([]byte), nil //nolint:forcetypeassert // only byte slices are stored
	}
	var wrapped []byte
	if err := v.pool.QueryRow(ctx, `select wrapped from vault.named where name = $1`, name).Scan(&wrapped); err != nil {
		return nil, err
	}
	key, err := v.unwrap(ctx, wrapped, ofNamed(name))
	if err == nil {
		v.named.Store(name, key)
	}
	return key, err
}

// ForgetNamed drops the named keys from memory. Call it when the database may have lost its newest changes: other nodes have other keys of
// the same names then.
func (v *Vault) ForgetNamed() { v.named.Clear() }

// makeNamed inserts a key, unless it exists.
func (v *Vault) makeNamed(ctx context.Context, name string, size int) error {
	return v.underMaster(ctx, func(tx pgx.Tx, m *master) error {
		wrapped, err := m.aead.Encrypt(newKey(size), ofNamed(name))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into vault.named (name, wrapped) values ($1, $2) on conflict do nothing`, name, wrapped)
		return err
	})
}

// HMAC returns the HMAC-SHA256 of the parts under the named key of 32 bytes. Each part is preceded by its length, so no two lists of parts
// have the same bytes.
func (v *Vault) HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error) {
	key, err := v.Named(ctx, name, keySize)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil), nil
}
