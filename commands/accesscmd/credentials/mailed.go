package credentials

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/fault"
	"bahi/eventstore/vault"
)

// Kind is the purpose of a mailed token.
type Kind struct {
	name     string
	lifetime time.Duration
	refusal  *fault.Error
}

// These are the kinds of mailed tokens (G3; 0.2 of the contract).
var (
	Verify     = Kind{"verify", 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired verification token")}
	Reset      = Kind{"reset", time.Hour, fault.New(fault.Malformed, "Invalid or expired reset token")}
	Invitation = Kind{"invitation", 7 * 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired invitation token")}
	Undo       = Kind{"undo", 7 * 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired undo token")} // undoes a change of address
)

// CompanyEmail confirms a company's address for enquiries (CONTRACT.md M1).
var CompanyEmail = Kind{"company-email", 24 * time.Hour, fault.New(fault.Malformed, "Invalid or expired confirmation token")}

// Refusal returns the error of an invalid token of the kind, for any reason.
func (k Kind) Refusal() error { return k.refusal }

// A use of a token reserves it for claimTime, and takes at most useTime.
const (
	claimTime = time.Minute
	useTime   = 30 * time.Second
)

// These limits protect recipients: the minimum interval of two tokens of a kind is pause, and there are at most maxMails in mailWindow.
// Otherwise any client with an address could fill its mailbox, and invalidate each token before the user reads it.
const (
	pause      = 2 * time.Minute
	maxMails   = 6
	mailWindow = time.Hour
)

// keptSpent is the time for which a spent token is stored. It exceeds the retries of the job that mailed the token.
const keptSpent = 7 * 24 * time.Hour

// mailedSize is the size in bytes of the key from which tokens are derived.
const mailedSize = 32

// Issue returns one of these errors if no mail must be sent.
var (
	ErrMailed  = errors.New("an equally valid token was mailed a moment ago")
	ErrTooMany = errors.New("too many of these mails to the address")
)

// Mailed manages tokens that prove access to a mailbox.
type Mailed struct {
	db    db
	vault *vault.Vault
	now   func() time.Time
}

// Mailing identifies the mail of a token.
type Mailing struct {
	// the user, or a change of their address; for an invitation its own id, because the invited person may not be a user yet
	Subject   uuid.UUID
	Recipient uuid.UUID // the address, as an id
	Number    int64     // number of the job that sends the mail; later jobs have greater numbers
}

// Issue creates a token of the kind: 256 bits in 43 characters, all allowed in URLs. Only its hash is stored. It invalidates an older token
// of the kind and subject.
//
// The same mailing gets the same token with a new lifetime, so that a mail can be sent again if its delivery is uncertain. Issue returns
// [ErrMailed], and invalidates no token, if the subject's token is younger than two minutes, is of a later mailing, or is of this mailing
// and spent. It returns [ErrTooMany] if the recipient has received six tokens of the kind within an hour.
func (m *Mailed) Issue(ctx context.Context, kind Kind, of Mailing) (token string, err error) {
	token, err = m.token(ctx, kind, of)
	if err != nil {
		return "", err
	}
	err = m.db.write(ctx, func(tx pgx.Tx) error { return m.issue(ctx, tx, kind, of, hashText(token)) })
	switch {
	case errors.Is(err, ErrMailed), errors.Is(err, ErrTooMany):
		return "", err
	case err != nil:
		return "", fmt.Errorf("issue a token to %s %s: %w", kind.name, of.Subject, err)
	}
	return token, nil
}

// token derives the mailing's token. It is unpredictable without the key.
func (m *Mailed) token(ctx context.Context, kind Kind, of Mailing) (string, error) {
	key, err := m.vault.Named(ctx, "mailed-token", mailedSize)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	h.Write(of.Subject[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(of.Number)))
	h.Write([]byte(kind.name))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
}

// former is the last token of a subject.
type former struct {
	Number   int64
	Spent    bool
	IssuedAt time.Time
}

// issue issues a token while it holds the lock of the recipient's row.
func (m *Mailed) issue(ctx context.Context, tx pgx.Tx, kind Kind, of Mailing, hash []byte) error {
	now := m.now()
	var mails int
	err := tx.QueryRow(ctx, `
		insert into account.mailing as m (recipient_id, kind, mails, ends_at) values ($1, $2, 0, $4)
		on conflict (recipient_id, kind) do update
			set mails = case when m.ends_at <= $3 then 0 else m.mails end, ends_at = case when m.ends_at <= $3 then $4 else m.ends_at end
		returning mails`, of.Recipient, kind.name, now, now.Add(mailWindow)).Scan(&mails) // others wait for this row
	if err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, `select number, spent, issued_at from account.mailed_token where subject_id = $1 and kind = $2 for update`,
		of.Subject, kind.name)
	before, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[former])
	known := err == nil
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	case known && before.Number == of.Number && !before.Spent:
		_, err = tx.Exec(ctx, `update account.mailed_token set expires_at = $3 where subject_id = $1 and kind = $2`, of.Subject, kind.name,
			now.Add(kind.lifetime))
		return err
	case known && (before.Number >= of.Number || !before.Spent && now.Sub(before.IssuedAt) < pause):
		return ErrMailed
	case mails >= maxMails:
		return ErrTooMany
	}
	if _, err := tx.Exec(ctx, `update account.mailing set mails = mails + 1 where recipient_id = $1 and kind = $2`, of.Recipient,
		kind.name); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into account.mailed_token (subject_id, kind, number, token_sha256, issued_at, expires_at) values ($1, $2, $3, $4, $5, $6)
		on conflict (subject_id, kind) do update
			set number = excluded.number, token_sha256 = excluded.token_sha256, issued_at = excluded.issued_at, expires_at = excluded.expires_at,
				spent = false, claim = null, claimed_until = null`,
		of.Subject, kind.name, of.Number, hash, now, now.Add(kind.lifetime))
	return err
}

// Use calls do with the token's subject, and spends the token. It returns the kind's refusal for a token that is unknown, spent, expired,
// or in use. Of two concurrent uses, one succeeds. If do fails, Use returns its error and the token stays valid.
//
// Use spends the token after do. If the process stops before that, the token is usable again a minute later, so do MUST have the same
// result when it runs twice. If the token were spent first, a crash would lock the user out. One transaction around do would hold a
// connection while do hashes passwords and appends to the log. The context of do ends after 30 seconds.
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
	sql, args := `update account.mailed_token set spent = true, expires_at = $2, claim = null, claimed_until = null where claim = $1`,
		[]any{claim, m.now().Add(keptSpent)}
	if done != nil {
		sql, args = `update account.mailed_token set claim = null, claimed_until = null where claim = $1`, args[:1]
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), useTime) // even if the client has disconnected
	defer cancel()
	if err := m.db.write(settling, func(tx pgx.Tx) error {
		_, err := tx.Exec(settling, sql, args...)
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
		where token_sha256 = $1 and kind = $2 and expires_at > $3 and not spent and (claimed_until is null or claimed_until <= $3)
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
