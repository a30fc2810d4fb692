package auditproj

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
)

// Vault keeps private keys that all nodes share.
type Vault interface {
	// Named returns the key with a name, and creates it from random bytes if it is missing.
	Named(ctx context.Context, name string, size int) ([]byte, error)
}

// Ring has the keys that sign checkpoints. The private keys are in the vault or given in settings.
type Ring struct {
	DB    *pgxpool.Pool
	Vault Vault
	Store eventstore.Store
	Given [][]byte // Ed25519 seeds that replace keys in the vault
	Now   func() time.Time
}

// firstKey is the first key's name in the vault. Later names append a UUID.
const firstKey = "checkpoint"

// keysLock is the advisory lock for registering the first key.
const keysLock = 8241006

// key is a row of the table.
type key struct {
	Number    int
	Verifier  string
	VaultName *string
}

// Private returns the signing key of a log from an Ed25519 seed.
func Private(origin string, seed []byte) (tlog.Key, error) {
	if len(seed) != ed25519.SeedSize {
		return tlog.Key{}, fmt.Errorf("a signing key has %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	public, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	verifier, err := note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return tlog.Key{}, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(verifier, origin+"+"), "+")
	const ed25519Key = 1 // number of the algorithm in the signed-note format
	return tlog.ParseKey("PRIVATE+KEY+" + origin + "+" + id + "+" + base64.StdEncoding.EncodeToString(append([]byte{ed25519Key}, seed...)))
}

func (r *Ring) origin() string { return tlog.Origin(r.Store.ID()) }

// Ready creates the first key if there is none, and returns an error if a given key cannot be used. If the log names a key of another
// installation, Ready appends an event that makes this installation's key the signing key.
func (r *Ring) Ready(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, r.DB, func(tx pgx.Tx) error {
		var there bool
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, keysLock); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select exists (select from audit.key)`).Scan(&there); err != nil || there {
			return err
		}
		var (
			seed []byte
			name *string
			err  error
		)
		if len(r.Given) > 0 {
			seed = r.Given[0]
		} else {
			name = new(firstKey)
			if seed, err = r.Vault.Named(ctx, firstKey, ed25519.SeedSize); err != nil {
				return err
			}
		}
		private, err := Private(r.origin(), seed)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into audit.key (verifier, vault_name, made_at, since) values ($1, $2, $3, $3)`, private.Public(),
			name, r.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("create the signing key: %w", err)
	}
	if err := r.takeOver(ctx); err != nil {
		return fmt.Errorf("sign with a key of this installation: %w", err)
	}
	if err := r.Own(ctx); err != nil {
		return err
	}
	current, _, err := r.InUse(ctx)
	if err != nil || len(r.Given) == 0 {
		return err
	}
	given, err := Private(r.origin(), r.Given[0])
	if err != nil {
		return err
	}
	if given.Public() != current.Public() {
		return fmt.Errorf("BAHI_AUDIT_KEY is %s, but checkpoints are signed with %s: to change to it, run bahi audit rotate-key --new-key; "+
			"to continue as before, remove the setting or give the former key", given.Public(), current.Public())
	}
	return nil
}

// state folds the events about proofs. It returns the revision of the last one, -1 if there is none.
func state(ctx context.Context, store eventstore.Store) (s audit.State, revision int64, err error) {
	revision = -1
	for stored, err := range store.ReadStream(ctx, audit.Kind.Stream(audit.Log), 0, eventstore.Forwards) {
		if err != nil {
			return s, revision, err
		}
		e, err := audit.Kind.Decode(stored)
		if err != nil {
			return s, revision, err
		}
		s, revision = audit.Kind.Evolve(s, e), stored.Revision
	}
	return s, revision, nil
}

// Moved returns the former signing key if it is another log's. Then the database belongs to that log, and this log is a copy of it or a
// mistake.
func (r *Ring) Moved(ctx context.Context) (from string, moved bool, err error) {
	s, _, err := state(ctx, r.Store)
	if err != nil {
		return "", false, err
	}
	signs, err := r.find(ctx, `case when $1 = '' then since is not null else verifier = $1 end order by number limit 1`, s.Key)
	if errors.Is(err, errNoKey) { // no key was ever created
		return "", false, nil
	}
	return signs.Verifier, err == nil && !strings.HasPrefix(signs.Verifier, r.origin()+"+"), err
}

// Own returns [ErrRewritten] if the database belongs to another log.
func (r *Ring) Own(ctx context.Context) error {
	from, moved, err := r.Moved(ctx)
	if err != nil || !moved {
		return err
	}
	name, _, _ := strings.Cut(from, "+")
	return &ErrRewritten{Found: fmt.Sprintf("This database belongs to the log %s, but the configured log is %s: DATABASE_URL and "+
		"EVENTSTORE_URL do not match. "+
		"Nothing is served. If bahi events copy has moved the log here, continue with it, which is recorded: bahi audit accept-restore "+
		"--reason '…'; "+
		"then build the tables from it: bahi projections rebuild", name, r.origin())}
}

// whyTakenOver is the recorded reason if no operator gave one.
const whyTakenOver = "the log was imported, and the key that signed it before is not in this installation"

// takeOver appends an event that makes this installation's first key the signing key. It does so if the log was imported without the key
// that it names. A key that has signed here before cannot sign again.
func (r *Ring) takeOver(ctx context.Context) error {
	s, revision, err := state(ctx, r.Store)
	if err != nil || s.Key == "" {
		return err
	}
	var there bool
	if err := r.DB.QueryRow(ctx, `select exists (select from audit.key where verifier = $1)`, s.Key).Scan(&there); err != nil || there {
		return err
	}
	own, err := r.find(ctx, `since is not null order by number limit 1`)
	if err != nil {
		return err
	}
	decided, err := audit.RotateKey{From: s.Key, To: own.Verifier, Reason: whyTakenOver}.Decide(s)
	if err != nil {
		return err
	}
	for _, e := range decided {
		encoded, err := audit.Kind.Encode(uuid.New(), e, event.Meta{Actor: "system:signer", OccurredAt: r.Now()})
		if err != nil {
			return err
		}
		_, err = r.Store.Append(ctx, eventstore.To(audit.Kind.Stream(audit.Log), eventstore.Expected(revision), encoded))
		if _, other := errors.AsType[*eventstore.WrongRevision](err); err != nil && !other { // another node has appended it
			return err
		}
	}
	return nil
}

// InUse returns the signing key and the previous one. The previous key is nil if there is none or it is no longer available.
func (r *Ring) InUse(ctx context.Context) (current tlog.Key, former *tlog.Key, err error) {
	s, _, err := state(ctx, r.Store)
	if err != nil {
		return current, nil, fmt.Errorf("read which key signs: %w", err)
	}
	if s.Key == "" {
		found, err := r.find(ctx, `since is not null order by number limit 1`)
		if err != nil {
			return current, nil, err
		}
		current, err = r.private(ctx, found)
		return current, nil, err
	}
	found, err := r.find(ctx, `verifier = $1`, s.Key)
	if err != nil {
		return current, nil, err
	}
	if current, err = r.private(ctx, found); err != nil {
		return current, nil, err
	}
	before, err := r.find(ctx, `verifier = $1`, s.Former[len(s.Former)-1])
	if errors.Is(err, errNoKey) { // the key belongs to another installation
		return current, nil, nil
	}
	if err != nil {
		return current, nil, err
	}
	if k, err := r.private(ctx, before); err == nil {
		former = &k
	}
	return current, former, nil
}

func (r *Ring) find(ctx context.Context, where string, args ...any) (key, error) {
	rows, _ := r.DB.Query(ctx, `select number, verifier, vault_name from audit.key where `+where, args...)
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[key])
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoKey
	}
	return k, err
}

var errNoKey = errors.New("the log names a signing key that the database does not have")

// ErrNotGiven reports that the signing key is neither in the vault nor given.
var ErrNotGiven = errors.New("checkpoints are signed with a key that is not in the vault: give it in BAHI_AUDIT_KEY")

// private returns the private key of a row. It checks that the private key matches the public one.
func (r *Ring) private(ctx context.Context, k key) (tlog.Key, error) {
	seeds := r.Given
	if k.VaultName != nil {
		seed, err := r.Vault.Named(ctx, *k.VaultName, ed25519.SeedSize)
		if err != nil {
			return tlog.Key{}, err
		}
		seeds = [][]byte{seed}
	}
	for _, seed := range seeds {
		private, err := Private(r.origin(), seed)
		if err != nil || private.Public() == k.Verifier {
			return private, err
		}
	}
	if k.VaultName != nil {
		return tlog.Key{}, fmt.Errorf("the vault's key %s is not that of %s", *k.VaultName, k.Verifier)
	}
	return tlog.Key{}, ErrNotGiven
}

// Prepare registers a new key, from the vault or the given seed. The key signs only after an event names it.
func (r *Ring) Prepare(ctx context.Context, seed []byte) (public string, err error) {
	var name *string
	if seed == nil {
		name = new(firstKey + "/" + uuid.NewString())
		if seed, err = r.Vault.Named(ctx, *name, ed25519.SeedSize); err != nil {
			return "", err
		}
	}
	private, err := Private(r.origin(), seed)
	if err != nil {
		return "", err
	}
	_, err = r.DB.Exec(ctx, `insert into audit.key (verifier, vault_name, made_at) values ($1, $2, $3) on conflict (verifier) do nothing`,
		private.Public(), name, r.Now())
	if err != nil {
		return "", fmt.Errorf("register the new signing key: %w", err)
	}
	return private.Public(), nil
}

// Trusted returns the public keys with available private keys. Write access to the database does not allow adding one, because the master
// key wraps the vault's keys.
func (r *Ring) Trusted(ctx context.Context) (tlog.Keys, error) {
	rows, _ := r.DB.Query(ctx, `select number, verifier, vault_name from audit.key order by number`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil {
		return tlog.Keys{}, err
	}
	var lines []string
	for _, k := range all {
		if _, err := r.private(ctx, k); err == nil {
			lines = append(lines, k.Verifier)
		}
	}
	return tlog.ParseKeys(strings.Join(lines, "\n"))
}

// Public returns all keys that ever signed, for verifiers.
func (r *Ring) Public(ctx context.Context) (tlog.Keys, error) {
	rows, _ := r.DB.Query(ctx, `select verifier from audit.key order by number`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return tlog.Keys{}, err
	}
	return tlog.ParseKeys(strings.Join(lines, "\n"))
}
