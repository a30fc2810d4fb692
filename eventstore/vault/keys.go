package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// dataKeys has the keys of one subject, by version. A destroyed key is nil.
type dataKeys map[int]tink.AEAD

// newest returns the version to seal with, 0 if there is none, and reports whether its key still exists.
func (k dataKeys) newest() (version int, alive bool) {
	for v := range k {
		version = max(version, v)
	}
	return version, k[version] != nil
}

// read returns the current keys of the subjects from the database.
func (v *Vault) read(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	rows, _ := v.pool.Query(ctx, `select subject, key_version, wrapped from vault.key where subject = any($1)`, subjects)
	stored, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wrappedKey])
	if err != nil {
		return nil, fmt.Errorf("read data keys: %w", err)
	}
	found := make(map[string]dataKeys, len(subjects))
	for _, k := range stored {
		if found[k.Name] == nil {
			found[k.Name] = dataKeys{}
		}
		if k.Wrapped == nil {
			found[k.Name][k.Version] = nil
			continue
		}
		key, err := v.unwrap(ctx, k.Wrapped, k.of())
		if err != nil {
			return nil, fmt.Errorf("unwrap the key of %s: %w", k.Name, err)
		}
		if found[k.Name][k.Version], err = newAEAD(key); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readOrMake returns the keys of the subjects and creates missing ones. Of concurrent nodes one creates a key, and all
// read it.
func (v *Vault) readOrMake(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	found, err := v.read(ctx, subjects)
	if err != nil || len(found) == len(subjects) {
		return found, err
	}
	made, err := v.makeKeys(ctx, slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return found[s] != nil }))
	if err != nil {
		return nil, err
	}
	maps.Copy(found, made)
	return found, nil
}

// making is a transaction that makes keys for all who asked while the one before it ran: each costs a write to the disk.
type making struct {
	subjects []string
	ended    chan struct{} // is closed when the rest is set
	keys     map[string]dataKeys
	err      error
}

// makeWithin bounds a transaction, whose callers' own deadlines differ.
const makeWithin = 10 * time.Second

// makeKeys inserts a key for each subject without one, and returns the keys of all that were asked for at the same time.
func (v *Vault) makeKeys(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	v.joining.Lock()
	m, first := v.next, v.next == nil
	if first {
		m = &making{ended: make(chan struct{})}
		v.next = m
	}
	m.subjects = append(m.subjects, subjects...)
	v.joining.Unlock()
	if first {
		v.turn.Lock()
		v.joining.Lock()
		v.next = nil
		v.joining.Unlock()
		m.keys, m.err = v.makeAll(context.WithoutCancel(ctx), slices.Clone(m.subjects))
		v.turn.Unlock()
		close(m.ended)
	}
	select {
	case <-m.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m.err != nil && len(m.subjects) > len(subjects) { // another's subject may be why
		return v.makeAll(ctx, slices.Clone(subjects))
	}
	return m.keys, m.err
}

func (v *Vault) makeAll(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, makeWithin)
	defer cancel()
	slices.Sort(subjects) // one order on all nodes prevents deadlocks
	subjects = slices.Compact(subjects)
	err := v.underMaster(ctx, func(tx pgx.Tx, m *master) error {
		wrapped := make([][]byte, len(subjects))
		for i, s := range subjects {
			var err error
			if wrapped[i], err = m.aead.Encrypt(newKey(keySize), ofDataKey(s, 1)); err != nil {
				return fmt.Errorf("wrap the key of %s: %w", s, err)
			}
		}
		_, err := tx.Exec(ctx, `
			insert into vault.key (subject, key_version, wrapped)
			select subject, 1, wrapped from unnest($1::text[], $2::bytea[]) n (subject, wrapped)
			on conflict do nothing`, subjects, wrapped)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make data keys: %w", err)
	}
	return v.read(ctx, subjects)
}
