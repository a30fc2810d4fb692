package credentials

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"bahi/eventstore/vault"
)

// Fresh is the time for which a node trusts its last read of a session or of the signing keys.
const Fresh = 2 * time.Second

// keySize is the size of HS256's hashes; RFC 7518, section 3.2, demands at least that.
const keySize = 32

// readPatience is the timeout of a read that several requests share. The end of one request does not end the read.
const readPatience = 10 * time.Second

// Keys are the signing keys of tokens. All nodes on one database share them.
type Keys struct {
	db    db
	vault *vault.Vault
	now   func() time.Time
	reads singleflight.Group

	mu      sync.Mutex
	known   *keyRing
	changes int // counts changes by this node; discards a concurrent read
}

// keyRing has the keys that were read at one time.
type keyRing struct {
	at     time.Time
	newest signingKey
	all    map[uuid.UUID]signingKey
}

type signingKey struct {
	kid           uuid.UUID
	verifiesUntil *time.Time
	secret        []byte
}

// Rotate creates a new key for signing. Tokens of older keys stay valid for the overlap. With an overlap of [RefreshLifetime] no user is
// affected. With 0, as after a theft of keys, all users must sign in again. The other nodes use the new key after at most [Fresh].
func (k *Keys) Rotate(ctx context.Context, overlap time.Duration) error {
	if err := k.add(ctx, func(tx pgx.Tx) (bool, error) {
		_, err := tx.Exec(ctx, `update account.signing_key set verifies_until = least(verifies_until, $1)`, k.now().Add(overlap))
		return true, err
	}); err != nil {
		return fmt.Errorf("rotate the signing keys: %w", err)
	}
	return nil
}

// first creates a key if there is no signing key.
func (k *Keys) first(ctx context.Context) error {
	return k.add(ctx, func(tx pgx.Tx) (bool, error) {
		var none bool
		err := tx.QueryRow(ctx, `select not exists (select from account.signing_key where verifies_until is null)`).Scan(&none)
		return none, err
	})
}

// add creates a key if wanted returns true. A lock makes all nodes agree on the result.
func (k *Keys) add(ctx context.Context, wanted func(tx pgx.Tx) (bool, error)) error {
	kid := uuid.New()
	// The vault stores the key before the table has the row, so a node that reads the row can read the key. An unused key in the vault is
	// harmless.
	if _, err := k.vault.Named(ctx, keyName(kid), keySize); err != nil {
		return err
	}
	err := k.db.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table account.signing_key in share row exclusive mode`); err != nil {
			return err
		}
		if ok, err := wanted(tx); err != nil || !ok {
			return err
		}
		_, err := tx.Exec(ctx, `insert into account.signing_key (kid, made_at) values ($1, $2)`, kid, k.now())
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
	k.changes++
	return err
}

func keyName(kid uuid.UUID) string { return "jwt/" + kid.String() }

// signing returns the key to sign with.
func (k *Keys) signing(ctx context.Context) (signingKey, error) {
	ring, err := k.ring(ctx)
	if err != nil {
		return signingKey{}, err
	}
	return ring.newest, nil
}

// errNoKey is the error of a kid that is unknown or no longer accepted.
var errNoKey = errors.New("no such key")

// verifying returns the key of a kid, or errNoKey.
func (k *Keys) verifying(ctx context.Context, kid uuid.UUID) (signingKey, error) {
	ring, err := k.ring(ctx)
	if err != nil {
		return signingKey{}, err
	}
	// Another node may have just created the key. A read may be shared with an earlier caller, but the second of two begins after this
	// call.
	for range 2 {
		if _, ok := ring.all[kid]; ok {
			break
		}
		if ring, err = k.read(ctx); err != nil {
			return signingKey{}, err
		}
	}
	key, ok := ring.all[kid]
	if !ok || key.verifiesUntil != nil && !k.now().Before(*key.verifiesUntil) {
		return signingKey{}, errNoKey
	}
	return key, nil
}

func (k *Keys) ring(ctx context.Context) (*keyRing, error) {
	k.mu.Lock()
	ring := k.known
	k.mu.Unlock()
	if ring != nil && fresh(ring.at, k.now()) {
		return ring, nil
	}
	return k.read(ctx)
}

// fresh reports whether a read at a time is still trusted. A clock that goes back does not prolong the trust.
func fresh(at, now time.Time) bool {
	age := now.Sub(at)
	return age >= 0 && age < Fresh
}

// read reads the keys, once for all concurrent callers, so that forged tokens do not cost a query each.
func (k *Keys) read(ctx context.Context) (*keyRing, error) {
	reading := k.reads.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience)
		defer cancel()
		ring, err := k.readStored(ctx)
		if err == nil && ring.newest.secret == nil {
			if err = k.first(ctx); err == nil {
				ring, err = k.readStored(ctx)
			}
		}
		return ring, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case done := <-reading:
		if done.Err != nil {
			return nil, fmt.Errorf("read the signing keys: %w", done.Err)
		}
		return done.Val.(*keyRing), nil //nolint:forcetypeassert // the function returns nothing else
	}
}

func (k *Keys) readStored(ctx context.Context) (*keyRing, error) {
	k.mu.Lock()
	changes := k.changes
	k.mu.Unlock()
	ring := &keyRing{at: k.now(), all: map[uuid.UUID]signingKey{}}
	rows, _ := k.db.pool.Query(ctx, `
		select kid, verifies_until from account.signing_key
		where verifies_until is null or verifies_until > $1 order by number`, ring.at)
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (key signingKey, err error) {
		return key, row.Scan(&key.kid, &key.verifiesUntil)
	})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if key.secret, err = k.vault.Named(ctx, keyName(key.kid), keySize); err != nil {
			return nil, err
		}
		ring.all[key.kid] = key
		if key.verifiesUntil == nil {
			ring.newest = key
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changes == changes && ring.newest.secret != nil {
		k.known = ring
	}
	return ring, nil
}
