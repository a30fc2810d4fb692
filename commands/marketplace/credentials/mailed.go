package credentials

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/fault"
)

// Kind is what a mailed token opens.
type Kind struct {
	name     string
	lifetime time.Duration
	refusal  *fault.Error
}

// The kinds of mailed tokens (G3; 0.2 of the contract).
var (
	Verify     = Kind{"verify", 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired verification token")}
	Reset      = Kind{"reset", time.Hour, fault.New(fault.Malformed, "Invalid or expired reset token")}
	Invitation = Kind{"invitation", 7 * 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired invitation token")}
)

// Refusal is what a token that does not open the kind is answered with, whatever the reason.
func (k Kind) Refusal() error { return k.refusal }

// A token that is being used is nobody else's for claimTime, and the use takes at most useTime.
const (
	claimTime = time.Minute
	useTime   = 30 * time.Second
)

// Mailed are tokens that prove that somebody reads a mailbox.
type Mailed struct {
	db  db
	now func() time.Time
}

// Issue makes a token of the kind: 256 random bits in 43 characters that stand in a URL as they are. It is not kept,
// only its hash. An older one of the kind and subject is void. The subject is the user; of an invitation it is the
// invitation, since whom it invites need not be a user yet.
func (m *Mailed) Issue(ctx context.Context, kind Kind, subject uuid.UUID) (token string, err error) {
	token = newSecret()
	_, err = m.db.pool.Exec(ctx, `
		insert into account.mailed_token (subject_id, kind, token_sha256, expires_at) values ($1, $2, $3, $4)
		on conflict (subject_id, kind) do update
			set token_sha256 = excluded.token_sha256, expires_at = excluded.expires_at, claim = null, claimed_until = null`,
		subject, kind.name, hashText(token), m.now().Add(kind.lifetime))
	if err != nil {
		return "", fmt.Errorf("issue a token to %s %s: %w", kind.name, subject, err)
	}
	return token, nil
}

// Use does what the token opens, for its subject, and spends it. It answers the kind's refusal for a token
// that is unknown, spent, expired, or in use: of two that race, one wins. When do fails, its error is
// answered and the token is as good as before.
//
// The token is spent after do. When the process dies in between, or before do is done, the token can be
// used again a minute later, so do MUST leave the same when it is done twice. Spending it first was
// turned down: a crash would lock the person out. So was holding a transaction around do, which hashes
// passwords and appends to the log: a connection each for the wait. do has 30 seconds, by its context.
func (m *Mailed) Use(ctx context.Context, kind Kind, token string, do func(ctx context.Context, subject uuid.UUID) error) error {
	claim := uuid.New()
	subject, err := m.claim(ctx, kind, token, claim)
	if errors.Is(err, pgx.ErrNoRows) {
		return kind.refusal
	}
	if err != nil {
		return fmt.Errorf("look for a token to %s: %w", kind.name, err)
	}
	using, cancel := context.WithTimeout(ctx, useTime)
	defer cancel()
	done := do(using, subject)
	sql := `delete from account.mailed_token where claim = $1`
	if done != nil {
		sql = `update account.mailed_token set claim = null, claimed_until = null where claim = $1`
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), useTime) // whether or not anybody waits for the answer
	defer cancel()
	if err := m.db.write(settling, func(tx pgx.Tx) error {
		_, err := tx.Exec(settling, sql, claim)
		return err
	}); err != nil {
		return errors.Join(done, fmt.Errorf("settle a token to %s %s: %w", kind.name, subject, err))
	}
	return done
}

func (m *Mailed) claim(ctx context.Context, kind Kind, token string, claim uuid.UUID) (subject uuid.UUID, err error) {
	now := m.now()
	err = m.db.pool.QueryRow(ctx, `
		update account.mailed_token set claim = $4, claimed_until = $5
		where token_sha256 = $1 and kind = $2 and expires_at > $3 and (claimed_until is null or claimed_until <= $3)
		returning subject_id`, hashText(token), kind.name, now, claim, now.Add(claimTime)).Scan(&subject)
	return subject, err
}

func newSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return base64.RawURLEncoding.EncodeToString(secret)
}

func hashText(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
