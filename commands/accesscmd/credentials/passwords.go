package credentials

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
)

// HashCost is the cost of hashing a password, by Argon2id's parameters (RFC 9106).
type HashCost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

func (c HashCost) params() *argon2id.Params {
	return &argon2id.Params{Memory: c.MemoryKiB, Iterations: c.Passes, Parallelism: c.Threads, SaltLength: 16, KeyLength: 32}
}

// passwords verifies people's passwords.
type passwords struct {
	db      db
	now     func() time.Time
	minimum int
	common  map[string]struct{}
	params  *argon2id.Params
	hashing *semaphore.Weighted

	inTurn    atomic.Int64 // running and waiting hashes
	maxInTurn int64

	nobody string // hash of an unknown password, for users without one

	// check is argon2id.CheckHash; a test counts its calls.
	check func(password, hash string) (bool, *argon2id.Params, error)
}

func newPasswords(db db, s Settings, now func() time.Time) (*passwords, error) {
	p := &passwords{
		db: db, now: now, minimum: s.MinPassword, common: readCommon(), params: s.Hash.params(),
		hashing: semaphore.NewWeighted(int64(s.Hashes)), maxInTurn: int64(s.Hashes) * (1 + maxInTurn), check: argon2id.CheckHash,
	}
	var err error
	if p.nobody, err = argon2id.CreateHash(newSecret(), p.params); err != nil {
		return nil, fmt.Errorf("hash the password of unknown users: %w", err)
	}
	return p, nil
}

// Set replaces the user's password. It does not check its strength: [passwords.Check] does. It keeps sessions: see [Sessions.RevokeAll].
func (p *passwords) Set(ctx context.Context, user uuid.UUID, password string) error {
	hash, err := p.hash(ctx, password)
	if err == nil {
		err = p.db.write(ctx, func(tx pgx.Tx) error {
			// Proofs require that each change is later than the previous one, whatever the node's clock.
			_, err := tx.Exec(ctx, `
				insert into account.password as p (user_id, hash, changed_at) values ($1, $2, $3)
				on conflict (user_id) do update set hash = excluded.hash,
					changed_at = greatest(excluded.changed_at, p.changed_at + interval '1 microsecond')`, user, hash, p.now())
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("set the password of %s: %w", user, err)
	}
	return nil
}

// Remove removes the user's password.
func (p *passwords) Remove(ctx context.Context, user uuid.UUID) error {
	err := p.db.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `delete from account.password where user_id = $1`, user)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the password of %s: %w", user, err)
	}
	return nil
}

// Proof proves that a caller knew a user's password. It is valid until the password changes.
type Proof struct {
	user      uuid.UUID
	changedAt time.Time // time of the proved password's last change
}

// Verify reports whether the password is the user's, and if so returns a proof for [Sessions.SignIn]. It also computes a hash for a user
// without a password and for [uuid.Nil], so that its duration does not reveal which users exist. It replaces a stored hash of an outdated
// cost by a hash of the current cost.
func (p *passwords) Verify(ctx context.Context, user uuid.UUID, password string) (Proof, bool, error) {
	stored, err := p.load(ctx, user)
	if err != nil {
		return Proof{}, false, fmt.Errorf("read the password of %s: %w", user, err)
	}
	match, params, err := p.compare(ctx, password, stored.hash)
	switch {
	case err != nil:
		return Proof{}, false, fmt.Errorf("verify the password of %s: %w", user, err)
	case !match || !stored.known:
		return Proof{}, false, nil
	}
	if *params != *p.params {
		if err := p.rehash(ctx, user, password, stored.hash); err != nil {
			return Proof{}, false, fmt.Errorf("hash the password of %s again: %w", user, err)
		}
	}
	return Proof{user: user, changedAt: stored.changedAt}, true, nil
}

type storedPassword struct {
	hash      string
	changedAt time.Time
	known     bool
}

func (p *passwords) load(ctx context.Context, user uuid.UUID) (s storedPassword, err error) {
	err = p.db.pool.QueryRow(ctx, `select hash, changed_at from account.password where user_id = $1`, user).Scan(&s.hash, &s.changedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return storedPassword{hash: p.nobody}, nil
	}
	s.known = true
	return s, err
}

func (p *passwords) rehash(ctx context.Context, user uuid.UUID, password, old string) error {
	hash, err := p.hash(ctx, password)
	if err != nil {
		return err
	}
	_, err = p.db.pool.Exec(ctx, `update account.password set hash = $3 where user_id = $1 and hash = $2`, user, old, hash)
	return err
}

// ErrCrowded reports that a password was not checked because too many other checks wait.
var ErrCrowded = fault.New(fault.Unavailable, "Too many sign-ins at once, try again")

// maxInTurn is the maximum number of requests that wait for each running hash. A longer queue would exceed the requests' timeouts.
const maxInTurn = 32

// turn waits until a hash may be computed. The number of concurrent hashes is limited, because each takes much memory.

func (p *passwords) turn(ctx context.Context) (done func(), err error) {
	if p.inTurn.Add(1) > p.maxInTurn {
		p.inTurn.Add(-1)
		return nil, ErrCrowded
	}
	if err := p.hashing.Acquire(ctx, 1); err != nil {
		p.inTurn.Add(-1)
		return nil, err
	}
	return func() {
		p.hashing.Release(1)
		p.inTurn.Add(-1)
	}, nil
}

func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	done, err := p.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return argon2id.CreateHash(Normalise(password), p.params)
}

func (p *passwords) compare(ctx context.Context, password, hash string) (bool, *argon2id.Params, error) {
	done, err := p.turn(ctx)
	if err != nil {
		return false, nil, err
	}
	defer done()
	return p.check(Normalise(password), hash)
}
