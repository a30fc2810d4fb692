// Package marketplace has what the marketplace's aggregates need beyond load, decide, append.
package marketplace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/marketplace/apikey"
)

// KeyPrefix begins every API key, so that people and secret scanners recognise one.
const KeyPrefix = "bahi_"

// ErrUnknownKey answers a key that opens nothing, whatever the reason.
var ErrUnknownKey = fault.New(fault.Unauthorized, "Not authenticated")

const secretBytes = 32

// CreateAPIKey makes a key. It answers the key itself too, which is not kept and so can never be
// shown again; empty for a request that was answered before.
func CreateAPIKey(ctx context.Context, h *commands.Handler, c apikey.Create) (key string, out commands.Outcome[apikey.State], err error) {
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	sum := sha256.Sum256(secret)
	c.SecretHash = sum[:]
	out, err = commands.Create(ctx, h, apikey.Kind, func(context.Context) (string, error) { return uuid.NewString(), nil }, c)
	if err != nil || out.Replayed || out.ID == "" { // shown before, or a dry run
		return "", out, err
	}
	id, err := uuid.Parse(out.ID)
	if err != nil {
		return "", out, fmt.Errorf("id of the new key: %w", err)
	}
	return KeyPrefix + hex.EncodeToString(id[:]) + "_" + base64.RawURLEncoding.EncodeToString(secret), out, nil
}

// RevokeAPIKey ends a key.
func RevokeAPIKey(ctx context.Context, h *commands.Handler, id uuid.UUID) (commands.Outcome[apikey.State], error) {
	return commands.Handle(ctx, h, apikey.Kind, id.String(), apikey.Revoke{})
}

// KeyRing knows callers by their API keys. Their states come from the cache, which follows the log,
// so that a revoked key is refused a moment later on every node.
type KeyRing struct {
	Commands *commands.Handler
	Admin    string // the operator's own key, from the configuration
	Home     uuid.UUID
	Now      func() time.Time
}

// Authenticate answers who bears the key, or [ErrUnknownKey].
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
	if err == nil && l.Revision < 0 { // it may have been made a moment ago
		l, err = commands.Load(ctx, r.Commands.Fresh(), apikey.Kind, id.String())
	}
	if err != nil {
		return actor.Actor{}, err
	}
	sum := sha256.Sum256(secret)
	s := l.State
	known := subtle.ConstantTimeCompare(sum[:], s.SecretHash) == 1
	if !known || s.Revoked || s.ExpiresAt != nil && !r.Now().Before(*s.ExpiresAt) {
		return actor.Actor{}, ErrUnknownKey
	}
	return actor.Actor{Type: "api_key", ID: id.String(), Workspace: s.Workspace, Permissions: s.Permissions}, nil
}
