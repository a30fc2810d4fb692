package vault

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// rewrapChunk is the number of keys that a rotation holds in memory.
const rewrapChunk = 10_000

// Rotate wraps all keys with another master key, or none of them. This node then uses the new master key; other nodes fail with
// [ErrOtherMaster] until they restart with it. The caller MUST have stored the new key safely before: after the commit, the old one opens
// nothing.
func (v *Vault) Rotate(ctx context.Context, newMasterKey []byte) error {
	next, err := newMaster(newMasterKey)
	if err != nil {
		return fmt.Errorf("rotate the master key: %w", err)
	}
	if err := v.checkMaster(ctx); err != nil {
		return fmt.Errorf("rotate the master key: %w", err)
	}
	keys := 0
	err = v.write(ctx, func(tx pgx.Tx) error {
		// This lock blocks the creation of keys: see underMaster.
		tag, err := tx.Exec(ctx, `update vault.master set key_id = $2, since = now() where key_id = $1`, v.master.Load().id, next.id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrOtherMaster
		}
		keys, err = v.rewrapAll(ctx, tx, next)
		return err
	})
	if err != nil {
		return fmt.Errorf("rotate the master key: %w", err)
	}
	v.master.Store(next)
	v.log.InfoContext(ctx, "master key rotated", "master_key_id", next.id, "keys", keys)
	return nil
}

// wrappedKeys lists the two tables with wrapped keys.
var wrappedKeys = []struct{ read, update string }{
	{
		`select subject, key_version, wrapped from vault.key
		where (subject, key_version) > ($1, $2) and wrapped is not null order by subject, key_version limit $3`,
		`update vault.key k set wrapped = n.wrapped from unnest($1::text[], $2::int[], $3::bytea[]) n (subject, key_version, wrapped)
		where k.subject = n.subject and k.key_version = n.key_version and k.wrapped is not null`, // it may have been erased meanwhile
	},
	{
		`select name, 0, wrapped from vault.named where (name, 0) > ($1, $2) order by name limit $3`,
		`update vault.named k set wrapped = n.wrapped from unnest($1::text[], $2::int[], $3::bytea[]) n (name, zero, wrapped)
		where k.name = n.name`,
	},
}

// wrappedKey is a row of one of these tables; a named key has version 0.
type wrappedKey struct {
	Name    string
	Version int
	Wrapped []byte
}

func (k wrappedKey) of() []byte {
	if k.Version == 0 {
		return ofNamed(k.Name)
	}
	return ofDataKey(k.Name, k.Version)
}

func (v *Vault) rewrapAll(ctx context.Context, tx pgx.Tx, next *master) (total int, err error) {
	for _, table := range wrappedKeys {
		for last := (wrappedKey{}); ; {
			rows, _ := tx.Query(ctx, table.read, last.Name, last.Version, rewrapChunk)
			keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wrappedKey])
			if err != nil {
				return total, err
			}
			if len(keys) == 0 {
				break
			}
			last = keys[len(keys)-1]
			total += len(keys)
			if err := rewrap(ctx, tx, v.master.Load(), next, keys, table.update); err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

func rewrap(ctx context.Context, tx pgx.Tx, from, to *master, keys []wrappedKey, update string) error {
	names, versions, wrapped := make([]string, len(keys)), make([]int, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		plain, err := from.aead.Decrypt(k.Wrapped, k.of())
		if err != nil {
			return fmt.Errorf("unwrap key %s: %w", k.Name, ErrChanged)
		}
		if wrapped[i], err = to.aead.Encrypt(plain, k.of()); err != nil {
			return fmt.Errorf("wrap key %s: %w", k.Name, err)
		}
		names[i], versions[i] = k.Name, k.Version
	}
	_, err := tx.Exec(ctx, update, names, versions, wrapped)
	return err
}
