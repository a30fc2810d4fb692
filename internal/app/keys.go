package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/vault"
)

// MasterKeyNamed returns the node's master key, which must have this id. It creates none.
func (s Settings) MasterKeyNamed(id string) (text string, err error) {
	file := filepath.Join(s.Data, "keys", "master.key")
	if s.MasterKey == "" {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w: give the one with the id %s in BAHI_MASTER_KEY, or as %s", ErrNoMasterKey, id, file)
		}
	}
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return "", err
	}
	mine, err := vault.MasterKeyID(key)
	if err != nil {
		return "", err
	}
	if mine != id {
		return "", fmt.Errorf("%w: the id must be %s (in BAHI_MASTER_KEY or as %s), and it is %s",
			ErrOtherMasterKey, id, file, mine)
	}
	return base64.StdEncoding.EncodeToString(key), nil
}

var (
	ErrNoMasterKey    = errors.New("there is no master key")
	ErrOtherMasterKey = errors.New("this is another master key")
)

// OpenVault opens the vault of a database.
func (s Settings) OpenVault(ctx context.Context, pool *pgxpool.Pool) (*vault.Vault, error) {
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return nil, err
	}
	return vault.Open(ctx, pool, key, s.Logger(false))
}
