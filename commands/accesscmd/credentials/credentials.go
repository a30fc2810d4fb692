package credentials

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/commands"
	"bahi/eventstore/vault"
)

// Settings are the operator's choices. The zero value is unusable: see [Defaults].
type Settings struct {
	Issuer string // the tokens' iss, unique to the deployment, such as the public URL

	MinPassword int // characters, at least 8
	Hash        HashCost
	Hashes      int // maximum of concurrent password hashes; each takes Hash.MemoryKiB

	// Grace is the time after the rotation of a refresh token in which using it again does not end the session, because several tabs of a
	// browser may use it. With zero, any second use ends the session, as in RFC 9700, section 4.14.2.
	Grace time.Duration

	Access time.Duration // lifetime of an access token: a second to [RefreshLifetime]
}

// Defaults returns the contract's settings. A password has at least 8 characters (CONTRACT.md D18; NIST SP 800-63B-4 requires 15 if it is
// the only factor). The cost of a hash is the second one in OWASP's password storage cheat sheet: 19 MiB and two passes. A node computes
// one hash at a time per processor, so that it can serve other requests.
func Defaults(issuer string) Settings {
	return Settings{
		Issuer: issuer, MinPassword: minPassword,
		Hash: HashCost{MemoryKiB: 19 * 1024, Passes: 2, Threads: 1}, Hashes: runtime.GOMAXPROCS(0),
		Access: accessLifetime,
	}
}

// Check returns the error of settings that allow no sign-in.
func (s Settings) Check() error {
	switch {
	case s.Issuer == "":
		return errors.New("tokens need an issuer")
	case s.MinPassword < minPassword || s.MinPassword > maxPassword:
		return fmt.Errorf("a password's minimum of %d characters is not between %d and %d", s.MinPassword, minPassword, maxPassword)
	case s.Hash.MemoryKiB < 8*uint32(s.Hash.Threads) || s.Hash.Passes < 1 || s.Hash.Threads < 1: // RFC 9106, section 3.1
		return fmt.Errorf("no Argon2id has the cost %+v", s.Hash)
	case s.Hashes < 1:
		return errors.New("at least one password must be hashed at a time")
	case s.Grace < 0:
		return errors.New("the grace is negative")
	case s.Grace > time.Minute: // during the grace, the use of a stolen token is not detected
		return fmt.Errorf("a grace of %s is longer than a minute", s.Grace)
	case s.Access < time.Second || s.Access > RefreshLifetime:
		return fmt.Errorf("an access token's life of %s is not between a second and %s", s.Access, RefreshLifetime)
	}
	return nil
}

// Credentials has all parts of this package.
type Credentials struct {
	Passwords *passwords
	Sessions  *Sessions
	Keys      *Keys
	Mailed    *Mailed

	db  db
	now func() time.Time
}

// Open opens the credentials in the pool's migrated database. now is the clock.
func Open(pool *pgxpool.Pool, keys *vault.Vault, settings Settings, now func() time.Time) (*Credentials, error) {
	if err := settings.Check(); err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	db := db{pool}
	passwords, err := newPasswords(db, settings, now)
	if err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	signing := &Keys{db: db, vault: keys, now: now}
	sessions, err := newSessions(db, signing, settings, now)
	if err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	return &Credentials{
		Passwords: passwords, Sessions: sessions, Keys: signing, Mailed: &Mailed{db: db, vault: keys, now: now}, db: db, now: now,
	}, nil
}

// Erase deletes every row of the user, or of another subject of mailed tokens. That signs the user out. Call it after the user can no
// longer sign in. It can run more than once.
func (c *Credentials) Erase(ctx context.Context, user uuid.UUID) error {
	err := c.db.write(ctx, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`delete from account.password where user_id = $1`, // first: running sign-ins wait for it (see SignIn)
			`delete from account.session where user_id = $1`,  // also deletes the sessions' refresh tokens
			`delete from account.mailed_token where subject_id = $1`,
			`delete from account.mailing where recipient_id = $1`,
		} {
			if _, err := tx.Exec(ctx, sql, user); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("erase the credentials of %s: %w", user, err)
	}
	c.Sessions.seen.forgetAll()
	return nil
}

// Sweep deletes expired rows and returns their number.
func (c *Credentials) Sweep(ctx context.Context) (rows int64, err error) {
	for _, sql := range []string{
		`delete from account.mailed_token where expires_at <= $1`,
		`delete from account.mailing where ends_at <= $1`,
		`delete from account.session where ends_at <= $1`,
		`delete from account.refresh_token where expires_at <= $1`,
		`delete from account.signing_key where verifies_until <= $1`,
	} {
		tag, err := c.db.pool.Exec(ctx, sql, c.now())
		if err != nil {
			return rows, fmt.Errorf("sweep credentials: %w", err)
		}
		rows += tag.RowsAffected()
	}
	return rows, nil
}

// db is the database of the tables.
type db struct{ pool *pgxpool.Pool }

// write runs do in a transaction. When it returns, the commit is on disk, regardless of the pool's settings: a crash must not restore a
// revoked session.
func (d db) write(ctx context.Context, do func(tx pgx.Tx) error) error {
	if err := commands.Untried(ctx); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = on`); err != nil {
			return err
		}
		return do(tx)
	})
}
