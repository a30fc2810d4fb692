package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The errors of a vault.
var (
	// ErrOtherMaster reports that the node and the store have different master keys.
	ErrOtherMaster = errors.New("the master key is not the one of this store")
	// ErrNoKey reports a value whose key the vault does not have, for example after a restore without the vault.
	ErrNoKey = errors.New("the vault has neither the key of this value nor a record that it was destroyed")
	// ErrChanged reports a ciphertext that was changed or moved.
	ErrChanged = errors.New("the ciphertext was changed, or moved from another place")
)

// Vault keeps the keys of one store. Any number of nodes may open it.
type Vault struct {
	pool   *pgxpool.Pool
	log    *slog.Logger
	master *master
	named  sync.Map // name to []byte; a named key never changes

	reads joint // shared reads of keys
	makes joint
}

// Open opens the vault in the pool's migrated database. The first node's master key becomes the store's. Open fails with [ErrOtherMaster]
// for any other.
func Open(ctx context.Context, pool *pgxpool.Pool, masterKey []byte, log *slog.Logger) (*Vault, error) {
	m, err := newMaster(masterKey)
	if err != nil {
		return nil, fmt.Errorf("open the vault: %w", err)
	}
	v := &Vault{pool: pool, log: log, master: m}
	var first bool
	err = v.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into vault.master (key_id) values ($1) on conflict do nothing`, m.id)
		first = tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the vault: %w", err)
	}
	if first {
		log.InfoContext(ctx, "vault created; back up its master key, apart from the database", "master_key_id", m.id)
	}
	return v, v.checkMaster(ctx)
}

// checkMaster returns [ErrOtherMaster] with advice for the operator, or nil.
func (v *Vault) checkMaster(ctx context.Context) error {
	var id string
	if err := v.pool.QueryRow(ctx, `select key_id from vault.master`).Scan(&id); err != nil {
		return fmt.Errorf("read the vault's master key id: %w", err)
	}
	if mine := v.master.id; id != mine {
		return fmt.Errorf("%w: this store's has the id %s, this node's %s. Give the node the right one in BAHI_MASTER_KEY, "+
			"or as keys/master.key in its data folder; nothing but that key opens the store's secrets and personal values",
			ErrOtherMaster, id, mine)
	}
	return nil
}

// write runs do in a transaction. When it returns, the commit is on disk, whatever the pool's settings.
func (v *Vault) write(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, v.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = on`); err != nil {
			return err
		}
		return do(tx)
	})
}

// underMaster is write for new keys. It returns [ErrOtherMaster] if the store has another master key by now, as after a restore.
func (v *Vault) underMaster(ctx context.Context, do func(tx pgx.Tx, m *master) error) error {
	m := v.master
	err := v.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `select from vault.master where key_id = $1 for share`, m.id)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ErrOtherMaster
		}
		return do(tx, m)
	})
	if errors.Is(err, ErrOtherMaster) {
		return cmp.Or(v.checkMaster(ctx), err) // prefer the error with advice
	}
	return err
}

// unwrap opens a wrapped key with the node's master key.
func (v *Vault) unwrap(ctx context.Context, wrapped, of []byte) ([]byte, error) {
	key, err := v.master.aead.Decrypt(wrapped, of)
	if err == nil {
		return key, nil
	}
	if err := v.checkMaster(ctx); err != nil { // replaced while this node ran
		return nil, err
	}
	return nil, ErrChanged
}
