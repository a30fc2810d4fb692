package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/fault"
)

// These are the errors of refused callers. None contains a reason.
var (
	ErrSignIn           = fault.New(fault.Unauthorized, "Invalid email or password")
	ErrRefresh          = fault.New(fault.Unauthorized, "Invalid or expired refresh token")
	ErrNotAuthenticated = fault.New(fault.Unauthorized, "Not authenticated")
)

// Sessions has the sessions of signed-in users.
type Sessions struct {
	db     db
	now    func() time.Time
	grace  time.Duration
	access time.Duration // lifetime of an access token
	signer signer
	seen   *sightings
}

func newSessions(db db, keys *Keys, s Settings, now func() time.Time) (*Sessions, error) {
	seen, err := newSightings()
	if err != nil {
		return nil, err
	}
	return &Sessions{db: db, now: now, grace: s.Grace, access: s.Access, signer: newSigner(keys, s.Issuer, now), seen: seen}, nil
}

// Bearer is the user and the session of a token.
type Bearer struct {
	User    uuid.UUID
	Session uuid.UUID
}

// Tokens are the client's tokens of a session.
type Tokens struct {
	Bearer

	Access      string
	Refresh     string
	RefreshEnds time.Time
}

// Vouched returns the proof of a user whose identity another party has verified, such as an identity provider.
func Vouched(user uuid.UUID) Proof { return Proof{user: user} }

// SignIn creates a session. It returns [ErrSignIn] if the proof's password has changed since. So a concurrent reset, which sets the
// password and then revokes sessions, ends any sign-in with the old password.
func (s *Sessions) SignIn(ctx context.Context, by Proof) (Tokens, error) {
	if by.user == uuid.Nil {
		return Tokens{}, ErrSignIn
	}
	key, err := s.signer.keys.signing(ctx) // not in the transaction: one connection must be enough
	if err != nil {
		return Tokens{}, err
	}
	now := s.now()
	next, err := s.issue(key, Bearer{User: by.user, Session: uuid.New()}, now, now.Add(SessionLifetime))
	if err != nil {
		return Tokens{}, err
	}
	err = s.db.write(ctx, func(tx pgx.Tx) error {
		if !by.changedAt.IsZero() {
			// With the lock, a later change of the password waits for this sign-in and then revokes it. This sign-in waits for an earlier
			// change.
			tag, err := tx.Exec(ctx, `select from account.password where user_id = $1 and changed_at = $2 for share`, by.user, by.changedAt)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return ErrSignIn
			}
		}
		if _, err := tx.Exec(ctx, `
			insert into account.session (family_id, user_id, signed_in_at, refreshed_at, ends_at) values ($1, $2, $3, $3, $4)`,
			next.Session, next.User, now, now.Add(SessionLifetime)); err != nil {
			return err
		}
		return next.insert(ctx, tx, now)
	})
	switch {
	case errors.Is(err, ErrSignIn):
		return Tokens{}, ErrSignIn
	case err != nil:
		return Tokens{}, fmt.Errorf("sign %s in: %w", by.user, err)
	}
	return next.Tokens, nil
}

// issued are new tokens before they are returned.
type issued struct {
	Tokens

	hash []byte // hash of the refresh token
}

// issue creates the next tokens of a session that ends at a time.
func (s *Sessions) issue(key signingKey, of Bearer, now, ends time.Time) (issued, error) {
	next := issued{Tokens: Tokens{Bearer: of, RefreshEnds: earlier(now.Add(RefreshLifetime), ends)}}
	c := claims{
		User: of.User, Session: of.Session, IssuedAt: jwt.NewNumericDate(now),
		ID: uuid.New(), Type: access, Expires: jwt.NewNumericDate(earlier(now.Add(s.access), ends)),
	}
	var err error
	if next.Access, err = s.signer.sign(key, c); err != nil {
		return issued{}, err
	}
	c.ID, c.Type, c.Expires = uuid.New(), refresh, jwt.NewNumericDate(next.RefreshEnds)
	next.hash = hashID(c.ID)
	next.Refresh, err = s.signer.sign(key, c)
	return next, err
}

// hashID returns the stored hash of a refresh token. It hashes only the jti, which is unguessable. Two spellings of one signature would
// give different hashes of the whole token.
func hashID(jti uuid.UUID) []byte {
	sum := sha256.Sum256(jti[:])
	return sum[:]
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (i issued) insert(ctx context.Context, tx pgx.Tx, now time.Time) error {
	_, err := tx.Exec(ctx, `insert into account.refresh_token (jti_sha256, family_id, issued_at, expires_at) values ($1, $2, $3, $4)`,
		i.hash, i.Session, now, i.RefreshEnds)
	return err
}

// Refresh exchanges a refresh token for new tokens and invalidates it. It returns [ErrRefresh] for an invalid token. A second exchange of a
// token ends its session, because an attacker may have the token (RFC 9700, section 4.14.2). Of concurrent requests with one token, exactly
// one gets new tokens. The others end the session, except within [Settings.Grace].
func (s *Sessions) Refresh(ctx context.Context, token string) (Tokens, error) {
	c, err := s.signer.verify(ctx, token, refresh)
	if errors.Is(err, errBadToken) {
		return Tokens{}, ErrRefresh
	}
	if err != nil {
		return Tokens{}, err
	}
	key, err := s.signer.keys.signing(ctx)
	if err != nil {
		return Tokens{}, err
	}
	var (
		next    *issued
		revoked bool
	)
	err = s.db.write(ctx, func(tx pgx.Tx) (err error) {
		next, revoked, err = s.rotate(ctx, tx, key, c)
		return err
	})
	switch {
	case err != nil:
		return Tokens{}, fmt.Errorf("refresh session %s: %w", c.Session, err)
	case revoked:
		s.seen.forget(c.Session)
	}
	if next == nil {
		return Tokens{}, ErrRefresh
	}
	return next.Tokens, nil
}

// rotate returns the next tokens, or nil, and whether it ended the session.
func (s *Sessions) rotate(ctx context.Context, tx pgx.Tx, key signingKey, c claims) (next *issued, revoked bool, err error) {
	var (
		now        = s.now()
		ends       time.Time
		replacedAt *time.Time
	)
	// All concurrent requests for the session lock its row. A separate statement then reads the token's row, and so sees the commits of the
	// requests before it.
	err = tx.QueryRow(ctx, `
		select ends_at from account.session
		where family_id = $1 and user_id = $2 and revoked_at is null and ends_at > $3 for update`, c.Session, c.User, now).Scan(&ends)
	if err == nil {
		err = tx.QueryRow(ctx, `select replaced_at from account.refresh_token where jti_sha256 = $1 and family_id = $2`,
			hashID(c.ID), c.Session).Scan(&replacedAt)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case replacedAt != nil && now.Sub(*replacedAt) < s.grace:
		return nil, false, nil
	case replacedAt != nil:
		_, err := tx.Exec(ctx, `update account.session set revoked_at = $2 where family_id = $1`, c.Session, now)
		return nil, true, err
	}
	made, err := s.issue(key, Bearer{User: c.User, Session: c.Session}, now, ends)
	if err != nil {
		return nil, false, err
	}
	if err := made.insert(ctx, tx, now); err != nil {
		return nil, false, err
	}
	if _, err := tx.Exec(ctx, `update account.refresh_token set replaced_at = $2, replaced_by = $3 where jti_sha256 = $1`,
		hashID(c.ID), now, made.hash); err != nil {
		return nil, false, err
	}
	_, err = tx.Exec(ctx, `update account.session set refreshed_at = $2 where family_id = $1`, c.Session, now)
	return &made, false, err
}

// Authenticate returns the bearer of an access token, or [ErrNotAuthenticated] if the token is invalid or its session has ended. After any
// other error, the token may be valid.
func (s *Sessions) Authenticate(ctx context.Context, token string) (Bearer, error) {
	c, err := s.signer.verify(ctx, token, access)
	if errors.Is(err, errBadToken) {
		return Bearer{}, ErrNotAuthenticated
	}
	if err != nil {
		return Bearer{}, err
	}
	alive, err := s.Alive(ctx, c.Session)
	if err != nil {
		return Bearer{}, err
	}
	if !alive {
		return Bearer{}, ErrNotAuthenticated
	}
	return Bearer{User: c.User, Session: c.Session}, nil
}

// Access issues another access token for a live session. The caller has authenticated the session by other means, such as the sealed
// cookie of a page.
func (s *Sessions) Access(ctx context.Context, of Bearer) (string, error) {
	key, err := s.signer.keys.signing(ctx)
	if err != nil {
		return "", err
	}
	now := s.now()
	next, err := s.issue(key, of, now, now.Add(s.access))
	return next.Access, err
}

// Alive reports whether the session is active. It trusts reads that are at most [Fresh] old, so it queries a session in use once in that
// time. A session that this node revoked ends at once.
func (s *Sessions) Alive(ctx context.Context, session uuid.UUID) (bool, error) {
	now := s.now()
	if ends, ok := s.seen.at(session, now); ok {
		return now.Before(ends), nil
	}
	forgets := s.seen.count()
	var ends time.Time // zero: no session
	err := s.db.pool.QueryRow(ctx, `select ends_at from account.session where family_id = $1 and revoked_at is null`, session).Scan(&ends)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, fmt.Errorf("look for session %s: %w", session, err)
	}
	s.seen.keep(session, now, ends, forgets)
	return now.Before(ends), nil
}

// Begin creates a session without tokens, such as for an operator's page. It ends at the given time, or when it is revoked.
func (s *Sessions) Begin(ctx context.Context, session uuid.UUID, ends time.Time) error {
	_, err := s.db.pool.Exec(ctx, `
		insert into account.session (family_id, user_id, signed_in_at, refreshed_at, ends_at) values ($1, $2, $3, $3, $4)`,
		session, uuid.Nil, s.now(), ends)
	if err != nil {
		return fmt.Errorf("begin session %s: %w", session, err)
	}
	return nil
}

// Revoke ends a session. It does nothing to an ended or unknown one.
func (s *Sessions) Revoke(ctx context.Context, session uuid.UUID) error {
	err := s.db.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update account.session set revoked_at = $2 where family_id = $1 and revoked_at is null`, session, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke session %s: %w", session, err)
	}
	s.seen.forget(session)
	return nil
}

// RevokeAll ends the sessions of a user except one; [uuid.Nil]: all sessions.
func (s *Sessions) RevokeAll(ctx context.Context, user, except uuid.UUID) error {
	err := s.db.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update account.session set revoked_at = $3 where user_id = $1 and family_id <> $2 and revoked_at is null`, user, except, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke the sessions of %s: %w", user, err)
	}
	s.seen.forgetAll()
	return nil
}
