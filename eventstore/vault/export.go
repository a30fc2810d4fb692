package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Export is the whole vault, with its keys wrapped as stored. Without the master key it opens nothing. Still, store it apart from exports
// of the log: an erasure does not reach it.
type Export struct {
	MasterKeyID string          `json:"master_key_id"`
	Keys        []ExportedKey   `json:"keys"`
	Named       []ExportedNamed `json:"named"`
}

// ExportedKey is the data key of a subject, or the record that it was destroyed.
type ExportedKey struct {
	Subject     string     `json:"subject"`
	Version     int        `json:"version"`
	Wrapped     []byte     `json:"wrapped,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	DestroyedAt *time.Time `json:"destroyed_at,omitempty"`
}

// ExportedNamed is a named key.
type ExportedNamed struct {
	Name      string    `json:"name"`
	Wrapped   []byte    `json:"wrapped"`
	CreatedAt time.Time `json:"created_at"`
}

// ErrNotEmpty is the error of an import into a vault that has keys.
var ErrNotEmpty = errors.New("the vault has keys already")

// Export returns a snapshot of the vault.
func (v *Vault) Export(ctx context.Context) (Export, error) {
	var out Export
	err := pgx.BeginTxFunc(ctx, v.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select key_id from vault.master`).Scan(&out.MasterKeyID); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			select subject, key_version, wrapped, created_at, destroyed_at from vault.key order by subject, key_version`)
		var err error
		if out.Keys, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ExportedKey]); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, `select name, wrapped, created_at from vault.named order by name`)
		out.Named, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ExportedNamed])
		return err
	})
	if err != nil {
		return Export{}, fmt.Errorf("export the vault: %w", err)
	}
	return out, nil
}

// Import fills an empty vault, all or nothing. It fails with [ErrNotEmpty], with [ErrOtherMaster] if the keys are wrapped by another master
// key than this vault's, or with [ErrChanged].
func (v *Vault) Import(ctx context.Context, in Export) error {
	err := v.underMaster(ctx, func(tx pgx.Tx, m *master) error {
		if in.MasterKeyID != m.id {
			return fmt.Errorf("%w: the export's has the id %s, this one's %s", ErrOtherMaster, in.MasterKeyID, m.id)
		}
		if err := in.check(m); err != nil {
			return err
		}
		// No key is created between the check and the copy.
		if _, err := tx.Exec(ctx, `lock table vault.key, vault.named in exclusive mode`); err != nil {
			return err
		}
		var used bool
		err := tx.QueryRow(ctx, `select exists (select from vault.key) or exists (select from vault.named)`).Scan(&used)
		if err != nil {
			return err
		}
		if used {
			return ErrNotEmpty
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"vault", "key"},
			[]string{"subject", "key_version", "wrapped", "created_at", "destroyed_at"},
			pgx.CopyFromSlice(len(in.Keys), func(i int) ([]any, error) {
				k := in.Keys[i]
				return []any{k.Subject, k.Version, k.Wrapped, k.CreatedAt, k.DestroyedAt}, nil
			}))
		if err != nil {
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"vault", "named"}, []string{"name", "wrapped", "created_at"},
			pgx.CopyFromSlice(len(in.Named), func(i int) ([]any, error) {
				k := in.Named[i]
				return []any{k.Name, k.Wrapped, k.CreatedAt}, nil
			}))
		return err
	})
	if err != nil {
		return fmt.Errorf("import into the vault: %w", err)
	}
	return nil
}

// check opens every key.
func (e Export) check(m *master) error {
	for _, k := range e.Keys {
		if k.DestroyedAt != nil {
			continue
		}
		if _, err := m.aead.Decrypt(k.Wrapped, ofDataKey(k.Subject, k.Version)); err != nil {
			return fmt.Errorf("key of %s: %w", k.Subject, ErrChanged)
		}
	}
	for _, k := range e.Named {
		if _, err := m.aead.Decrypt(k.Wrapped, ofNamed(k.Name)); err != nil {
			return fmt.Errorf("key %s: %w", k.Name, ErrChanged)
		}
	}
	return nil
}
