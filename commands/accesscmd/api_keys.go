// Package accesscmd has those operations on users, sessions, API keys and workspaces that require more than load, decide, append.
package accesscmd

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/access/apikey"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// KeyPrefix is the beginning of every API key. Secret scanners recognise keys by it.
const KeyPrefix = "bahi_"

// ErrUnknownKey is the error of an invalid key, for any reason.
var ErrUnknownKey = fault.New(fault.Unauthorized, "Not authenticated")

const secretBytes = 32

// CreateAPIKey creates a key. It also returns the secret, or "" for a retry: the secret is not stored. A key created by a user, or by a
// user's key, has at most the user's current permissions.
func CreateAPIKey(ctx context.Context, h *commands.Handler, req commands.Request, c apikey.Create) (key string,
	out commands.Outcome[apikey.State], err error) {
	c.By = req.Actor
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	sum := sha256.Sum256(secret)
	c.SecretHash = sum[:]
	out, err = commands.Do(ctx, h, req, apikey.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := origin(ctx, tx, &c); err != nil {
			return err
		}
		newID := func(context.Context) (string, error) { return uuid.NewString(), nil }
		_, err := commands.DecideNew(ctx, tx, apikey.Kind, newID, func(string) event.Command[apikey.State] { return c })
		return err
	})
	if err != nil || out.Replayed || out.ID == "" { // a retry or a dry run has no secret
		return "", out, err
	}
	id, err := uuid.Parse(out.ID)
	if err != nil {
		return "", out, fmt.Errorf("id of the new key: %w", err)
	}
	return KeyPrefix + hex.EncodeToString(id[:]) + "_" + base64.RawURLEncoding.EncodeToString(secret), out, nil
}

// origin sets the keys above the key, and the user with the rights that limit it, [uuid.Nil] for the deployment.
func origin(ctx context.Context, from commands.Source, c *apikey.Create) (err error) {
	id, named := uuid.Parse(c.By.ID)
	switch {
	case c.By.Type == "user":
		c.User, err = id, named
	case c.By.Type == "api_key" && named == nil:
		by, err := commands.Load(ctx, from, apikey.Kind, id.String())
		if err != nil {
			return err
		}
		above, err := makers(ctx, from, by.State)
		if err != nil {
			return err
		}
		c.User, c.Ends, c.Makers = by.State.User, by.State.ExpiresAt, len(above)+1
	}
	return err
}

// makers returns the keys above a key. Each key created the previous one. If there are more than the limit, makers returns one more than
// the limit.
func makers(ctx context.Context, from commands.Source, s apikey.State) (above []apikey.State, err error) {
	for id := s.ParentKey; id != uuid.Nil && len(above) <= apikey.MaxMakers; id = s.ParentKey {
		l, err := commands.Load(ctx, from, apikey.Kind, id.String())
		if err != nil {
			return nil, err
		}
		s = l.State
		above = append(above, s)
	}
	return above, nil
}

// RevokeAPIKey revokes a key and the keys created with it, because an attacker with the key may have created them.
func RevokeAPIKey(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) (commands.Outcome[apikey.State], error) {
	return commands.Handle(ctx, h, req, apikey.Kind, id.String(), apikey.Revoke{})
}

// KeyRing authenticates callers by their API keys. It reads states from the cache, which a subscription to the log updates. So every node
// soon refuses a revoked key.
type KeyRing struct {
	Commands *commands.Handler
	Admin    string // the operator's own key, from the configuration
	Home     uuid.UUID
	Now      func() time.Time
}

// Authenticate returns the owner of the key, or [ErrUnknownKey].
func (r *KeyRing) Authenticate(ctx context.Context, key string) (actor.Actor, error) {
	if r.Admin != "" && subtle.ConstantTimeCompare([]byte(key), []byte(r.Admin)) == 1 {
		return actor.Actor{Type: "api_key", ID: "admin", Workspace: r.Home, Permissions: actor.Permissions{Operator: true}}, nil
	}
	rest, ok := strings.CutPrefix(key, KeyPrefix)
	if !ok {
		return actor.Actor{}, ErrUnknownKey
	}
	hexID, text, ok := strings.Cut(rest, "_")
	rawID, err := hex.DecodeString(hexID)
	if err != nil || !ok {
		return actor.Actor{}, ErrUnknownKey
	}
	id, err := uuid.FromBytes(rawID)
	if err != nil {
		return actor.Actor{}, ErrUnknownKey
	}
	secret, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return actor.Actor{}, ErrUnknownKey
	}
	l, err := commands.Load(ctx, r.Commands.Cached(), apikey.Kind, id.String())
	if err == nil && l.Revision < 0 { // another node may have just created it
		l, err = commands.Load(ctx, r.Commands.Fresh(), apikey.Kind, id.String())
	}
	if err != nil {
		return actor.Actor{}, err
	}
	sum := sha256.Sum256(secret)
	s := l.State
	if subtle.ConstantTimeCompare(sum[:], s.SecretHash) != 1 {
		return actor.Actor{}, ErrUnknownKey
	}
	p, err := rightsNow(ctx, r.Commands.Cached(), s, r.Now())
	if err == nil && p.Empty() {
		err = ErrUnknownKey
	}
	if err != nil {
		return actor.Actor{}, err
	}
	return actor.Actor{Type: "api_key", ID: id.String(), Workspace: s.Workspace, Permissions: p}, nil
}

// keyRights returns the current permissions of a key; a missing key has none.
func keyRights(ctx context.Context, from commands.Source, id uuid.UUID, now time.Time) (actor.Permissions, error) {
	l, err := commands.Load(ctx, from, apikey.Kind, id.String())
	if err != nil {
		return actor.Permissions{}, err
	}
	return rightsNow(ctx, from, l.State, now)
}

// rightsNow returns the current permissions of a key. A user's key has the user's permissions in its workspace, as an operator of the
// deployment or as a member. A key of the deployment has its own permissions until its workspace has lost its last member. Then only an
// operator can access the workspace (CONTRACT.md 0.2). A key has no permissions after a key above it is revoked or has expired. Each use
// checks that. A revocation does not write to the keys below, because it would miss a key created at the same time.
func rightsNow(ctx context.Context, from commands.Source, s apikey.State, now time.Time) (none actor.Permissions, err error) {
	above, err := makers(ctx, from, s)
	if err != nil {
		return none, err
	}
	shut := func(key apikey.State) bool { return !key.Opens(now) }
	if shut(s) || slices.ContainsFunc(above, shut) || len(above) > apikey.MaxMakers {
		return none, nil
	}
	w, err := commands.Load(ctx, from, workspace.Kind, s.Workspace.String())
	if err != nil {
		return none, err
	}
	if s.User == uuid.Nil {
		if abandoned := w.State.Made && len(w.State.Members) == 0; abandoned && !s.Permissions.Operator {
			return none, nil
		}
		return s.Permissions, nil
	}
	u, err := commands.Load(ctx, from, user.Kind, s.User.String())
	switch {
	case err != nil || !u.State.Active():
		return none, err
	case u.State.Operator:
		return s.Permissions, nil
	default:
		return s.Within(w.State.Members[s.User]), nil
	}
}
